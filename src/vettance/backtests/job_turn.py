"""The turn of a job: how long it works before another tenant's may, and how its process gives it up."""

import sys
import time
from collections.abc import Callable
from typing import Final

from vettance.wire.payload import JSON, encode

#: How long a job works while others wait. A process stops where it holds no read open, soon after.
TURN_S: Final = 10.0
#: How long a job may work, its waits for others left out: ten times what five million decisions take.
WORK_S_MAX: Final = 3_600
#: What a process says between two turns, and what it reads before the second one.
TURN_OVER: Final = "turnIsOver"
GO_ON: Final = b"\n"


def say(said: JSON) -> None:
    """Write one line to the parent."""
    sys.stdout.buffer.write(encode(said) + b"\n")
    sys.stdout.buffer.flush()


class JobTurn:
    """The turn of this process. `pause` waits for the next one when it is over."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._until_s = now_s() + TURN_S

    def pause(self) -> None:
        """Give up a turn that is over, and wait for the next one; ends the process when its parent is gone.

        To be called between two pieces of the work, by a process that does nothing else.
        """
        if self._now_s() < self._until_s:
            return
        say({TURN_OVER: True})
        if sys.stdin.buffer.readline() != GO_ON:
            raise SystemExit(1)
        self._until_s = self._now_s() + TURN_S
