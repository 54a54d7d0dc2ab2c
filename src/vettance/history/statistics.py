"""The statistics of a span, from the counts kept with each decision and single rows at its edges."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from vettance import clock
from vettance.db.engine import Store
from vettance.decisions.coverage import BODY_BYTES_MAX, NEWEST, Coverage, NewestEvent, cover
from vettance.decisions.decision import Outcome
from vettance.decisions.sql import DAY_S, LABELLED, select_newest_sent
from vettance.history import sql
from vettance.history.column_cache import SegmentOffsets
from vettance.history.decision_search import DecisionFinder, retry_on_change
from vettance.history.rollup import (
    END_MS,
    Edge,
    SpanCounts,
    bucket_width,
    split,
    split_days,
    split_minutes,
)
from vettance.history.segment import COUNTED_COLUMNS, COUNTED_ENTITIES, TERM, Array, keys_of
from vettance.terms import sql as terms_sql
from vettance.terms.find_terms import find_terms

_COUNTED: Final = ("occurred_at_ms", "score", "verdict", "reasons")
_KEYED: Final = ("occurred_at_ms", *COUNTED_COLUMNS)
#: Spans of whole days whose customers and devices are kept in memory, an eighth of a byte for each term.
_SPANS_KEPT: Final = 16
#: What a sender leaves out changes slowly, and reading the newest events takes as long as counting all.
_COVERED_MS: Final = 60_000
_COVERED_KEPT: Final = 1_000
_LATELY_MAX: Final = 100_000  # Texts kept with their numbers; a tail holds some thousand.


class Uniques(NamedTuple):
    """How many different customers and devices were seen."""

    customers: int
    devices: int


class LabelCount(NamedTuple):
    """How many pieces of feedback have a label, by the outcome of the decisions that they are on."""

    label: str
    allow: int
    review: int
    block: int


class _RecentTerms(NamedTuple):
    """The terms of texts that were read recently; removing or renaming terms raises the epoch."""

    tenant: str
    epoch: int
    numbers: dict[str, int]


class _DayRosters(NamedTuple):
    """Who was seen on some whole days: a bit for each term, packed, for each kind.

    `epoch` and `sizes` tell whether it still holds: within an epoch, the roster of a day only ever grows.
    """

    epoch: int
    sizes: list[Any]
    seen: dict[str, Array]


class DecisionCounter:
    """Counts decisions by event time, exactly, whatever the span."""

    def __init__(
        self, store: Store, finder: DecisionFinder, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._finder = finder
        self._now_ms = now_ms
        self._lately = _RecentTerms("", 0, {})
        self._days: OrderedDict[tuple[str, int, int], _DayRosters] = OrderedDict()
        self._covered: OrderedDict[str, tuple[int, Coverage]] = OrderedDict()

    @retry_on_change
    async def count(self, tenant: str, from_ms: int | None, to_ms: int | None) -> SpanCounts:
        """Count the decisions of [from, to); without a bound, from the first or to the last."""
        return await self._count(tenant, from_ms, to_ms)

    @retry_on_change
    async def outcomes(self, tenant: str, from_ms: int, to_ms: int) -> dict[Outcome, int]:
        """Count the decisions of [from, to) by their outcomes alone, for a part of the cost of `count`."""
        totals = (await self._count(tenant, from_ms, to_ms, with_codes=False)).totals
        approved = totals.evaluated - totals.review - totals.block
        return {Outcome.ALLOW: approved, Outcome.REVIEW: totals.review, Outcome.BLOCK: totals.block}

    async def _count(
        self,
        tenant: str,
        from_ms: int | None,
        to_ms: int | None,
        layout: SegmentOffsets | None = None,
        *,
        with_codes: bool = True,
    ) -> SpanCounts:
        """Do so. Raises `ChunksChanged`.

        `layout` is the tenant's, when it has been asked for already. Codes are a dozen times as many rows as
        decisions; they may be missing where nobody asks for them. They are counted for the span alone, by
        days where that can be.
        """
        start_ms = from_ms
        if start_ms is None:
            day_s = (await self._store.read(sql.select_first_day(tenant)))[0][0]
            start_ms = day_s * 1000 if day_s is not None else self._now_ms()
        span_ms = (to_ms if to_ms is not None else self._now_ms()) - start_ms
        span = SpanCounts(bucket_width(span_ms))
        parts, edges = split(from_ms or 0, END_MS if to_ms is None else to_ms, span.bucket_s)
        if layout is None:
            layout = await self._finder.layout(tenant) if edges else SegmentOffsets([])
        if parts:
            for row in await self._store.read(sql.select_counts(tenant, parts, span.bucket_s)):
                span.add(*row)
            if with_codes:
                by_days = split(from_ms or 0, END_MS if to_ms is None else to_ms, DAY_S).parts
                span.add_codes(await self._store.read(sql.select_codes(tenant, by_days)))
        for edge in edges:
            await self._add_edge(tenant, layout, edge, span, with_codes=with_codes)
        return span

    async def _add_edge(
        self, tenant: str, layout: SegmentOffsets, edge: Edge, span: SpanCounts, *, with_codes: bool
    ) -> None:
        terms: Counter[int] = Counter()
        touched = layout.chunks_between(*edge)
        async for _, columns in self._finder.each_chunk(tenant, _COUNTED, layout, touched):
            terms.update(span.add_columns(columns, edge))
        if terms and with_codes:
            for term, value in await self._store.read(terms_sql.select_term_values(tenant, list(terms))):
                span.codes[value] = span.codes.get(value, 0) + terms[term]
        newer = sql.count_newer(tenant, layout.through, *edge, span.bucket_s)
        for bucket_s, codes, *counts in await self._store.read(newer):
            span.add_like(bucket_s, codes.split(), counts)

    async def labels(self, tenant: str, from_ms: int, to_ms: int) -> list[LabelCount]:
        """Count the feedback on events of the whole minutes that [from, to) touches."""
        parts = split_minutes(from_ms, to_ms)
        if not parts:
            return []
        return [
            LabelCount(code.removeprefix(LABELLED), counted - review - block, review, block)
            for code, counted, review, block in await self._store.read(sql.select_labels(tenant, parts))
        ]

    @retry_on_change
    async def both(self, tenant: str, from_ms: int | None, to_ms: int | None) -> tuple[SpanCounts, Uniques]:
        """Count the decisions of [from, to), and the different customers and devices, but no codes."""
        layout = await self._finder.layout(tenant)
        return await asyncio.gather(
            self._count(tenant, from_ms, to_ms, layout, with_codes=False),
            self._uniques(tenant, from_ms, to_ms, layout),
        )

    async def cover(self, tenant: str) -> Coverage:
        """Tell what the newest events of a tenant lack, as of the last minute."""
        at_ms, found = self._covered.get(tenant, (0, None))
        if found is None or not 0 <= self._now_ms() - at_ms < _COVERED_MS:
            asked = select_newest_sent(tenant, NEWEST, BODY_BYTES_MAX)
            found = cover(NewestEvent.of(row) for row in await self._store.read(asked))
            self._covered[tenant] = (self._now_ms(), found)
            self._covered.move_to_end(tenant)
            while len(self._covered) > _COVERED_KEPT:
                self._covered.popitem(last=False)
        return found

    async def _uniques(
        self, tenant: str, from_ms: int | None, to_ms: int | None, layout: SegmentOffsets
    ) -> Uniques:
        """Count the different customers and devices of [from, to). Raises `ChunksChanged`."""
        first_ms, end_ms = from_ms or 0, END_MS if to_ms is None else to_ms
        first_day, end_day, edges = split_days(first_ms, end_ms)
        epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
        whole: dict[str, Array] = {}
        if layout.size and first_day < end_day:
            whole = await self._on_days(tenant, first_day, end_day, epoch)
        seen: dict[str, list[Array]] = {kind: [] for kind in COUNTED_ENTITIES}
        for edge in edges if layout.size else ():
            touched = layout.chunks_between(*edge)
            async for _, columns in self._finder.each_chunk(tenant, _KEYED, layout, touched):
                inside = (columns["occurred_at_ms"] >= edge[0]) & (columns["occurred_at_ms"] < edge[1])
                for kind, terms in keys_of(columns).items():
                    seen[kind].append(terms[inside])
        newer = await self._store.read(sql.select_newer_keys(tenant, layout.through, first_ms, end_ms))
        texts = [{row[place] for row in newer} - {None} for place in range(len(seen))]
        numbers = await self._numbers(tenant, set().union(*texts), epoch) if layout.size else {}
        counts = []
        for (kind, parts), found in zip(seen.items(), texts, strict=True):
            numbered = [numbers[text] for text in found if text in numbers]
            parts.append(np.array(numbered, TERM))
            different = await asyncio.to_thread(count_different, parts, whole.get(kind))
            counts.append(different + len(found) - len(numbered))
        return Uniques(*counts)

    async def _on_days(self, tenant: str, first_day: int, end_day: int, epoch: int) -> dict[str, Array]:
        """Return who was seen on some whole days, from memory when nobody has joined since."""
        span = (tenant, first_day, end_day)
        sizes: list[Any] = await self._store.read(sql.select_roster_sizes(*span))
        known = self._days.get(span)
        if known is None or (known.epoch, known.sizes) != (epoch, sizes):
            parts: dict[str, list[Array]] = {kind: [] for kind in COUNTED_ENTITIES}
            for kind, data in await self._store.read(sql.select_roster(*span)):
                parts[kind].append(np.frombuffer(data, TERM))
            seen = {kind: await asyncio.to_thread(pack, parts[kind]) for kind in COUNTED_ENTITIES}
            known = self._days[span] = _DayRosters(epoch, sizes, seen)
        self._days.move_to_end(span)
        while len(self._days) > _SPANS_KEPT:
            self._days.popitem(last=False)
        return known.seen

    async def _numbers(self, tenant: str, texts: set[str], epoch: int) -> dict[str, int]:
        """Return the terms of some texts, recent ones from memory."""
        if self._lately[:2] != (tenant, epoch) or len(self._lately.numbers) > _LATELY_MAX:
            self._lately = _RecentTerms(tenant, epoch, {})
        known = self._lately.numbers
        missing = sorted(texts - known.keys())
        found = await find_terms(self._store, tenant, missing)
        known.update({text: term.id for text, term in found.items()})
        return known


def pack(parts: Sequence[Array]) -> Array:
    """Pack some arrays of numbers: the bit of each number in them is set."""
    return np.packbits(_marked(parts, 0))


def count_different(parts: Sequence[Array], packed: Array | None = None) -> int:
    """Count the different numbers above 0 in some arrays, and in what was packed."""
    if packed is None:
        return int(np.count_nonzero(_marked(parts, 0)[1:]))
    table = _marked(parts, 8 * len(packed))
    table[: 8 * len(packed)] |= np.unpackbits(packed).view(bool)
    return int(np.count_nonzero(table[1:]))


def _marked(parts: Sequence[Array], size_min: int) -> Array:
    highest = max((int(part.max(initial=0)) for part in parts), default=0)
    table = np.zeros(max(highest + 1, size_min), bool)
    for part in parts:
        table[part] = True
    return table
