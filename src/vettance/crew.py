"""The crew: several processes that serve one port, started by a parent that does nothing but see to them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

import structlog

from vettance.ops.board import Board
from vettance.settings import Role

_PAUSE_S_MIN: Final = 0.2
_PAUSE_S_MAX: Final = 5.0
#: A child that ends sooner than this was not able to start.
_STEADY_S: Final = 10.0
#: From the signal to the end: what a child may take to drain, and a little more.
STOP_S_MAX: Final = 17.0

_log = structlog.get_logger()


class _Seat:
    """The place of one child, whichever process takes it at the moment."""

    def __init__(self, number: int, role: Role) -> None:
        self.number = number
        self.role = role
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.next_s = 0.0
        self.pause_s = _PAUSE_S_MIN


class Crew:
    """Keeps some processes on one socket. Each is started again when it ends; all end with the parent."""

    def __init__(self, listener: socket.socket, count: int, role: Role, arguments: Sequence[str]) -> None:
        self._listener = listener
        self._arguments = arguments
        self._board = Board.shared()
        # One of them does what has to be done once; the others only answer.
        self._seats = [_Seat(number, role if number == 0 else Role.WEB) for number in range(count)]
        # Nothing is ever written to it: its end tells the children that the parent is gone, be it by SIGKILL.
        self._ours, self._theirs = socket.socketpair()
        self._stop_by = 0.0

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then until every child has drained; return the exit code."""
        watched = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        while True:
            for seat in self._seats:
                self._see_to(seat)
            if self._stop_by and not any(seat.process for seat in self._seats):
                return 0
            found = signal.sigtimedwait(watched, 0.25)
            if found is not None and found.si_signo != signal.SIGCHLD and not self._stop_by:
                self._stop_by = time.monotonic() + STOP_S_MAX
                self._tell(signal.SIGTERM)
            if self._stop_by and time.monotonic() > self._stop_by:
                self._tell(signal.SIGKILL)

    def _see_to(self, seat: _Seat) -> None:
        now_s = time.monotonic()
        if seat.process is not None:
            code = seat.process.poll()
            if code is None:
                return
            seat.process = None
            if self._stop_by:
                return
            _log.error("process_ended", process=seat.number, code=code)
            is_steady = now_s - seat.started_s > _STEADY_S
            seat.pause_s = _PAUSE_S_MIN if is_steady else min(_PAUSE_S_MAX, seat.pause_s * 2)
            seat.next_s = now_s + seat.pause_s
        if not self._stop_by and now_s >= seat.next_s:
            self._start(seat)

    def _start(self, seat: _Seat) -> None:
        descriptors = (self._listener.fileno(), self._theirs.fileno())
        seat.started_s = time.monotonic()
        seat.process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            [
                *(sys.executable, "-P", "-m", "vettance.cli", "serve", *self._arguments),
                *("--role", seat.role.value, "--seat", f"{descriptors[0]}.{descriptors[1]}"),
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
