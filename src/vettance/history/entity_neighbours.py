"""Finds what was seen with an entity, in the columns of the history and in newer rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from vettance.db.engine import Store
from vettance.decisions.searchable_fields import ENTITIES
from vettance.history import sql
from vettance.history.column_cache import SegmentOffsets
from vettance.history.decision_search import DecisionFinder, compute_in_thread, retry_on_change
from vettance.history.entity_graph import (
    GRAPH_KINDS,
    EntityGraph,
    EntityNode,
    Neighbours,
    build_graph,
    first_hop,
)
from vettance.history.entity_links import known_by
from vettance.history.segment import Array, count_terms, entity_terms, places_of, row_of
from vettance.terms import sql as terms_sql
from vettance.terms.find_terms import find_terms
from vettance.terms.sql import Term

#: The most frequent values of each kind that are named; the others are counted.
NAMED_MAX: Final = 50


class _SegmentNeighbours(NamedTuple):
    """What the chunks show of a node: its events, and the terms of each kind with theirs."""

    events: int
    kinds: Mapping[str, tuple[Array, Array]]


_NONE: Final = _SegmentNeighbours(0, {})
_COLUMNS: Final = tuple(dict.fromkeys(name for kind in GRAPH_KINDS for name in ENTITIES[kind]))


class EntityNeighbours:
    """Answers what an entity was seen with, and draws the graph of two hops around it."""

    def __init__(self, store: Store, finder: DecisionFinder) -> None:
        self._store = store
        self._finder = finder

    @retry_on_change
    async def around(self, tenant: str, center: EntityNode) -> tuple[Neighbours, EntityGraph]:
        """Return what an entity was seen with, and its graph; both are empty where it was never seen."""
        layout = await self._finder.layout(tenant)
        columns: dict[str, Array] = {}
        if layout.size:
            columns = await self._finder.columns(tenant, _COLUMNS, layout)
        found = (await self._of(tenant, layout, columns, [center]))[center]
        first = first_hop(found)
        behind = await self._of(tenant, layout, columns, first)
        return found, build_graph(center, found, first, behind)

    async def _of(
        self, tenant: str, layout: SegmentOffsets, columns: Mapping[str, Array], nodes: Sequence[EntityNode]
    ) -> dict[EntityNode, Neighbours]:
        """Return the neighbours of some nodes."""
        if not nodes:
            return {}
        asked = [(node.kind, node.value) for node in nodes]
        newer = [
            row_of(row)
            for row in await self._store.read(sql.select_newer_of_any(tenant, layout.through, asked))
        ]
        shown = [{kind: known_by(row, kind) for kind in GRAPH_KINDS} for row in newer]
        late = {node: _neighbours_in(shown, node) for node in nodes}
        own_late = {node: sum(row[node.kind] == node.value for row in shown) for node in nodes}
        texts = {node.value for node in nodes} | {other.value for found in late.values() for other in found}
        terms = await find_terms(self._store, tenant, sorted(texts)) if layout.size else {}

        def compute() -> dict[EntityNode, _SegmentNeighbours]:
            return _counted(columns, nodes, terms)

        counted = await compute_in_thread(compute, layout.size * len(nodes)) if layout.size else {}
        named = {term.id: term.value for term in terms.values()}
        named |= await self._texts(tenant, counted, named)
        return {
            node: _merged(counted.get(node, _NONE), late[node], own_late[node], terms, named)
            for node in nodes
        }

    async def _texts(
        self,
        tenant: str,
        counted: Mapping[EntityNode, _SegmentNeighbours],
        known: Mapping[int, str],
    ) -> dict[int, str]:
        """Return the texts of the most frequent terms."""
        wanted = {
            int(term)
            for found in counted.values()
            for terms, events in found.kinds.values()
            for term in terms[_most(events)]
        } - known.keys()
        found: dict[int, str] = {}
        numbers = sorted(wanted)
        for start in range(0, len(numbers), terms_sql.ASKED):
            statement = terms_sql.select_term_values(tenant, numbers[start : start + terms_sql.ASKED])
            found |= dict(await self._store.read(statement))
        return found


def _neighbours_in(rows: Sequence[Mapping[str, str | None]], node: EntityNode) -> Counter[EntityNode]:
    """Count what some rows, by the values of each kind, show with a node."""
    found: Counter[EntityNode] = Counter()
    for row in rows:
        if row[node.kind] != node.value:
            continue
        for kind, text in row.items():
            # A customer without an id of its own is known by the address: that is no neighbour of itself.
            if kind != node.kind and text is not None and text != node.value:
                found[EntityNode(kind, text)] += 1
    return found


def _counted(
    columns: Mapping[str, Array], nodes: Sequence[EntityNode], terms: Mapping[str, Term]
) -> dict[EntityNode, _SegmentNeighbours]:
    """Count, for each of some nodes, the terms of other kinds in the chunks that show it."""
    found = {}
    for kind in GRAPH_KINDS:
        known = [node for node in nodes if node.kind == kind and node.value in terms]
        places = places_of(columns, kind, [terms[node.value] for node in known]) if known else []
        for node, own in zip(known, places, strict=True):
            found[node] = _SegmentNeighbours(len(own), _kinds_at(columns, node, terms[node.value].id, own))
    return found


def _kinds_at(
    columns: Mapping[str, Array], node: EntityNode, term: int, places: Array
) -> dict[str, tuple[Array, Array]]:
    found = {}
    for kind in GRAPH_KINDS:
        if kind == node.kind:
            continue
        others, events = count_terms(entity_terms(kind, columns, places))
        kept = others != term
        found[kind] = others[kept], events[kept]
    return found


def _most(events: Array) -> Array:
    """Return the indexes of the largest counts."""
    if len(events) <= NAMED_MAX:
        return np.arange(len(events))
    return np.argpartition(events, -NAMED_MAX)[-NAMED_MAX:]


def _merged(
    counted: _SegmentNeighbours,
    late: Mapping[EntityNode, int],
    own_late: int,
    terms: Mapping[str, Term],
    named: Mapping[int, str],
) -> Neighbours:
    """Add up what the chunks and the newer rows show."""
    events: Counter[EntityNode] = Counter()
    numbers: dict[str, int] = {}
    for kind in GRAPH_KINDS:
        found, counts = counted.kinds.get(kind, (np.empty(0, np.int64), np.empty(0, np.int64)))
        for index in _most(counts).tolist():
            if (text := named.get(int(found[index]))) is not None:
                events[EntityNode(kind, text)] = int(counts[index])
        new = 0
        for node, count in late.items():
            if node.kind != kind:
                continue
            number = terms[node.value].id if node.value in terms else 0
            place = np.searchsorted(found, number)
            is_known = place < len(found) and found[place] == number
            new += not is_known
            if node not in events and is_known:
                events[node] = int(counts[place])
            events[node] += count
        numbers[kind] = len(found) + new
    return Neighbours(counted.events + own_late, numbers, events)
