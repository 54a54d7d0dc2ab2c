"""The values of one busy series, each with the moment it was last observed."""

from array import array
from bisect import bisect_left, bisect_right, insort_right
from math import inf
from typing import Final

#: Values kept for one series of one key. Beyond it those longest unseen are forgotten, and answers that reach
#: back to them are marked inexact: nobody decides otherwise at 10,000 devices of a customer than at 9,000.
VALUES_MAX: Final = 10_000
FORGET_AT_ONCE: Final = 1000  # so that forgetting costs little on average

Word = int | float


class LatestValues:
    """Answers `distinct` and `seen` over every window at once, exactly as long as events come in order."""

    __slots__ = ("forgotten_ms", "moments", "of")

    def __init__(self) -> None:
        self.of: dict[Word, int] = {}
        self.moments = array("q")  # of all values, sorted
        self.forgotten_ms = -inf  # values last observed at or before this moment may be missing

    def add(self, value: Word, at_ms: int) -> None:
        """Remember that `value` was observed at `at_ms`, in whatever order the moments come."""
        moments = self.moments
        before_ms = self.of.get(value)
        if before_ms is not None:
            if at_ms <= before_ms:
                return
            del moments[bisect_left(moments, before_ms)]
        self.of[value] = at_ms
        insort_right(moments, at_ms)
        self.fit()

    def fit(self) -> None:
        """Forget the values longest unseen when there are too many."""
        if len(self.moments) > VALUES_MAX:
            until_ms = self.moments[FORGET_AT_ONCE - 1]
            self.forgotten_ms = max(self.forgotten_ms, until_ms)
            self.drop(until_ms)

    def drop(self, until_ms: int) -> None:
        """Let go of the values last observed at or before `until_ms`."""
        gone = bisect_right(self.moments, until_ms)
        if gone:
            del self.moments[:gone]
            self.of = {value: moment for value, moment in self.of.items() if moment > until_ms}

    def distinct(self, start_ms: int, at_ms: int) -> tuple[int, bool]:
        """Return how many values were last observed in (start_ms, at_ms], and whether that is exact.

        For an event behind the newest observation it is not: a value observed in the window and again later
        counts only at its later moment.
        """
        moments = self.moments
        end = bisect_right(moments, at_ms)
        is_exact = end == len(moments) and start_ms >= self.forgotten_ms
        return end - bisect_right(moments, start_ms), is_exact

    def last_ms(self, value: Word, start_ms: int, at_ms: int) -> tuple[int | None, bool]:
        """Return when `value` was last observed, and whether that is exact for (start_ms, at_ms]."""
        last_ms = self.of.get(value)
        return last_ms, start_ms >= self.forgotten_ms if last_ms is None else last_ms <= at_ms
