"""Served: the note in a data folder of the server that runs on it, so that the doctor finds its port."""

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from vettance import __version__, clock
from vettance.wire.payload import encode, timestamp

FILE: Final = "server.json"
_NOTE_BYTES_MAX: Final = 4096


class ServerNote(msgspec.Struct, frozen=True, rename="camel"):
    """A server: its process, where it answers ("" for one that answers nobody), its version, since when."""

    pid: int
    url: str
    version: str
    started_at: str

    @property
    def runs(self) -> bool:
        """Whether the process is there. It may be another one by now, so ask it."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # It belongs to another user.
        return True


def note_server(folder: Path, url: str) -> None:
    """Leave a note that this process serves a data folder. Where that cannot be written, there is none."""
    note = ServerNote(os.getpid(), url, __version__, timestamp(clock.now_ms()))
    draft = folder / f"{FILE}.draft"
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(encode(note))
        draft.replace(folder / FILE)


def remove_note(folder: Path) -> None:
    """Take the note away, if it is this process's own."""
    found = read_note(folder)
    if found is not None and found.pid == os.getpid():
        with contextlib.suppress(OSError):
            (folder / FILE).unlink()


def read_note(folder: Path) -> ServerNote | None:
    """Return the note of a data folder; None when there is none that can be read."""
    try:
        with (folder / FILE).open("rb") as file:
            return msgspec.json.decode(file.read(_NOTE_BYTES_MAX), type=ServerNote)
    except (OSError, msgspec.MsgspecError):
        return None
