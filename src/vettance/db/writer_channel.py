"""Channels: the two ways to the writer, a thread of this process or a process of its own."""

import asyncio
import contextlib
import queue
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from vettance.db.engine import StoreDown
from vettance.db.writer import LENGTH, StoreWriter
from vettance.processes.supervisor import Backoff, Supervisor, ended, spawn

_START_S_MAX = 15.0
_END_S_MAX = 30.0
#: A child whose socket is closed has so long to end by itself.
_REAP_S_MAX = 1.0
_BACKOFF = Backoff(pause_s_min=0.05, pause_s_max=2.0, steady_s=0.0)


class FrameSender(Protocol):
    """Who sends frames: told of every reply, in the order of the frames, and of every loss."""

    def replied(self, reply: bytes) -> None:
        """A frame was answered."""

    def lost(self, reason: str, *, refuse: bool) -> None:
        """Whatever was sent will not be answered; with `refuse`, sending is of no use until `ready`."""

    def ready(self) -> None:
        """Frames can be sent to a writer that has seen none yet."""


class Channel(Protocol):
    """Carries frames to the writer and replies back."""

    async def start(self) -> None:
        """Bring the writer up. Raises `StoreDown` when that fails."""

    def send(self, frame: bytes) -> None:
        """Pass on a frame; never waits."""

    def abort(self, reason: str) -> None:
        """Give up what was sent; the sender hears `lost` now and `ready` when it may go on."""

    async def close(self) -> None:
        """End the writer. Frames that were not answered may or may not be kept."""


class ThreadChannel:
    """A writer in a thread: no start-up cost, but it shares the interpreter with the event loop."""

    def __init__(self, path: Path, sender: FrameSender) -> None:
        self._path = path
        self._sender = sender
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outstanding = 0
        self._stale = 0

    async def start(self) -> None:
        """Open the file and start the thread."""
        self._loop = asyncio.get_running_loop()
        self._writer = await asyncio.to_thread(StoreWriter, self._path, own=False)
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()
        self._sender.ready()

    def send(self, frame: bytes) -> None:
        """Queue a frame for the thread."""
        self._outstanding += 1
        self._frames.put(frame)

    def abort(self, reason: str) -> None:
        """Interrupt the running statement; late replies are dropped."""
        self._stale = self._outstanding
        self._writer.interrupt()
        self._sender.lost(reason, refuse=True)

    async def close(self) -> None:
        """Let the thread finish its frames and end."""
        self._frames.put(None)
        await asyncio.to_thread(self._thread.join, _END_S_MAX)
        await asyncio.to_thread(self._writer.close)

    def _run(self) -> None:
        while (frame := self._frames.get()) is not None:
            reply = self._writer.answer(frame)
            with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
                self._loop.call_soon_threadsafe(self._arrived, reply)

    def _arrived(self, reply: bytes) -> None:
        self._outstanding -= 1
        if not self._stale:
            self._sender.replied(reply)
            return
        self._stale -= 1
        if not self._stale:
            self._sender.ready()


class _WriterSocket(asyncio.Protocol):
    """Our end of the socket: cuts the stream into replies."""

    def __init__(self, arrived: Callable[[bytes], None], ended: Callable[["_WriterSocket"], None]) -> None:
        self._arrived = arrived
        self._ended = ended
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while len(buffer) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            self._arrived(buffer[LENGTH.size : end])
            buffer = buffer[end:]
        self._buffer = buffer

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        self._ended(self)


class ProcessChannel:
    """A writer in a child process, started again whenever it ends."""

    def __init__(self, path: Path, sender: FrameSender) -> None:
        self._path = path
        self._sender = sender
        self._link: _WriterSocket | None = None
        self._greeting: asyncio.Future[str | None] | None = None
        self._aborted = False
        self._supervisor = Supervisor(
            "store_writer",
            self._start,
            _BACKOFF,
            stop_s_max=_END_S_MAX,
            failures=(StoreDown,),
            failed=lambda error: sender.lost(str(error), refuse=True),
            ask_to_stop=self._hang_up,
        )

    @property
    def writer_pid(self) -> int:
        """The process id of the writer that was started last."""
        return self._supervisor.pid

    async def start(self) -> None:
        """Start the child and wait for its greeting."""
        await self._supervisor.begin()

    async def _start(self) -> subprocess.Popen[bytes]:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            process = await spawn(
                "vettance.db.writer",
                *(str(self._path), str(theirs.fileno())),
                descriptors=(theirs.fileno(),),
                shielded=True,
            )
        greeting: asyncio.Future[str | None] = loop.create_future()
        self._greeting = greeting
        self._aborted = False
        link = _WriterSocket(self._arrived, self._ended)
        self._link = link
        self._transport, _ = await loop.create_unix_connection(lambda: link, sock=ours)
        refusal: str | None = "the writer process did not start in time"
        try:
            async with asyncio.timeout(_START_S_MAX):
                refusal = await greeting
        except TimeoutError:
            pass
        finally:
            self._greeting = None
            if refusal is not None:
                self._link = None
                self._transport.abort()
                process.kill()
        if refusal is not None:
            await ended(process)
            raise StoreDown(refusal)
        self._sender.ready()
        return process

    def send(self, frame: bytes) -> None:
        """Hand a frame to the socket; what the kernel does not take at once follows by itself."""
        self._transport.write(LENGTH.pack(len(frame)) + frame)

    def abort(self, reason: str) -> None:
        """Kill the child; a new one is started."""
        self._aborted = True
        self._sender.lost(reason, refuse=False)
        self._supervisor.kill()

    async def close(self) -> None:
        """Close the socket, upon which the child tidies up and ends."""
        await self._supervisor.stop()

    def _hang_up(self) -> None:
        self._link = None
        self._transport.close()

    def _arrived(self, reply: bytes) -> None:
        if self._greeting is None:
            if not self._aborted:
                self._sender.replied(reply)
        elif not self._greeting.done():
            self._greeting.set_result(msgspec.msgpack.decode(reply, type=str | None))

    def _ended(self, link: _WriterSocket) -> None:
        if link is not self._link:
            return
        self._link = None
        if self._greeting is not None:
            if not self._greeting.done():
                self._greeting.set_result("the writer process ended while starting")
            return
        if not self._aborted:
            self._sender.lost("the writer process ended", refuse=False)
        self._supervisor.kill_after(_REAP_S_MAX)
