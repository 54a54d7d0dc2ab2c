"""Relate: how often an entity was seen, with whom and since when, over the chunks and what is newer."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from vettance.db.engine import Store
from vettance.history import sql
from vettance.history.column import TERM, Array, Row
from vettance.history.find import Finder, begun_again
from vettance.history.shelf import Layout
from vettance.terms import sql as terms_sql

_INLINE: Final = 50_000
_MARKS_EACH: Final = 64  # Putting a number in order takes about as long as clearing so many marks.


class Kind(NamedTuple):
    """What a kind of entity is known by: a field, else (where that is empty) another one."""

    first: str
    second: str | None = None


KINDS: Final = {
    "customer": Kind("customer_id", "email"),
    "device": Kind("fingerprint", "device_id"),
    "ip": Kind("ip"),
    "email": Kind("email"),
    "session": Kind("session_id"),
}
#: The kinds that are counted as others.
_COUNTED: Final = ("customer", "device")


class Link(msgspec.Struct, frozen=True):
    """How an entity stands in the history: moments are Unix milliseconds of event time."""

    id: str
    events: int
    others: dict[str, int]
    first_at_ms: int
    last_at_ms: int


class Relater:
    """Answers for entities from the columns of the history; nothing is kept for it alone."""

    def __init__(self, store: Store, finder: Finder) -> None:
        self._store = store
        self._finder = finder

    async def links(self, tenant: str, entities: Mapping[str, str]) -> dict[str, Link]:
        """Tell how some entities (kind → what it is known by) were seen; each was, at least once."""
        return await begun_again(lambda: self._links(tenant, entities))

    async def _links(self, tenant: str, entities: Mapping[str, str]) -> dict[str, Link]:
        """Do so once. Raises `ChunksChanged`."""
        layout = await self._finder.layout(tenant)
        rows = [
            sql.row_of(row)
            for row in await self._store.read(sql.select_newer_of(tenant, layout.through, entities))
        ]
        terms: dict[str, int] = {}
        columns: dict[str, Array] = {}
        if layout.size:
            texts = {*entities.values()}
            for kind in _COUNTED:
                texts.update(key for row in rows if (key := known_by(row, kind)) is not None)
            terms = await self._terms(tenant, sorted(texts))
            fields = {field for kind in KINDS for field in KINDS[kind] if field is not None}
            columns = {name: await self._finder.column(tenant, name, layout) for name in sorted(fields)}
        return {
            kind: await self._link(tenant, layout, columns, terms, rows, kind, value)
            for kind, value in entities.items()
        }

    async def _terms(self, tenant: str, texts: Sequence[str]) -> dict[str, int]:
        terms: dict[str, int] = {}
        for start in range(0, len(texts), terms_sql.ASKED):
            asked = texts[start : start + terms_sql.ASKED]
            terms |= {row[1]: row[0] for row in await self._store.read(terms_sql.select_terms(tenant, asked))}
        return terms

    async def _link(
        self,
        tenant: str,
        layout: Layout,
        columns: Mapping[str, Array],
        terms: Mapping[str, int],
        rows: Sequence[Row],
        kind: str,
        value: str,
    ) -> Link:
        newer = [row for row in rows if known_by(row, kind) == value]
        others: dict[str, set[str]] = {
            other: {key for row in newer if (key := known_by(row, other)) is not None}
            for other in _COUNTED
            if other != kind
        }
        moments = [row.occurred_at_ms for row in newer]
        places = np.empty(0, np.int64)
        counts = {other: len(keys) for other, keys in others.items()}
        if (term := terms.get(value)) is not None:
            think = _Thought(columns, KINDS[kind], term, others, terms)
            places, counts = await _aside(think, layout.size)
            moments += await self._bounds(tenant, layout, places)
        return Link(value, len(newer) + len(places), counts, min(moments), max(moments))

    async def _bounds(self, tenant: str, layout: Layout, places: Array) -> list[int]:
        """Return the first and last event times of some places, looking into as few chunks as can be."""
        if not len(places):
            return []
        indexes = layout.chunks_of_places(places)
        touched = [int(index) for index in np.unique(indexes)]
        by_first = sorted(touched, key=lambda index: layout.chunks[index].occurred_min_ms)
        by_last = sorted(touched, key=lambda index: -layout.chunks[index].occurred_max_ms)
        first, last = 2**62, -(2**62)
        for index in by_first:
            if layout.chunks[index].occurred_min_ms >= first:
                break
            first = min(first, int((await self._moments(tenant, layout, places, indexes, index)).min()))
        for index in by_last:
            if layout.chunks[index].occurred_max_ms <= last:
                break
            last = max(last, int((await self._moments(tenant, layout, places, indexes, index)).max()))
        return [first, last]

    async def _moments(self, tenant: str, layout: Layout, places: Array, indexes: Array, index: int) -> Array:
        part = (await self._finder.parts(tenant, "occurred_at_ms", layout, [index]))[index]
        here: Array = part[places[indexes == index] - layout.starts[index]]
        return here


class _Thought(msgspec.Struct, frozen=True):
    """Where an entity stands in the chunks, and how many others stand with it."""

    columns: Mapping[str, Array]
    kind: Kind
    term: int
    others: Mapping[str, set[str]]
    terms: Mapping[str, int]

    def __call__(self) -> tuple[Array, dict[str, int]]:
        mask = self.columns[self.kind.first] == self.term
        if self.kind.second is not None:
            mask |= (self.columns[self.kind.second] == self.term) & (self.columns[self.kind.first] == 0)
        places = np.flatnonzero(mask)
        counts = {}
        for other, texts in self.others.items():
            numbered = [self.terms[text] for text in texts if text in self.terms]
            seen = np.concatenate((self._known_by(KINDS[other], places), np.array(numbered, TERM)))
            counts[other] = _distinct(seen) + len(texts) - len(numbered)
        return places, counts

    def _known_by(self, kind: Kind, places: Array) -> Array:
        first = self.columns[kind.first][places]
        if kind.second is None:
            return first
        return np.where(first > 0, first, self.columns[kind.second][places])


def _distinct(terms: Array) -> int:
    """Count the different terms among some; 0 is none.

    Where they lie close together, a mark for each is cheaper than putting them in order.
    """
    end = int(terms.max(initial=0)) + 1
    if end > _MARKS_EACH * len(terms):
        return int(np.count_nonzero(np.unique(terms)))
    marks = np.zeros(end, bool)
    marks[terms] = True
    return int(np.count_nonzero(marks[1:]))


def known_by(row: Row, kind: str) -> str | None:
    """Return what the entity of a kind is known by in a decision."""
    first: str | None = getattr(row, KINDS[kind].first)
    second = KINDS[kind].second
    if first is None and second is not None:
        first = getattr(row, second)
    return first


async def _aside(
    think: Callable[[], tuple[Array, dict[str, int]]], size: int
) -> tuple[Array, dict[str, int]]:
    """Think in a thread when it takes long; the arithmetic of arrays lets others run meanwhile."""
    return think() if size < _INLINE else await asyncio.to_thread(think)
