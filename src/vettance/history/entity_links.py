"""Counts how often an entity was seen, with whom and since when, in the chunks and newer rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from vettance.db.engine import Store
from vettance.decisions.searchable_fields import ENTITIES
from vettance.history import sql
from vettance.history.column_cache import SegmentOffsets
from vettance.history.decision_search import DecisionFinder, compute_in_thread, retry_on_change
from vettance.history.segment import (
    COUNTED_ENTITIES,
    COUNTERS_EACH,
    TERM,
    Array,
    DecisionRow,
    columns_of,
    entity_terms,
    places_of,
    row_of,
)
from vettance.terms.find_terms import find_terms
from vettance.terms.sql import Term


class EntityLink(msgspec.Struct, frozen=True):
    """How often and when an entity was seen: moments are Unix milliseconds of event time."""

    id: str
    events: int
    others: dict[str, int]
    first_at_ms: int
    last_at_ms: int


class SeenSpan(NamedTuple):
    """When an entity was seen first and last, in Unix milliseconds of event time."""

    first_at_ms: int
    last_at_ms: int


class EntityLinker:
    """Finds links of entities in the columns of the history; it needs no index of its own."""

    def __init__(self, store: Store, finder: DecisionFinder) -> None:
        self._store = store
        self._finder = finder

    @retry_on_change
    async def links(self, tenant: str, entities: Mapping[str, str]) -> dict[str, EntityLink]:
        """Return how some entities (kind → id) were seen; each was, at least once."""
        layout = await self._finder.layout(tenant)
        rows = [
            row_of(row)
            for row in await self._store.read(sql.select_newer_of(tenant, layout.through, entities))
        ]
        terms: dict[str, Term] = {}
        if layout.size:
            texts = {*entities.values()}
            for kind in COUNTED_ENTITIES:
                texts.update(key for row in rows if (key := known_by(row, kind)) is not None)
            terms = await find_terms(self._store, tenant, sorted(texts))
        known = {kind: terms.get(value) for kind, value in entities.items()}
        columns, places = await self._places(tenant, layout, known)
        newer = {
            kind: [row for row in rows if known_by(row, kind) == value] for kind, value in entities.items()
        }
        queries = {
            kind: _LinkQuery(layout, columns, terms, kind, places[kind], newer[kind]) for kind in entities
        }
        links = await compute_in_thread(
            lambda: {kind: query() for kind, query in queries.items()}, layout.size
        )
        await self._find_ends(tenant, layout, [link.ends for link in links.values()])
        return {kind: _link(value, newer[kind], links[kind]) for kind, value in entities.items()}

    @retry_on_change
    async def span(self, tenant: str, kind: str, value: str) -> SeenSpan | None:
        """Return when an entity was seen; None for one that never was."""
        layout = await self._finder.layout(tenant)
        rows = map(row_of, await self._store.read(sql.select_newer_of(tenant, layout.through, {kind: value})))
        newer = [row.occurred_at_ms for row in rows if known_by(row, kind) == value]
        term = (await find_terms(self._store, tenant, [value])).get(value) if layout.size else None
        places = np.empty(0, np.int64)
        if term is not None:
            columns = await self._finder.columns(tenant, columns_of(kind, term), layout)
            (places,) = await compute_in_thread(lambda: places_of(columns, kind, [term]), layout.size)
        ends = _TimeBounds(layout, places)
        await self._find_ends(tenant, layout, [ends])
        moments = [*ends.moments, *newer]
        return SeenSpan(min(moments), max(moments)) if moments else None

    async def _places(
        self, tenant: str, layout: SegmentOffsets, known: Mapping[str, Term | None]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return where each of some entities is (by kind), with the columns that say who else is there.

        Columns are large: those are left out in which an entity was never seen, and those that would say
        what is known already.
        """
        found = {kind: term for kind, term in known.items() if term is not None}
        columns: dict[str, Array] = {}
        if found:
            needed = {ENTITIES[kind][0] for kind in COUNTED_ENTITIES}
            needed.update(name for kind, term in found.items() for name in columns_of(kind, term))
            columns = await self._finder.columns(tenant, needed, layout)

        def compute() -> dict[str, Array]:
            return {kind: places_of(columns, kind, [term])[0] for kind, term in found.items()}

        places = await compute_in_thread(compute, layout.size)
        lacking: set[str] = set()
        for first, *others in (ENTITIES[kind] for kind in COUNTED_ENTITIES):
            if others and any((columns[first][here] == 0).any() for here in places.values()):
                lacking.update(others)
        columns |= await self._finder.columns(tenant, lacking, layout)
        return columns, {kind: places.get(kind, np.empty(0, np.int64)) for kind in known}

    async def _find_ends(self, tenant: str, layout: SegmentOffsets, bounds: Sequence["_TimeBounds"]) -> None:
        """Read the chunks that hold the first and last times of some entities, for all of them at once."""
        while wanted := set[int]().union(*(ends.wants() for ends in bounds)):
            parts = await self._finder.parts(tenant, "occurred_at_ms", layout, sorted(wanted))
            for ends in bounds:
                for index in ends.wants():
                    ends.take(index, parts[index])


class _TimeBounds:
    """The first and last event times of some places, found by reading as few chunks as possible."""

    def __init__(self, layout: SegmentOffsets, places: Array) -> None:
        """`places` are in order."""
        self._layout = layout
        self._places = places
        touched: list[int] = np.flatnonzero(np.diff(np.searchsorted(places, layout.starts))).tolist()
        self._by_first = sorted(touched, key=lambda index: -layout.chunks[index].occurred_min_ms)
        self._by_last = sorted(touched, key=lambda index: layout.chunks[index].occurred_max_ms)
        self.moments: list[int] = []

    def wants(self) -> set[int]:
        """Return the chunks to be looked into next: one at either end, then ever twice as many."""
        chunks, count = self._layout.chunks, len(self.moments) // 2 + 1
        first, last = min(self.moments, default=2**62), max(self.moments, default=-(2**62))
        return {
            *(index for index in self._by_first[-count:] if chunks[index].occurred_min_ms < first),
            *(index for index in self._by_last[-count:] if chunks[index].occurred_max_ms > last),
        }

    def take(self, index: int, moments: Array) -> None:
        """Take in the event times of a chunk."""
        start, end = self._layout.starts[index : index + 2]
        low, high = np.searchsorted(self._places, (start, end))
        here = moments[self._places[low:high] - start]
        self.moments += (int(here.min()), int(here.max()))
        self._by_first.remove(index)
        self._by_last.remove(index)


class _SegmentLinks(NamedTuple):
    """An entity in the chunks: its decisions, the others seen with it anywhere, its first and last time."""

    events: int
    others: dict[str, int]
    ends: _TimeBounds


def _link(value: str, newer: Sequence[DecisionRow], link: _SegmentLinks) -> EntityLink:
    moments = [*link.ends.moments, *(row.occurred_at_ms for row in newer)]
    return EntityLink(value, len(newer) + link.events, link.others, min(moments), max(moments))


class _LinkQuery(msgspec.Struct, frozen=True):
    """Counts the others seen with an entity, in the chunks (at its places) or in `newer`."""

    layout: SegmentOffsets
    columns: Mapping[str, Array]
    terms: Mapping[str, Term]
    kind: str
    places: Array
    newer: Sequence[DecisionRow]

    def __call__(self) -> _SegmentLinks:
        places = self.places
        others = {}
        for other in COUNTED_ENTITIES:
            if other == self.kind:
                continue
            texts = {key for row in self.newer if (key := known_by(row, other)) is not None}
            numbered = [self.terms[text].id for text in texts if text in self.terms]
            seen = np.array(numbered, TERM)
            if len(places):
                seen = np.concatenate((entity_terms(other, self.columns, places), seen))
            others[other] = _distinct(seen) + len(texts) - len(numbered)
        return _SegmentLinks(len(places), others, _TimeBounds(self.layout, places))


def _distinct(terms: Array) -> int:
    """Count the different terms among some; 0 is none."""
    end = int(terms.max(initial=0)) + 1
    if end > COUNTERS_EACH * len(terms):
        return int(np.count_nonzero(np.unique(terms)))
    marks = np.zeros(end, bool)
    marks[terms] = True
    return int(np.count_nonzero(marks[1:]))


def known_by(row: DecisionRow, kind: str) -> str | None:
    """Return what the entity of a kind is known by in a decision."""
    return next((text for name in ENTITIES[kind] if (text := row.text(name)) is not None), None)
