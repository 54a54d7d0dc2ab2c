"""Finds the page of a list, its total and where the next page begins, in the chunks and newer rows."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from vettance.db.engine import Store
from vettance.decisions.decision import Outcome
from vettance.decisions.searchable_fields import FIELD_OF_COLUMN, REASONS
from vettance.errors import Unavailable
from vettance.fairness.tenant_cache import Usage
from vettance.history import sql
from vettance.history.column_cache import ColumnCache, SegmentOffsets
from vettance.history.filter_mask import TERMED, Lookup, TermMatches, columns_needed, mask_of
from vettance.history.id_search import holds
from vettance.history.result_page import (
    TRIGRAM,
    Order,
    PageCursor,
    PageRow,
    ResultSet,
    id_part,
    page_of,
    rows_holding,
)
from vettance.history.search_criteria import SearchCriteria
from vettance.history.segment import (
    AT_ONCE,
    BITS,
    OUTCOME_MASK,
    OUTCOMES,
    PACKED,
    SEARCHED,
    TERM,
    TYPES,
    Array,
    Chunk,
    DecisionRow,
    count_outcomes,
    row_of,
)
from vettance.terms import sql as terms_sql
from vettance.terms.find_terms import find_terms

_READ_CHUNKS: Final = 128  # So many columns of chunks are read in one query: some milliseconds of a reader.
_INLINE: Final = 50_000  # Below so many decisions, computing takes less than handing it to a thread.
#: Fewer digits are in too many ids, and so are those that begin all ids of a time: scanning the columns is
#: faster then than reading what the index finds.
_RARE_DIGITS: Final = 4
_HITS: Final = 20_000
#: How often an answer is begun when retention or an erasure changes the chunks under it.
_TRIES: Final = 4

Asked = ParamSpec("Asked")
Result = TypeVar("Result")


class ChunksChanged(Exception):
    """Retention or an erasure has removed chunks, or replaced them, while they were being read."""


def retry_on_change(read: Callable[Asked, Awaitable[Result]]) -> Callable[Asked, Coroutine[Any, Any, Result]]:
    """Repeat a read of chunks, a few times, when it raises `ChunksChanged`.

    Raises `Unavailable` (503) when they were changed every time.
    """

    @functools.wraps(read)
    async def reading(*args: Asked.args, **kwargs: Asked.kwargs) -> Result:
        for _ in range(_TRIES):
            with contextlib.suppress(ChunksChanged):
                return await read(*args, **kwargs)
        raise Unavailable("The history is being cleared up at the moment.")

    return reading


class PageEnd(NamedTuple):
    """Where a page ended: the key it is sorted by (0 for the log's own order) and the `seq`."""

    key: int
    seq: int


class FoundPage(NamedTuple):
    """A page: how many there are in all, the `seq` of those on it, and where it ended when there are more."""

    total: int
    seqs: list[int]
    more: bool
    end: PageEnd | None


class DecisionFinder:
    """Answers lists. Everything acknowledged is seen: what is in no chunk yet is looked up in the log.

    What has to be looked into decision by decision is read `at_once` rows at a time.
    """

    def __init__(self, store: Store, cache: ColumnCache | None = None, *, at_once: int = AT_ONCE) -> None:
        self._store = store
        self._at_once = at_once
        self._cache = cache or ColumnCache()
        self._loading: dict[tuple[str, str], asyncio.Lock] = {}

    @property
    def usage(self) -> Usage:
        """Return how much of columns is remembered, for the metrics."""
        return self._cache.usage

    def forget(self, tenant: str) -> None:
        """Read a tenant's columns anew from now on."""
        self._cache.drop(tenant)

    @retry_on_change
    async def find(
        self,
        tenant: str,
        wanted: SearchCriteria,
        order: Order,
        offset: int,
        limit: int,
        after: PageEnd | None = None,
        *,
        descending: bool,
    ) -> FoundPage:
        """Return `limit` decisions beyond `offset`, or beyond `after` when it is given."""
        layout = await self.layout(tenant)
        lookup = await self._look_up(tenant, wanted, layout)
        names = columns_needed(wanted, lookup)
        key_name = sql.ORDER_COLUMNS.get(order)
        columns = await self.columns(tenant, names | {key_name} if key_name else names, layout)
        tail = await self._tail(tenant, layout, wanted, order)
        mark = await self._mark(tenant, layout, after, descending=descending) if after else None

        def compute() -> tuple[int, list[PageRow]]:
            mask = mask_of(wanted, lookup, layout.size, columns)
            keys = columns[key_name] if key_name else None
            if order is Order.OUTCOME and keys is not None:
                keys = keys & np.uint8(OUTCOME_MASK)
            matches = ResultSet(layout.size, mask, tail.seqs, keys, tail.keys)
            return matches.total, page_of(matches, offset, limit + 1, mark, descending=descending)

        total, rows = await compute_in_thread(compute, layout.size)
        page = rows[:limit]
        seqs = await self._seqs(tenant, layout, page)
        more = len(rows) > limit
        return FoundPage(total, seqs, more, PageEnd(page[-1].key, seqs[-1]) if more else None)

    async def _tail(
        self, tenant: str, layout: SegmentOffsets, wanted: SearchCriteria, order: Order
    ) -> "_Tail":
        """Return what a list asks for of the decisions that are in no chunk, oldest first."""
        if wanted.search is None:
            statement = sql.select_tail_keys(tenant, layout.through, wanted, order)
            ((seqs, keys),) = await self._store.read(statement)
            return _Tail.of(_numbers(seqs), _numbers(keys))
        held: list[tuple[int, int]] = []
        after = layout.through
        while True:
            found = await self._store.read(sql.select_tail(tenant, after, wanted, self._at_once))
            rows = [row_of(row) for row in found]
            held += [(row.seq, _key(row, order)) for row in rows_holding(rows, wanted.search)]
            if len(rows) < self._at_once:
                return _Tail.of(*np.array(held, np.int64).reshape(-1, 2).T)
            after = rows[-1].seq

    async def layout(self, tenant: str) -> SegmentOffsets:
        """Return the places of a tenant's decisions, as of now."""
        rows = await self._store.read(sql.select_chunks(tenant))
        return SegmentOffsets([Chunk._make(row) for row in rows])

    @retry_on_change
    async def outcomes(self, tenant: str, wanted: SearchCriteria) -> dict[Outcome, int]:
        """Count the decisions that a list asks for by their outcomes."""
        layout = await self.layout(tenant)
        lookup = await self._look_up(tenant, wanted, layout)
        names = columns_needed(wanted, lookup) | {sql.ORDER_COLUMNS[Order.OUTCOME]}
        columns = await self.columns(tenant, names, layout)
        tail = await self._tail(tenant, layout, wanted, Order.OUTCOME)

        def compute() -> list[int]:
            return count_outcomes(columns["verdict"], mask_of(wanted, lookup, layout.size, columns))

        counts = await compute_in_thread(compute, layout.size)
        newer = np.bincount(tail.keys, minlength=len(OUTCOMES)).tolist()
        return {outcome: counts[place] + newer[place] for place, outcome in enumerate(OUTCOMES)}

    async def columns(self, tenant: str, names: Collection[str], layout: SegmentOffsets) -> dict[str, Array]:
        """Return some columns of all chunks, read at the same time. Raises `ChunksChanged`."""
        ordered = sorted(names)
        return dict(
            zip(
                ordered,
                await asyncio.gather(*(self.column(tenant, name, layout) for name in ordered)),
                strict=True,
            )
        )

    async def column(self, tenant: str, name: str, layout: SegmentOffsets) -> Array:
        """Return one column of all chunks, from memory as far as it is there. Raises `ChunksChanged`."""
        lock = self._loading.setdefault((tenant, name), asyncio.Lock())
        async with lock:
            column = self._cache.take(tenant, name, layout)
            column.reserve(layout.size)
            while column.through < layout.through:
                statement = sql.select_column(tenant, name, column.through, layout.through, _READ_CHUNKS)
                rows = await self._store.read(statement)
                if not rows:
                    raise ChunksChanged
                column.add([(chunk_id, size, data) for chunk_id, size, data in rows])
            if not column.begins(layout.ids, layout.starts):
                raise ChunksChanged
            self._cache.grown(tenant, name, column)
            values = column.values
        if name == REASONS:
            return values[: np.searchsorted(values["place"], layout.size)]
        return values[: layout.size]

    async def _look_up(self, tenant: str, wanted: SearchCriteria, layout: SegmentOffsets) -> Lookup:
        if not layout.size:
            return Lookup()
        choices = [choice for condition in wanted.conditions for choice in condition.choices]
        values = sorted({str(value) for column, value in choices if column in TERMED})
        return Lookup(
            terms=await find_terms(self._store, tenant, values),
            moments=await self._moments(tenant, wanted, layout),
            sought=await self._search(tenant, wanted.search, layout) if wanted.search is not None else None,
        )

    async def _moments(self, tenant: str, wanted: SearchCriteria, layout: SegmentOffsets) -> Array | None:
        """Make the mask of `from` and `to`: only chunks that they cut through are looked into."""
        if wanted.from_ms is None and wanted.to_ms is None:
            return None
        first = wanted.from_ms if wanted.from_ms is not None else -(2**62)
        end = wanted.to_ms if wanted.to_ms is not None else 2**62
        head = wanted.moment.removesuffix("_at_ms")
        low_name, high_name = f"{head}_min_ms", f"{head}_max_ms"
        mask = np.zeros(layout.size, bool)
        cut: list[int] = []
        for index, chunk in enumerate(layout.chunks):
            low, high = getattr(chunk, low_name), getattr(chunk, high_name)
            if first <= low and high < end:
                mask[layout.starts[index] : layout.starts[index + 1]] = True
            elif low < end and high >= first:
                cut.append(index)
        for index, moments in (await self.parts(tenant, wanted.moment, layout, cut)).items():
            mask[layout.starts[index] : layout.starts[index + 1]] = (moments >= first) & (moments < end)
        return mask

    async def parts(
        self, tenant: str, name: str, layout: SegmentOffsets, indexes: Sequence[int]
    ) -> dict[int, Array]:
        """Return one column of some chunks, by their indexes. Raises `ChunksChanged`."""
        chunks = self.each_chunk(tenant, [name], layout, indexes)
        return {index: columns[name] async for index, columns in chunks}

    async def each_chunk(
        self, tenant: str, names: Sequence[str], layout: SegmentOffsets, indexes: Sequence[int]
    ) -> AsyncIterator[tuple[int, dict[str, Array]]]:
        """Yield some columns of one chunk after the other, with its index, so that few are in memory.

        A chunk from before there was a column of a field has 0, no term, in it. Raises `ChunksChanged`.
        """
        at_once = max(1, _READ_CHUNKS // len(names))
        for start in range(0, len(indexes), at_once):
            asked = {layout.ids[index]: index for index in indexes[start : start + at_once]}
            found: dict[int, dict[str, Array]] = {}
            for chunk_id, size, name, data in await self._store.read(
                sql.select_parts(tenant, names, list(asked))
            ):
                columns = found.setdefault(asked[chunk_id], {})
                if size != layout.chunks[asked[chunk_id]].size:
                    raise ChunksChanged
                if name is not None:
                    columns[name] = np.frombuffer(data, TYPES[name])
            lacking = {name for columns in found.values() for name in names if name not in columns}
            if len(found) < len(asked) or not lacking <= FIELD_OF_COLUMN.keys():
                raise ChunksChanged
            for index, columns in sorted(found.items()):
                nothing = np.zeros(layout.chunks[index].size, TERM)
                yield index, {name: columns.get(name, nothing) for name in names}

    async def _search(self, tenant: str, search: str, layout: SegmentOffsets) -> TermMatches:
        part = id_part(search)
        ids: Array | None = None
        if part.anywhere is not None:
            ids = await self._hold(tenant, part.anywhere, layout)
        if part.everything or (ids is not None and ids.dtype == bool and ids.all()):
            return TermMatches({}, is_everything=True)
        ask = terms_sql.search_terms if len(search) >= TRIGRAM else terms_sql.scan_terms
        rows = await self._store.read(ask(tenant, search))
        found = np.array(rows, np.int64).reshape(-1, 2)
        terms = {name: found[:, 0][(found[:, 1] & BITS[name]) > 0] for name in SEARCHED}
        return TermMatches(terms, ids, part.beginning)

    async def _hold(self, tenant: str, digits: str, layout: SegmentOffsets) -> Array:
        """Return which decisions hold some digits in their ids: their places, or a mask of all."""
        if len(digits) >= _RARE_DIGITS:
            hits = await self._store.read(terms_sql.search_ids(digits, _HITS + 1))
            if len(hits) <= _HITS:
                return await self.places(tenant, layout, np.unique(np.array(hits, np.int64)))
        high, low = [await self.column(tenant, name, layout) for name in ("high", "low")]
        return await compute_in_thread(lambda: holds(high, low, digits), layout.size)

    async def places(self, tenant: str, layout: SegmentOffsets, seqs: Array) -> Array:
        """Return the places of some decisions, without those of other tenants and those in no chunk."""
        if layout.dense:
            return layout.dense_places(seqs)
        own = await self.column(tenant, "seq", layout)
        inside = seqs[seqs <= layout.through]
        places = np.searchsorted(own, inside)
        found: Array = places[own[places] == inside]
        return found

    async def _before(self, tenant: str, layout: SegmentOffsets, seq: int) -> int:
        """Count the decisions in chunks that come before `seq` in the log."""
        index = layout.chunk_of_seq(seq)
        if index == len(layout.chunks):
            return layout.size
        if seq <= layout.chunks[index].first_seq:
            return int(layout.starts[index])
        own = (await self.parts(tenant, "seq", layout, [index]))[index]
        return int(layout.starts[index] + np.searchsorted(own, seq))

    async def _mark(
        self, tenant: str, layout: SegmentOffsets, after: PageEnd, *, descending: bool
    ) -> PageCursor:
        seq = after.seq if descending else after.seq + 1
        return PageCursor(after.key, after.seq, await self._before(tenant, layout, seq))

    async def _seqs(self, tenant: str, layout: SegmentOffsets, rows: Sequence[PageRow]) -> list[int]:
        places = np.array([one.place for one in rows if one.place >= 0], np.int64)
        indexes = layout.chunks_of_places(places)
        gapped = [index for index in np.unique(indexes).tolist() if not layout.gapless[index]]
        parts = await self.parts(tenant, "seq", layout, gapped)
        seqs: dict[int, int] = {}
        for place, index in zip(places.tolist(), indexes.tolist(), strict=True):
            offset = place - int(layout.starts[index])
            seqs[place] = (
                int(layout.firsts[index]) + offset if layout.gapless[index] else int(parts[index][offset])
            )
        return [one.seq if one.place < 0 else seqs[one.place] for one in rows]


class _Tail(NamedTuple):
    """Decisions that are in no chunk, and what they are sorted by; both int64, oldest first."""

    seqs: Array
    keys: Array

    @classmethod
    def of(cls, seqs: Array, keys: Array) -> "_Tail":
        in_turn = np.argsort(seqs)
        return cls(seqs[in_turn], keys[in_turn])


def _numbers(text: str | None) -> Array:
    return np.fromstring(text or "", np.int64, sep=",")


def _key(row: DecisionRow, order: Order) -> int:
    if order is Order.SCORE:
        return row.score
    if order is Order.OUTCOME:
        return PACKED["decision"].values.index(row.decision)
    return row.received_at_ms if order is Order.RECEIVED else 0


async def compute_in_thread(compute: Callable[[], Result], size: int) -> Result:
    """Compute in a thread when it takes long; the arithmetic of arrays releases the interpreter."""
    return compute() if size < _INLINE else await asyncio.to_thread(compute)
