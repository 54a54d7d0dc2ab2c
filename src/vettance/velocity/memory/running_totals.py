"""Running totals of one window of one busy series, updated as events come in order."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from math import fsum, inf
from typing import Any, Final, Protocol

from vettance.velocity.aggregates import Summary, questions_of, summary_needs
from vettance.velocity.memory.sub_buckets import SubBuckets
from vettance.velocity.plan_layout import Window


class Entries(Protocol):
    """What a series keeps one by one: nothing that happened at or before `left_ms` is missing."""

    left_ms: float
    moments: Any
    values: Any


class RunningTotals:
    """The totals of a window that ends at the newest observation, for moments before `until_ms`.

    Until then nothing leaves the window, so an observation in order only adds to the totals, and a question
    reads them. At `until_ms` they are made anew: from the raw entries where these cover the window, from the
    sub-buckets beyond. A sum is kept with what rounding took from it in `spare` (the two-sum of D. E. Knuth,
    "The Art of Computer Programming" 2, 4.2.2, theorem B): it is as good as the exact one.
    """

    __slots__ = (
        "bits",
        "buckets",
        "entries",
        "first_ms",
        "greatest",
        "inexact",
        "least",
        "span_ms",
        "spare",
        "total",
        "until_ms",
        "whole_until_ms",
        "with_greatest",
        "with_least",
        "with_sums",
    )

    def __init__(self, window: Window) -> None:
        needs = summary_needs(window.questions)
        self.span_ms = window.span_ms
        self.bits = sum(1 << index for index, _ in questions_of(window.questions, Summary.TOTALS))
        self.with_sums = "total" in needs
        self.with_least = "least" in needs
        self.with_greatest = "greatest" in needs
        self.buckets: SubBuckets | None = None
        self.entries = 0
        self.total = self.spare = 0.0
        self.least, self.greatest = inf, -inf
        self.first_ms = 0
        self.inexact = 0
        self.until_ms: float = -inf
        # Until then the totals are valid, though they hold the whole of a bucket that the window cuts.
        self.whole_until_ms: float = -inf

    def forget(self) -> None:
        """Have the totals made anew at the next question: something was recorded out of order."""
        self.until_ms = self.whole_until_ms = -inf

    def renew(self, series: Entries, at_ms: int) -> None:
        """Make the totals anew for a moment that no observation is newer than."""
        start_ms = at_ms - self.span_ms
        if start_ms >= series.left_ms:
            self._renew_from_entries(series, start_ms)
        elif at_ms < self.whole_until_ms:
            self.until_ms = self.whole_until_ms
            self.first_ms = int(self.whole_until_ms) - self.span_ms
            self.inexact = self.bits
        else:
            self._renew_from_buckets(start_ms)

    def _renew_from_entries(self, series: Entries, start_ms: int) -> None:
        moments, values = series.moments, series.values
        start = bisect_right(moments, start_ms)
        before, was_exact = self.entries, self.until_ms > -inf and not self.inexact
        self.entries = entries = len(moments) - start
        self.inexact = 0
        self.whole_until_ms = -inf
        if not entries:
            self.until_ms = -inf
            return
        self.first_ms = moments[start]
        if values is not None and (self.with_sums or self.with_least or self.with_greatest):
            gone = before - entries
            if was_exact and 0 < gone < entries // 4 and gone <= start:
                self._take_off(values[start - gone : start], values, start)
            else:
                self._sum_up(values[start:])
        self.until_ms = self.first_ms + self.span_ms

    def _take_off(self, leaving: Any, values: Any, start: int) -> None:
        """Take what leaves off the totals, unless that would cost them their precision."""
        total, spare = self.total, self.spare
        if self.with_sums:
            for value in leaving:
                less = total - value
                back = less - total
                spare += (total - (less - back)) - (value + back)
                total = less
        most, least = max(leaving), min(leaving)
        if (
            (self.with_greatest and most >= self.greatest)
            or (self.with_least and least <= self.least)
            or (self.with_sums and max(most, -least) > 1e6 * abs(total))
        ):
            self._sum_up(values[start:])
        else:
            self.total, self.spare = total, spare

    def _sum_up(self, held: Any) -> None:
        if self.with_sums:
            self.total, self.spare = _sum_of(held)
        if self.with_least:
            self.least = min(held)
        if self.with_greatest:
            self.greatest = max(held)

    def _renew_from_buckets(self, start_ms: int) -> None:
        buckets = self.buckets
        assert buckets is not None
        place, until_ms, first_ms, is_exact = buckets.edge(start_ms)
        self.inexact = 0 if is_exact else self.bits
        self.whole_until_ms = -inf
        counts = buckets.counts
        self.entries = sum(counts[place:])
        if not self.entries:
            self.until_ms = -inf
            return
        self.first_ms, self.until_ms = first_ms, until_ms
        if is_exact and buckets.lasts[place] > first_ms:
            self.whole_until_ms = buckets.lasts[place] + self.span_ms
        if self.with_sums:
            self.total, self.spare = _sum_of(buckets.sums[place:])
        if self.with_least:
            self.least = min(buckets.least[place:])
        if self.with_greatest:
            self.greatest = max(buckets.greatest[place:])

    def state(self) -> tuple[Any, ...]:
        """Return the totals without the inexact bits, for a snapshot; `restore` takes them back."""
        return tuple(getattr(self, name) for name in _STATE)

    def restore(self, state: Sequence[Any]) -> None:
        """Take over the totals of a snapshot."""
        for name, value in zip(_STATE, state, strict=True):
            setattr(self, name, value)


def _sum_of(values: Sequence[float]) -> tuple[float, float]:
    """Return a sum and what rounding took from it: much of what is left when large values cancel out."""
    total = fsum(values)
    return total, fsum(chain(values, (-total,)))


_STATE: Final = (
    "until_ms",
    "whole_until_ms",
    "entries",
    "total",
    "spare",
    "least",
    "greatest",
    "first_ms",
)
