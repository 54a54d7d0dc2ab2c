"""Replaces texts of some decisions in the chunks that were made of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.decisions import sql as decisions_sql
from vettance.decisions.searchable_fields import COLUMNS
from vettance.history import sql as history_sql
from vettance.history.column_cache import SegmentOffsets
from vettance.history.compaction import Compactor
from vettance.history.decision_search import ChunksChanged, DecisionFinder
from vettance.history.segment import (
    BITS,
    COUNTED_COLUMNS,
    COUNTED_ENTITIES,
    SEARCHED_BITS,
    TERM,
    Array,
    keys_of,
)
from vettance.retention import sql
from vettance.terms import sql as terms_sql

_TRIES: Final = 20
_DAY_MS: Final = decisions_sql.DAY_S * 1000
#: The fields whose texts an erasure renames.
_RENAMED_BITS: Final = sum(BITS[name] for name in COLUMNS)

#: The rows of some decisions in their chunks, by the index of the chunk.
_Rows = dict[int, Array]


class Renamer:
    """Renames terms that only these decisions use; where others use one too, chunks are replaced."""

    def __init__(self, store: Store, finder: DecisionFinder) -> None:
        self._store = store
        self._finder = finder
        self._compactor = Compactor(store)

    async def rename(self, tenant: str, seqs: Sequence[int], renamed: Callable[[str], str]) -> None:
        """Bring the chunks in line with decisions (by their places) whose own texts are rewritten already.

        Safe to repeat after an interruption: what has to be renamed is read from the chunks. Raises `Lost`
        when compaction interferes every time.
        """
        orphans: dict[int, terms_sql.Term] = {}
        must_compact = False
        for _ in range(_TRIES):
            epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
            layout = await self._finder.layout(tenant)
            try:
                rows = await self._rows(tenant, layout, seqs)
                alone, twins, shared = await self._sort_out(tenant, layout, rows, renamed)
                statements = [sql.raise_epoch(tenant, epoch, layout.through)]
                for term in alone:
                    statements += _rename(tenant, term, renamed(term.value))
                await self._store.write(*statements)
                # Remembered from try to try: a chunk laid out anew no longer shows what it held.
                orphans |= {term.id: term for term in twins}
                must_compact = must_compact or shared or bool(twins)
                if must_compact:
                    await self._compact_again(tenant, layout, rows, list(orphans.values()))
            except (ChunksChanged, Clash, Lost):
                continue
            return
        raise Lost("the history was being laid out all the time; try again")

    async def _rows(self, tenant: str, layout: SegmentOffsets, seqs: Sequence[int]) -> _Rows:
        """Return the rows that decisions have in their chunks, by the index of the chunk."""
        rows: dict[int, list[int]] = {}
        for seq in sorted(set(seqs)):
            if seq <= layout.through:
                rows.setdefault(layout.chunk_of_seq(seq), []).append(seq)
        found = {}
        async for index, columns in self._finder.each_chunk(tenant, ["seq"], layout, list(rows)):
            found[index] = np.flatnonzero(np.isin(columns["seq"], rows[index], assume_unique=True))
        return found

    async def _sort_out(
        self, tenant: str, layout: SegmentOffsets, rows: _Rows, renamed: Callable[[str], str]
    ) -> tuple[list[terms_sql.Term], list[terms_sql.Term], bool]:
        """Sort the terms to be renamed.

        Returns those used nowhere else, those of them whose new text another one has already, and whether
        there are terms that are used elsewhere too.
        """
        here: Counter[tuple[str, int]] = Counter()
        async for index, columns in self._finder.each_chunk(tenant, COLUMNS, layout, list(rows)):
            for name, terms in columns.items():
                here.update((name, term) for term in terms[rows[index]].tolist())
        named = await self._terms_to_rename(tenant, sorted({term for _, term in here}), renamed)
        elsewhere = await self._used_elsewhere(tenant, layout, named, here)
        alone: dict[str, terms_sql.Term] = {}
        twins: list[terms_sql.Term] = []
        for term in named:
            new = renamed(term.value)
            if term.id in elsewhere:
                continue
            if new in alone or await self._store.read(terms_sql.select_terms(tenant, [new])):
                twins.append(term)
            else:
                alone[new] = term
        return list(alone.values()), twins, bool(elsewhere)

    async def _terms_to_rename(
        self, tenant: str, numbers: Sequence[int], renamed: Callable[[str], str]
    ) -> list[terms_sql.Term]:
        found = []
        for start in range(0, len(numbers), terms_sql.ASKED):
            asked = numbers[start : start + terms_sql.ASKED]
            for row in await self._store.read(terms_sql.select_terms_by_number(tenant, asked)):
                term = terms_sql.Term._make(row)
                if renamed(term.value) != term.value:
                    found.append(term)
        return found

    async def _used_elsewhere(
        self,
        tenant: str,
        layout: SegmentOffsets,
        terms: Sequence[terms_sql.Term],
        here: Mapping[tuple[str, int], int],
    ) -> set[int]:
        """Return which terms are used in other decisions than `here` counts, or in a field never renamed."""
        elsewhere = {term.id for term in terms if term.fields & ~_RENAMED_BITS}
        for name in COLUMNS:
            asked = [term.id for term in terms if term.fields & BITS[name] and term.id not in elsewhere]
            if not asked:
                continue
            counted: Counter[int] = Counter()
            every = range(len(layout.ids))
            async for _, columns in self._finder.each_chunk(tenant, [name], layout, every):
                column = columns[name]
                counted.update(column[np.isin(column, asked)].tolist())
            elsewhere.update(term for term in asked if counted[term] > here[name, term])
        return elsewhere

    async def _compact_again(
        self, tenant: str, layout: SegmentOffsets, rows: _Rows, orphans: Sequence[terms_sql.Term]
    ) -> None:
        """Replace the chunks of some decisions, then the rosters of their days; remove terms left over."""
        days: set[int] = set()
        for index in rows:
            chunk = layout.chunks[index]
            days.update(range(_day_of(chunk.occurred_min_ms), _day_of(chunk.occurred_max_ms) + 1))
            await self._compactor.compact_again(tenant, chunk.first_seq, chunk.id)
        epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
        layout = await self._finder.layout(tenant)
        statements = [sql.raise_epoch(tenant, epoch, layout.through)]
        statements += await self._rosters(tenant, layout, days)
        for term in orphans:
            statements.append(sql.remove_term(tenant, term.id))
            if term.fields & SEARCHED_BITS:
                statements.append(terms_sql.delete_term_search(term))
        await self._store.write(*statements)

    async def _rosters(self, tenant: str, layout: SegmentOffsets, days: AbstractSet[int]) -> list[Statement]:
        """Make the rosters of some days anew, from the chunks that reach into them."""
        seen: dict[tuple[str, int], list[Array]] = {
            (kind, day): [] for day in days for kind in COUNTED_ENTITIES
        }
        indexes = layout.chunks_between(min(days) * _DAY_MS, (max(days) + 1) * _DAY_MS)
        names = ("occurred_at_ms", *COUNTED_COLUMNS)
        async for _, columns in self._finder.each_chunk(tenant, names, layout, indexes):
            day_of = columns["occurred_at_ms"] // _DAY_MS
            for kind, terms in keys_of(columns).items():
                for day in days & set(np.unique(day_of).tolist()):
                    seen[kind, day].append(np.unique(terms[day_of == day]))
        statements = []
        for (kind, day), parts in sorted(seen.items(), key=lambda one: one[0]):
            here = np.unique(np.concatenate(parts)) if parts else np.empty(0, TERM)
            statements.append(
                history_sql.save_roster(tenant, kind, day * decisions_sql.DAY_S, here[here > 0])
            )
        return statements


def _day_of(moment_ms: int) -> int:
    return moment_ms // _DAY_MS


def _rename(tenant: str, term: terms_sql.Term, value: str) -> list[Statement]:
    statements = [sql.rename_term(tenant, term.id, value)]
    if term.fields & SEARCHED_BITS:
        statements.append(terms_sql.delete_term_search(term))
        statements += terms_sql.insert_term_search([term._replace(value=value)])
    return statements
