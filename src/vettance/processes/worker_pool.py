"""The pool of workers: several processes that serve one port, and the parent that keeps them running."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

import click

from vettance.processes.supervisor import Backoff, Supervisor, spawn
from vettance.settings.settings import ProcessRole
from vettance.telemetry.logs import logger
from vettance.telemetry.shared_counters import SharedBoard

#: A child that ends sooner than ten seconds was not able to start.
_BACKOFF: Final = Backoff(pause_s_min=0.2, pause_s_max=5.0, steady_s=10.0)
#: What a command ends with that says why it cannot begin.
_REFUSED: Final = 1
_SAID_BYTES_MAX: Final = 65_536
#: What a child says of itself.
_READY, _WAITS, _ENDS = "ready", "waits", "ends"

_log = logger()


class _WorkerSlot:
    """One place of the pool, and the process that has it at the moment."""

    def __init__(self, pool: "WorkerPool", number: int, role: ProcessRole, stop_s_max: float) -> None:
        self._pool = pool
        self.number = number
        self.role = role
        #: Whether a child in this place has ever answered requests.
        self.was_ready = False
        #: Why its child ends, in its own words; empty when it has not said.
        self.reason = ""
        self.supervisor = Supervisor(
            "process",
            self._start,
            _BACKOFF,
            stop_s_max=stop_s_max,
            on_end=self._ended,
            details=lambda: {"process": number} | ({"reason": self.reason} if self.reason else {}),
        )

    async def _start(self) -> subprocess.Popen[bytes]:
        self.reason = ""
        return await self._pool.spawn(self)

    async def _ended(self, code: int) -> bool:
        """Tell whether to start another: one that refuses before it ever answered would do so for ever."""
        # A child says why before it ends.
        self._pool.hear()
        if code != _REFUSED or self.was_ready or self.supervisor.is_stopping:
            return True
        self._pool.give_up(self)
        return False


class Child:
    """What a child has of its parent: the socket to serve, and the link, on which it can say something."""

    def __init__(self, seat: str) -> None:
        """Take the place that the parent gave this process: `NUMBER.LISTENER.LINK`."""
        self._number, listener, link = (int(one) for one in seat.split("."))
        self.listener = socket.socket(fileno=listener)
        self.link = socket.socket(fileno=link)
        # The event loop closes the link with itself, and the last word may come after that.
        self._voice = self.link.dup()

    def ready(self) -> None:
        """Tell the parent that this child answers."""
        self._say(_READY)

    def wait(self, reason: str) -> None:
        """Tell the parent in one line what this child waits for before it can answer."""
        self._say(_WAITS, reason)

    def refuse(self, reason: str) -> None:
        """Tell the parent in one line why this child ends."""
        self._say(_ENDS, reason)

    def _say(self, what: str, reason: str = "") -> None:
        line = " ".join((str(self._number), what, *reason.split()))
        with contextlib.suppress(OSError):  # Without a parent the link itself ends this process.
            self._voice.send(f"{line}\n".encode(), socket.MSG_DONTWAIT)


class WorkerPool:
    """Keeps some processes on one socket. Each is started again when it ends; all end with the parent.

    A child that refuses before one in its place has ever answered would do so for ever: it ends the pool.
    """

    def __init__(
        self,
        listener: socket.socket,
        count: int,
        role: ProcessRole,
        arguments: Sequence[str],
        on_ready: Callable[[], None],
        on_wait: Callable[[str], None],
        stop_s_max: float,
    ) -> None:
        """`on_ready` is called when the first child answers; `on_wait` once for what children wait for.

        A child that is told to stop is killed after `stop_s_max`.
        """
        self._listener = listener
        self._arguments = arguments
        self._on_ready = on_ready
        self._on_wait = on_wait
        self._awaited: set[str] = set()
        self._board = SharedBoard.shared()
        # One of them does what has to be done once; the others only answer.
        roles = [role, *[ProcessRole.WEB] * (count - 1)]
        self.slots = [_WorkerSlot(self, number, one, stop_s_max) for number, one in enumerate(roles)]
        # The parent writes nothing to it: its end tells the children that the parent is gone, even by
        # SIGKILL. They say on it, each in one piece, when they are ready and why they end.
        self._ours, self._theirs = socket.socketpair()
        self._code = 0

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then until every child has drained; return the exit code."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.begin_stop)
        loop.add_reader(self._ours, self.hear)
        for slot in self.slots:
            slot.supervisor.ensure()
        await asyncio.gather(*(slot.supervisor.wait() for slot in self.slots))
        return self._code

    def begin_stop(self) -> None:
        """Tell every child to drain."""
        for slot in self.slots:
            slot.supervisor.begin_stop()

    def hear(self) -> None:
        """Take in what children have said since."""
        try:
            said = self._ours.recv(_SAID_BYTES_MAX, socket.MSG_DONTWAIT).decode()
        except BlockingIOError:
            return
        for line in said.splitlines():
            number, what, *reason = line.split(" ", 2)
            slot = self.slots[int(number)]
            slot.reason = " ".join(reason) if what == _ENDS else ""
            if what == _WAITS:
                new = set(reason) - self._awaited
                self._awaited.update(new)
                for one in new:
                    self._on_wait(one)
            elif what == _READY:
                self._awaited.clear()
                if not any(one.was_ready for one in self.slots):
                    self._on_ready()
                slot.was_ready = True
                _log.info("process_ready", process=slot.number)

    def give_up(self, slot: _WorkerSlot) -> None:
        """End the pool because of a child that refuses; where it gave no reason, it has printed one."""
        if slot.reason:
            click.echo(f"Error: {slot.reason}", err=True)
        self._code = _REFUSED
        self.begin_stop()

    async def spawn(self, slot: _WorkerSlot) -> subprocess.Popen[bytes]:
        """Start a child in a place. Raises `OSError`."""
        descriptors = (self._listener.fileno(), self._theirs.fileno())
        return await spawn(
            "vettance.cli",
            *("serve", *self._arguments, "--role", slot.role.value),
            *("--seat", ".".join(map(str, (slot.number, *descriptors)))),
            descriptors=(*descriptors, *self._board.descriptors),
            environment={**os.environ, **self._board.place(slot.number)},
            # A terminal's Ctrl-C is for the parent, which tells the children.
            group=True,
        )
