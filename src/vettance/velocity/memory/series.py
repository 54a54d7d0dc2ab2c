"""Series: one stream of observations of a busy key, exact up to 256 entries and in sub-buckets beyond."""

from array import array
from bisect import bisect_left, bisect_right, insort_right
from collections.abc import Sequence
from math import fsum, inf
from typing import Any, Final

from vettance.velocity.aggregates import Questions, Summary, WindowTotals, questions_of
from vettance.velocity.answer_codegen import summarize_of
from vettance.velocity.memory.last_seen import LatestValues
from vettance.velocity.memory.packed_record import Word
from vettance.velocity.memory.running_totals import RunningTotals
from vettance.velocity.memory.sub_buckets import SubBuckets, join
from vettance.velocity.plan_layout import SLACK, SeriesSlot
from vettance.velocity.port import Value

#: Entries kept one by one. A window that holds no more than these is answered exactly.
RAW_MAX: Final = 256
#: The oldest entries leave the raw ones in blocks, so that leaving costs O(1) on average.
LEAVE_AT_ONCE: Final = 64
#: Raw entries kept in addition to sub-buckets, before the oldest leave.
ROOM_WITH_BUCKETS: Final = RAW_MAX + LEAVE_AT_ONCE


class ObservedSeries:
    """The newest observations one by one; when there are too many, also every window in sub-buckets.

    The buckets hold all observations, the newest are also in `moments` and `values` (both sorted by moment).
    Those that left them had moments up to `left_ms`: a window that begins there or later is covered by the
    raw entries. `runs` are the totals of each window as of `asked_ms`, the newest moment observed or asked
    about.

    An event no older than that is answered and recorded by what `busy_codegen.py` writes; what is here is for
    late events, and for what happens seldom.
    """

    __slots__ = (
        "asked_ms",
        "has_buckets",
        "latest",
        "left_ms",
        "moments",
        "newest_ms",
        "room",
        "runs",
        "stale_ms",
        "values",
    )

    def __init__(self, lane: SeriesSlot) -> None:
        self.moments = array("q")
        self.values: array[Any] | None = None
        if lane.slot >= 0:
            self.values = array("q" if lane.textual else "d")
        self.runs = tuple(
            RunningTotals(window) if questions_of(window.questions, Summary.TOTALS) else None
            for window in lane.windows
        )
        self.latest: LatestValues | None = LatestValues() if lane.keeps_latest else None
        self.has_buckets = False
        self.room = RAW_MAX  # raw entries before `spill` has to be called
        self.left_ms = -inf
        self.newest_ms: float = -inf
        self.asked_ms: float = -inf
        self.stale_ms: float = -inf  # the high water at which `tidy` has to look again

    def fill(self, moments: Sequence[int], values: Sequence[Word]) -> None:
        """Take over what was observed before, in the order of its moments."""
        self.moments.extend(moments)
        self.newest_ms = self.asked_ms = moments[-1]
        if self.values is not None:
            self.values.extend(values)
            if self.latest is not None:
                for value, at_ms in zip(values, moments, strict=True):
                    self.latest.add(value, at_ms)

    def ask_late(self, lane: SeriesSlot, at_ms: int, own: Sequence[Any], answers: list[Value]) -> int:
        """Put the answers of every window that is not empty into `answers`; return the inexact bits."""
        end = bisect_right(self.moments, at_ms)
        word = own[lane.slot] if lane.slot >= 0 else None
        inexact = 0
        for (span_ms, questions, scan), run in zip(lane.windows, self.runs, strict=True):
            start_ms = at_ms - span_ms
            if start_ms >= self.left_ms:
                start = bisect_right(self.moments, start_ms, 0, end)
                if start < end:
                    scan(self.moments, self.values, start, end, at_ms, word, answers)
                continue
            others = questions
            if run is not None and run.buckets is not None:
                others = run.buckets.others
                inexact |= self._estimate(run.buckets, at_ms, end, answers)
            inexact |= self._ask_others(others, start_ms, at_ms, end, word, answers)
        return inexact

    def _ask_others(
        self,
        questions: Questions,
        start_ms: int,
        at_ms: int,
        end: int,
        word: Word | None,
        answers: list[Value],
    ) -> int:
        """Answer what buckets cannot, for a window beyond the raw entries; return the inexact bits."""
        latest, inexact = self.latest, 0
        for index, kind in questions:
            kept: Any
            is_known, is_exact = True, True
            if latest is not None and kind.summary is Summary.DISTINCT:
                kept, is_exact = latest.distinct(start_ms, at_ms)
            elif latest is not None and kind.summary is Summary.OWN:
                if word is None:
                    continue  # Unknown, as the caller notes.
                kept, is_exact = latest.last_ms(word, start_ms, at_ms)
                is_known = kept is not None
            elif end:
                kept = self.moments[end - 1], None if self.values is None else self.values[end - 1]
            else:
                # Of what has left the raw entries the order is not known any more.
                answers[index], is_known, is_exact = None, False, False
            if is_known:
                answers[index] = summarize_of(kind)(at_ms, start_ms, kept)
            if not is_exact:
                inexact |= 1 << index
        return inexact

    def _estimate(self, buckets: SubBuckets, at_ms: int, end: int, answers: list[Value]) -> int:
        """Answer what is asked of buckets for a late moment; return the inexact bits."""
        held, is_exact, are_extremes_exact = self._stretch(buckets, at_ms, end)
        inexact = 0
        for index, kind in buckets.questions:
            if held.entries:
                answers[index] = summarize_of(kind)(at_ms, at_ms - buckets.span_ms, held)
            if not (are_extremes_exact if kind.reads_extremes else is_exact):
                inexact |= 1 << index
        return inexact

    def _stretch(self, buckets: SubBuckets, at_ms: int, end: int) -> tuple[WindowTotals, bool, bool]:
        """Return the totals of a window before a late moment, and whether totals and extremes are exact."""
        start_ms = at_ms - buckets.span_ms
        edge_bucket, head_bucket = start_ms // buckets.width_ms, at_ms // buckets.width_ms
        counts, length = buckets.counts, len(buckets.counts)
        is_exact = buckets.lost < edge_bucket
        held = buckets.between(edge_bucket, head_bucket)
        place = edge_bucket - buckets.base
        if 0 <= place < length and counts[place] and buckets.lasts[place] > start_ms:
            if buckets.firsts[place] > start_ms:
                held = join(buckets.whole(place, buckets.firsts[place]), held)
            else:
                held = join(buckets.whole(place, buckets.lasts[place]), held)
                is_exact = False
        is_least_exact = is_exact
        place = head_bucket - buckets.base
        if 0 <= place < length and counts[place] and buckets.firsts[place] <= at_ms:
            head = buckets.whole(place, buckets.firsts[place])
            if buckets.lasts[place] > at_ms:
                # What is newer than the event is taken off again, as far as the raw entries tell.
                behind = bisect_left(self.moments, (head_bucket + 1) * buckets.width_ms, end)
                newer = 0.0
                if buckets.with_sums and self.values is not None:
                    newer = fsum(self.values[end:behind])
                head = head._replace(entries=head.entries - behind + end, total=head.total - newer)
                is_exact = is_exact and at_ms >= self.left_ms
                is_least_exact = False
            held = join(held, head)
        return held, is_exact, is_least_exact

    def add(self, lane: SeriesSlot, at_ms: int, words: Sequence[Any]) -> int:
        """Record an observation at its own time; return by how many the raw entries grew.

        Of observations with one moment the later comes last.
        """
        moments, values = self.moments, self.values
        word = words[lane.slot] if lane.slot >= 0 else 0
        before = len(moments)
        self.asked_ms = max(self.asked_ms, at_ms)
        if at_ms >= self.newest_ms:
            self.newest_ms = at_ms
            moments.append(at_ms)
            if values is not None:
                values.append(word)
        elif at_ms >= self.left_ms:
            if values is not None:
                values.insert(bisect_right(moments, at_ms), word)
            insort_right(moments, at_ms)
        for run in self.runs:
            if run is not None:
                run.forget()
                if run.buckets is not None:
                    run.buckets.add(at_ms, word)
        if self.latest is not None:
            self.latest.add(word, at_ms)
        grown = len(moments) - before
        if len(moments) > self.room:
            grown -= self.spill(lane)
        return grown

    def spill(self, lane: SeriesSlot) -> int:
        """Begin sub-buckets, or let the oldest raw entries go, when these are more than there is room for.

        Returns how many raw entries went.
        """
        if not self.has_buckets:
            self._begin_buckets(lane)
            return 0
        moments = self.moments
        self.left_ms = max(self.left_ms, moments[LEAVE_AT_ONCE - 1])
        del moments[:LEAVE_AT_ONCE]
        if self.values is not None:
            del self.values[:LEAVE_AT_ONCE]
        return LEAVE_AT_ONCE

    def _begin_buckets(self, lane: SeriesSlot) -> None:
        self.has_buckets = True
        self.room = ROOM_WITH_BUCKETS
        values = self.values if self.values is not None else array("q", bytes(8 * len(self.moments)))
        for window, run in zip(lane.windows, self.runs, strict=True):
            if run is not None:
                run.buckets = buckets = SubBuckets(window, lane.kept_ms)
                for at_ms, word in zip(self.moments, values, strict=True):
                    buckets.add(at_ms, word)

    def tidy(self, lane: SeriesSlot, high_ms: int) -> int:
        """Let go of what has expired when enough has; return how many raw entries that were."""
        gone = 0
        if self.moments[0] <= high_ms - lane.kept_ms - lane.kept_ms // SLACK:
            gone = self.drop(high_ms - lane.kept_ms)
        self.stale_ms = self.moments[0] + lane.kept_ms + lane.kept_ms // SLACK if self.moments else -inf
        return gone

    def drop(self, until_ms: int) -> int:
        """Let go of what was observed at or before `until_ms`; return how many raw entries that were."""
        gone = bisect_right(self.moments, until_ms)
        if gone:
            del self.moments[:gone]
            if self.values is not None:
                del self.values[:gone]
            if not self.moments:
                self._begin_anew()
        if self.has_buckets and len(self.moments) <= RAW_MAX and self.left_ms <= until_ms:
            self.has_buckets = False
            self.room = RAW_MAX
            self.left_ms = -inf
            for run in self.runs:
                if run is not None:
                    run.buckets = None
                    run.forget()
        if self.latest is not None and self.latest.moments:
            # Expired values are passed over when answering; they only take room.
            gone_values = bisect_right(self.latest.moments, until_ms)
            if gone_values * 4 >= len(self.latest.moments):
                self.latest.drop(until_ms)
        return gone

    def _begin_anew(self) -> None:
        self.newest_ms = self.asked_ms = -inf
        for run in self.runs:
            if run is not None:
                run.forget()
