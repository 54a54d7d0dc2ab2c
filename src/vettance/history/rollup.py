"""How a span of time is counted from whole days, whole minutes and the edges around them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from vettance.decisions.decision import Outcome
from vettance.decisions.searchable_fields import REASONS
from vettance.decisions.sql import DAY_S, MINUTE_S
from vettance.history.segment import OUTCOME_MASK, OUTCOMES, Array
from vettance.history.sql import Part

HOUR_S: Final = 3_600
END_MS: Final = 253_402_300_800_000  # The year 10000, at midnight: later than any event.
_BY_MINUTE_S_MAX: Final = 3 * HOUR_S
_BY_HOUR_S_MAX: Final = 7 * DAY_S
_REVIEW: Final = OUTCOMES.index(Outcome.REVIEW)
_BLOCK: Final = OUTCOMES.index(Outcome.BLOCK)

Edge = tuple[int, int]  # From a moment to another one (exclusive), in Unix milliseconds.


class Count(msgspec.Struct):
    """What is counted of some decisions."""

    evaluated: int = 0
    review: int = 0
    block: int = 0
    score_sum: int = 0

    def add(self, evaluated: int, review: int, block: int, score_sum: int) -> None:
        """Add what was counted elsewhere."""
        self.evaluated += evaluated
        self.review += review
        self.block += block
        self.score_sum += score_sum


class SpanCounts(msgspec.Struct):
    """The counts of a span: in all, by buckets (their start, in seconds) and by reason codes."""

    bucket_s: int
    totals: Count = msgspec.field(default_factory=Count)
    buckets: dict[int, Count] = msgspec.field(default_factory=dict)
    codes: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, bucket_s: int, evaluated: int, review: int, block: int, score_sum: int) -> None:
        """Add what was counted of a bucket."""
        self.totals.add(evaluated, review, block, score_sum)
        self.buckets.setdefault(bucket_s, Count()).add(evaluated, review, block, score_sum)

    def add_codes(self, counts: Iterable[tuple[str, int]]) -> None:
        """Add how often each of some codes was a reason."""
        for code, count in counts:
            self.codes[code] = self.codes.get(code, 0) + count

    def add_like(self, bucket_s: int, codes: Sequence[str], counts: Sequence[int]) -> None:
        """Add decisions that have a bucket and their reason codes in common; `counts` as in `Count.add`."""
        self.add(bucket_s, *counts)
        self.add_codes((code, counts[0]) for code in codes)

    def add_columns(self, columns: Mapping[str, Array], edge: Edge) -> dict[int, int]:
        """Add those decisions of a chunk that lie in an edge; return how often each term was a reason."""
        moments = columns["occurred_at_ms"]
        inside = (moments >= edge[0]) & (moments < edge[1])
        if not inside.any():
            return {}
        outcomes = columns["verdict"][inside] & np.uint8(OUTCOME_MASK)
        buckets = moments[inside] // 1000
        buckets -= buckets % self.bucket_s
        scores = columns["score"][inside].astype(np.int64)
        for bucket in np.unique(buckets):
            here = buckets == bucket
            review, block = ((outcomes[here] == code).sum() for code in (_REVIEW, _BLOCK))
            self.add(int(bucket), int(here.sum()), int(review), int(block), int(scores[here].sum()))
        pairs = columns[REASONS]
        terms, counts = np.unique(pairs["term"][inside[pairs["place"]]], return_counts=True)
        return dict(zip(terms.tolist(), counts.tolist(), strict=True))


class Split(NamedTuple):
    """A span cut into parts of the rollup and edges that are counted decision by decision."""

    parts: list[Part]
    edges: list[Edge]


def bucket_width(span_ms: int) -> int:
    """Choose the width of the buckets of a span, in seconds: minutes up to 3 hours, hours up to 7 days."""
    if span_ms <= _BY_MINUTE_S_MAX * 1000:
        return MINUTE_S
    return HOUR_S if span_ms <= _BY_HOUR_S_MAX * 1000 else DAY_S


def split(first_ms: int, end_ms: int, bucket_s: int) -> Split:
    """Cut a span into rows of the rollup, as wide as the buckets allow, and the rest."""
    low, high, edges = _whole(first_ms, end_ms, MINUTE_S)
    if low >= high:
        return Split([], edges)
    parts: list[Part] = [(MINUTE_S, low, high)]
    if bucket_s == DAY_S:
        first_day, end_day, _ = _whole(low * 1000, high * 1000, DAY_S)
        if first_day < end_day:
            parts = [(MINUTE_S, low, first_day), (DAY_S, first_day, end_day), (MINUTE_S, end_day, high)]
    return Split([part for part in parts if part[1] < part[2]], edges)


def split_minutes(first_ms: int, end_ms: int) -> list[Part]:
    """Cut the whole minutes that a span touches into rows of the rollup."""
    width_ms = MINUTE_S * 1000
    return split(first_ms - first_ms % width_ms, end_ms + -end_ms % width_ms, DAY_S).parts


def split_days(first_ms: int, end_ms: int) -> tuple[int, int, list[Edge]]:
    """Cut a span into whole days (their first and their end, in seconds) and the rest."""
    return _whole(first_ms, end_ms, DAY_S)


def _whole(first_ms: int, end_ms: int, width_s: int) -> tuple[int, int, list[Edge]]:
    width_ms = width_s * 1000
    low, high = -(-first_ms // width_ms) * width_s, end_ms // width_ms * width_s
    if low >= high:
        return low, low, [(first_ms, end_ms)] if first_ms < end_ms else []
    edges = [(first_ms, low * 1000), (high * 1000, end_ms)]
    return low, high, [edge for edge in edges if edge[0] < edge[1]]
