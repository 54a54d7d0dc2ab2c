"""Sub-buckets: a window over more observations than are kept one by one, at a cost that stays flat.

The idea of cutting a sliding window into sub-windows of equal length, each kept as a total, is that of the
"basic window" of Zhu and Shasha, "StatStream" (VLDB 2002).
"""

import math
from array import array
from typing import Any, Final

from vettance.velocity.aggregates import Summary, WindowTotals, questions_of, summary_needs
from vettance.velocity.plan_layout import Window

BUCKETS: Final = 64  # for each window: the edge that may be off is at most a 64th of the window long
#: Buckets kept behind those of the newest window, for late events and for one event that is ahead of the
#: others: five minutes of a window of one, and a window more.
LATE_BUCKETS_MAX: Final = 352


EMPTY: Final = WindowTotals(0, 0.0, math.inf, -math.inf, None)


class SubBuckets:
    """One window of one busy series, on a grid of sub-buckets of equal width from the epoch on.

    The arrays run in step: index 0 is the bucket `base`; those that nobody asks for stay empty. While events
    come in order, the code of `busy_codegen.py` counts them in the bucket at `head` itself.
    """

    __slots__ = (
        "base",
        "bits",
        "counts",
        "firsts",
        "greatest",
        "head",
        "head_until_ms",
        "lasts",
        "least",
        "lost",
        "others",
        "questions",
        "room",
        "span_ms",
        "sums",
        "width_ms",
        "with_greatest",
        "with_least",
        "with_sums",
    )

    def __init__(self, window: Window, kept_ms: int) -> None:
        self.questions = questions_of(window.questions, Summary.TOTALS)
        self.others = tuple(pair for pair in window.questions if pair not in self.questions)
        self.bits = sum(1 << index for index, _ in self.questions)
        needs = summary_needs(self.questions)
        self.span_ms = span_ms = window.span_ms
        self.width_ms = -(-span_ms // BUCKETS)
        late = -(-(kept_ms - span_ms) // self.width_ms)
        self.room = BUCKETS + 2 + min(late, LATE_BUCKETS_MAX)
        self.with_sums = "total" in needs
        self.with_least = "least" in needs
        self.with_greatest = "greatest" in needs
        self.base = 0
        self.lost = -math.inf  # the newest bucket that is no longer kept, or was too old to keep
        self.counts = array("q")
        self.firsts = array("q")
        self.lasts = array("q")
        self.sums = array("d")
        self.least = array("d")
        self.greatest = array("d")
        self.head = 0  # the place of the newest bucket, for moments before `head_until_ms`
        self.head_until_ms = -math.inf

    def open(self, at_ms: int) -> int:
        """Return the place of the bucket of an observation that none is newer than, now the newest bucket."""
        bucket = at_ms // self.width_ms
        place = bucket - self.base
        if not 0 <= place < len(self.counts):
            place = self._make_room(bucket)
        if not self.counts[place]:
            self.firsts[place] = at_ms
        self.head, self.head_until_ms = place, (bucket + 1) * self.width_ms
        return place

    def add(self, at_ms: int, value: float) -> None:
        """Count an observation in the bucket of its own time, in whatever order they come."""
        self.head_until_ms = -math.inf
        bucket = at_ms // self.width_ms
        place = bucket - self.base
        if not 0 <= place < len(self.counts):
            place = self._make_room(bucket)
            if place < 0:
                return
        if self.counts[place]:
            self.counts[place] += 1
            if at_ms > self.lasts[place]:
                self.lasts[place] = at_ms
            elif at_ms < self.firsts[place]:
                self.firsts[place] = at_ms
        else:
            self.counts[place] = 1
            self.firsts[place] = self.lasts[place] = at_ms
        if self.with_sums:
            self.sums[place] += value
        if self.with_least and value < self.least[place]:
            self.least[place] = value
        if self.with_greatest and value > self.greatest[place]:
            self.greatest[place] = value

    def arrays(self) -> list[tuple["array[Any]", Any]]:
        """Return the arrays in use, each with the value of an empty bucket."""
        arrays: list[tuple[array[Any], Any]] = [(self.counts, 0), (self.firsts, 0), (self.lasts, 0)]
        if self.with_sums:
            arrays.append((self.sums, 0.0))
        if self.with_least:
            arrays.append((self.least, math.inf))
        if self.with_greatest:
            arrays.append((self.greatest, -math.inf))
        return arrays

    def _make_room(self, bucket: int) -> int:
        """Let the arrays reach `bucket` and return its place, or -1 when it is too old to be kept."""
        length = len(self.counts)
        if not length:
            self.base = bucket
        before, behind = self.base - bucket, bucket - self.base - length + 1
        if before > 0 and length + before > self.room:
            self.lost = max(self.lost, bucket)
            return -1
        if behind >= self.room:
            # Everything kept is older than anything that can still be asked about.
            self.lost = max(self.lost, self.base + length - 1)
            self.base, before, behind = bucket, 0, 1
            for values, _ in self.arrays():
                del values[:]
        for values, empty in self.arrays():
            if before > 0:
                values[:0] = array(values.typecode, [empty]) * before
            else:
                values.extend(array(values.typecode, [empty]) * behind)
        if before > 0:
            self.base = bucket
        surplus = len(self.counts) - self.room
        if surplus >= self.room // 4:
            for values, _ in self.arrays():
                del values[:surplus]
            self.base += surplus
            self.lost = max(self.lost, self.base - 1)
        return bucket - self.base

    def edge(self, start_ms: int) -> tuple[int, float, int, bool]:
        """Return where a window begins that nothing ends before: (place, until_ms, first_ms, is_exact).

        From `place` on everything counts, until `until_ms`; what counts began at `first_ms`. Where in a
        bucket the window begins is not known, so the whole of it counts, and that is not exact.
        """
        bucket = start_ms // self.width_ms
        place, is_exact = bucket - self.base, self.lost < bucket
        counts, length = self.counts, len(self.counts)
        if 0 <= place < length and counts[place]:
            if self.lasts[place] > start_ms >= self.firsts[place]:
                first_ms = self.lasts[place]
                return place, first_ms + self.span_ms, first_ms, False
            if self.lasts[place] <= start_ms:
                place += 1
        place = max(place, 0)
        while place < length and not counts[place]:
            place += 1
        if place >= length:
            return length, -math.inf, 0, is_exact
        return place, self.firsts[place] + self.span_ms, self.firsts[place], is_exact

    def between(self, after: int, before: int) -> WindowTotals:
        """Return the totals strictly between two buckets."""
        start, end = max(after + 1 - self.base, 0), max(before - self.base, 0)
        counts = self.counts[start:end]
        entries = sum(counts)
        if not entries:
            return EMPTY
        return WindowTotals(
            entries,
            sum(self.sums[start:end]) if self.with_sums else 0.0,
            min(self.least[start:end]) if self.with_least else math.inf,
            max(self.greatest[start:end]) if self.with_greatest else -math.inf,
            self.firsts[start + next(place for place, held in enumerate(counts) if held)],
        )

    def whole(self, place: int, first_ms: int) -> WindowTotals:
        """Return the totals of the bucket at a place, with `first_ms` as its first moment."""
        return WindowTotals(
            self.counts[place],
            self.sums[place] if self.with_sums else 0.0,
            self.least[place] if self.with_least else math.inf,
            self.greatest[place] if self.with_greatest else -math.inf,
            first_ms,
        )


def join(older: WindowTotals, newer: WindowTotals) -> WindowTotals:
    """Return the totals of two spans together."""
    return WindowTotals(
        older.entries + newer.entries,
        older.total + newer.total,
        min(older.least, newer.least),
        max(older.greatest, newer.greatest),
        newer.first_ms if older.first_ms is None else older.first_ms,
    )
