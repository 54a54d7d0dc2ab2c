"""Outages: the log reports one when it begins, now and then while it lasts, and when it ends.

The code that asks a server notes how each question ended; code that waits for it, or refuses, logs nothing.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from vettance.telemetry.logs import logger

#: An outage that lasts is logged again after so long.
TELL_S: Final = 60.0
#: What has answered for so long is back. One that answers every other question is not.
SETTLED_S: Final = 3.0

_log = logger()


class Outage:
    """Whether one thing (`what`, such as the store) answers this process, told to the log as it changes."""

    def __init__(self, what: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._now_s = now_s
        self._since_s = 0.0
        self._told_s = 0.0
        self._well_since_s: float | None = None
        #: Whether there is an outage; it lasts until there were answers for some time.
        self.is_down = False

    def down(self, reason: str) -> None:
        """Take note that a question had no answer; `reason` is a sentence that repeats nobody's data."""
        now_s = self._now_s()
        self._well_since_s = None
        if not self.is_down:
            self.is_down = True
            self._since_s = self._told_s = now_s
            _log.warning(f"{self._what}_down", reason=reason, pid=os.getpid())
        elif now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            since_s = round(now_s - self._since_s, 1)
            _log.warning(f"{self._what}_still_down", reason=reason, down_s=since_s, pid=os.getpid())

    def up(self) -> None:
        """Take note that a question was answered."""
        if not self.is_down:
            return
        now_s = self._now_s()
        if self._well_since_s is None:
            self._well_since_s = now_s
        if now_s - self._well_since_s >= SETTLED_S:
            self.is_down = False
            down_s = round(self._well_since_s - self._since_s, 1)
            _log.warning(f"{self._what}_back", down_s=down_s, pid=os.getpid())
