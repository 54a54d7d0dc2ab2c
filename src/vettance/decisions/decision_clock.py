"""When decisions are made: each no earlier than the one before it, unless a clock was far wrong."""

from collections.abc import Callable

from vettance.velocity.plan_layout import AHEAD_MS


class DecisionClock:
    """The clock by which a process dates its decisions, in Unix milliseconds.

    A clock that is set back a little dates decisions by the newest moment before, since the history is in the
    order in which they were made. One that was far ahead and is right again dates them rightly at once, and
    the history keeps some in it that were dated wrongly.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._newest_ms = 0

    def floor(self, evaluated_at_ms: int) -> None:
        """Heed the newest decision of the log, which another process may have dated."""
        self._newest_ms = max(self._newest_ms, evaluated_at_ms)

    def date(self) -> int:
        """Return the moment of the next decision."""
        now_ms = self._now_ms()
        self._newest_ms = now_ms if self._newest_ms > now_ms + AHEAD_MS else max(now_ms, self._newest_ms)
        return self._newest_ms
