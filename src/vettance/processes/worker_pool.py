"""The crew: several processes that serve one port, started by a parent that does nothing but see to them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import click

from vettance.settings.settings import Role
from vettance.telemetry.logs import logger
from vettance.telemetry.shared_counters import SharedBoard

_PAUSE_S_MIN: Final = 0.2
_PAUSE_S_MAX: Final = 5.0
#: A child that ends sooner than this was not able to start.
_STEADY_S: Final = 10.0
#: What a command ends with that says why it cannot begin.
_REFUSED: Final = 1
_SAID_BYTES_MAX: Final = 65_536
#: What a child says of itself.
_READY, _WAITS, _ENDS = "ready", "waits", "ends"

_log = logger()


class _WorkerSlot:
    """The place of one child, whichever process takes it at the moment."""

    def __init__(self, number: int, role: Role) -> None:
        self.number = number
        self.role = role
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.next_s = 0.0
        self.pause_s = _PAUSE_S_MIN
        #: Whether a child of this seat has ever answered requests.
        self.was_ready = False
        #: Why its child ends, in its own words; empty when it has not said.
        self.reason = ""

    def rest(self, now_s: float) -> None:
        """Leave the seat empty for a while, the longer the sooner its children end."""
        is_steady = now_s - self.started_s > _STEADY_S
        self.pause_s = _PAUSE_S_MIN if is_steady else min(_PAUSE_S_MAX, self.pause_s * 2)
        self.next_s = now_s + self.pause_s


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

    A child that refuses before one of its seat has ever answered would do so for ever: it ends the crew.
    """

    def __init__(
        self,
        listener: socket.socket,
        count: int,
        role: Role,
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
        self._stop_s_max = stop_s_max
        self._awaited: set[str] = set()
        self._board = SharedBoard.shared()
        # One of them does what has to be done once; the others only answer.
        self._seats = [_WorkerSlot(number, role if number == 0 else Role.WEB) for number in range(count)]
        # The parent writes nothing to it: its end tells the children that he is gone, be it by SIGKILL. They
        # say on it, each in one piece, when they are ready and why they end.
        self._ours, self._theirs = socket.socketpair()
        self._stop_by = 0.0
        self._code = 0

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then until every child has drained; return the exit code."""
        watched = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        while True:
            for seat in self._seats:
                self._see_to(seat)
            if self._stop_by and not any(seat.process for seat in self._seats):
                return self._code
            found = signal.sigtimedwait(watched, 0.25)
            if found is not None and found.si_signo != signal.SIGCHLD:
                self._begin_stop()
            if self._stop_by and time.monotonic() > self._stop_by:
                self._tell(signal.SIGKILL)

    def _see_to(self, seat: _WorkerSlot) -> None:
        now_s = time.monotonic()
        if seat.process is not None:
            code = seat.process.poll()
            # Whatever it said, it said before it ended.
            self._hear()
            if code is None:
                return
            seat.process = None
            if self._stop_by:
                return
            if code == _REFUSED and not seat.was_ready:
                self._give_up(seat)
                return
            _log.error("process_ended", process=seat.number, code=code, reason=seat.reason)
            seat.rest(now_s)
        if not self._stop_by and now_s >= seat.next_s:
            self._start(seat)

    def _hear(self) -> None:
        """Take in what children have said since."""
        try:
            said = self._ours.recv(_SAID_BYTES_MAX, socket.MSG_DONTWAIT).decode()
        except BlockingIOError:
            return
        for line in said.splitlines():
            number, what, *reason = line.split(" ", 2)
            seat = self._seats[int(number)]
            seat.reason = " ".join(reason) if what == _ENDS else ""
            if what == _WAITS:
                self._awaited.update(told := set(reason) - self._awaited)
                for one in told:
                    self._on_wait(one)
            elif what == _READY:
                self._awaited.clear()
                if not any(one.was_ready for one in self._seats):
                    self._on_ready()
                seat.was_ready = True
                _log.info("process_ready", process=seat.number)

    def _give_up(self, seat: _WorkerSlot) -> None:
        if seat.reason:  # Else it has told of its end itself.
            click.echo(f"Error: {seat.reason}", err=True)
        self._code = _REFUSED
        self._begin_stop()

    def _begin_stop(self) -> None:
        if not self._stop_by:
            self._stop_by = time.monotonic() + self._stop_s_max
            self._tell(signal.SIGTERM)

    def _start(self, seat: _WorkerSlot) -> None:
        seat.started_s = time.monotonic()
        seat.reason = ""
        try:
            seat.process = self._spawn(seat)
        except OSError as error:
            # Too many processes, open files or no memory: that passes, and the others answer meanwhile.
            _log.error("process_not_started", process=seat.number, reason=error.strerror)
            seat.rest(seat.started_s)

    def _spawn(self, seat: _WorkerSlot) -> subprocess.Popen[bytes]:
        descriptors = (self._listener.fileno(), self._theirs.fileno())
        return subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            [
                *(sys.executable, "-P", "-m", "vettance.cli", "serve", *self._arguments),
                *("--role", seat.role.value, "--seat", ".".join(map(str, (seat.number, *descriptors)))),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=(*descriptors, *self._board.descriptors),
            env={**os.environ, **self._board.place(seat.number)},
            # A terminal's Ctrl-C is for the parent, who tells the children; its mask is not theirs.
            start_new_session=True,
            preexec_fn=_unmask,  # noqa: PLW1509 - there are no threads here
        )

    def _tell(self, number: int) -> None:
        for seat in self._seats:
            if seat.process is not None and seat.process.poll() is None:
                seat.process.send_signal(number)


def _unmask() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
