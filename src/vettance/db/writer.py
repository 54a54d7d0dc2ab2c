"""The writer: the one place that writes to the store file, in a thread of ours or as a process of its own.

`python -m vettance.db.writer FILE DESCRIPTOR` is that process. It reads frames from a socket it inherited,
answers each when it is on the disk, and ends when the other end closes, which the kernel does even for a
parent that was killed.
"""

import signal
import socket
import struct
import sys
from pathlib import Path

import msgspec

from vettance.db.checkpoint import Checkpointer, FileLock
from vettance.db.connection import failure, open_writer
from vettance.db.engine import StoreDown
from vettance.db.sqlite_batch import Committer

# Every frame and reply on the socket is preceded by its length in bytes.
LENGTH = struct.Struct(">I")


class StoreWriter:
    """A committer with its checkpoints. With `own` it insists on being the only server of the file.

    `own` is for a process that does nothing else and ends soon after `close`; see `Checkpointer`.
    """

    def __init__(self, path: Path, *, own: bool) -> None:
        lock = FileLock(path)
        if own:
            lock.insist()
        self._committer = Committer(open_writer(path))
        self._checkpointer = Checkpointer(path, self._committer, lock, sync_ahead=own)
        self.answer = self._committer.answer
        self.interrupt = self._committer.interrupt

    def close(self) -> None:
        """End the checkpoints and let go of the file."""
        self._checkpointer.stop()
        self._committer.close()


def _receive(link: socket.socket) -> bytes | None:
    """Read one frame; None when the other end has closed, be it in the middle of a frame."""
    head = link.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    frame = link.recv(size, socket.MSG_WAITALL)
    return frame if len(frame) == size else None


def _send(link: socket.socket, reply: bytes) -> None:
    link.sendall(LENGTH.pack(len(reply)) + reply)


def main(arguments: list[str]) -> int:
    """Serve one parent until it closes the socket."""
    # A terminal's Ctrl-C and a supervisor's SIGTERM reach the whole group; the parent drains, then closes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    link = socket.socket(fileno=int(arguments[1]))
    try:
        writer = StoreWriter(Path(arguments[0]), own=True)
    except StoreDown as down:
        _send(link, msgspec.msgpack.encode(str(down)))
        return 1
    except Exception as error:  # noqa: BLE001 - the parent must hear why, whatever it is
        _send(link, msgspec.msgpack.encode(f"{arguments[0]}: {failure(error)[1]}"))
        return 1
    try:
        _send(link, msgspec.msgpack.encode(None))
        while (frame := _receive(link)) is not None:
            _send(link, writer.answer(frame))
    except (BrokenPipeError, ConnectionResetError):
        # The parent is gone; what was committed stays, and nobody is left to be told.
        pass
    finally:
        writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
