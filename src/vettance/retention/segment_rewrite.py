"""Replaces texts of some decisions in the chunks that were made of them."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from vettance.db.engine import Lost, Statement, Store
from vettance.decisions import sql as decisions_sql
from vettance.decisions.searchable_fields import COLUMNS
from vettance.history import sql as history_sql
from vettance.history.column_cache import SegmentOffsets
from vettance.history.compaction import Compactor
from vettance.history.decision_search import DecisionFinder
from vettance.history.segment import BITS, COUNTED_COLUMNS, SEARCHED_BITS, Array, keys_of
from vettance.retention import sql
from vettance.terms import sql as terms_sql

_TRIES: Final = 20


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
        for _ in range(_TRIES):
            epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
            layout = await self._finder.layout(tenant)
            places = await self._finder.places(tenant, layout, np.array(sorted(seqs), np.int64))
            alone, twins, shared = await self._sort_out(tenant, layout, places, renamed)
            statements = [sql.raise_epoch(tenant, epoch, layout.through)]
            for term in alone:
                statements += _rename(tenant, term, renamed(term.value))
            try:
                await self._store.write(*statements)
                if shared or twins:
                    await self._compact_again(tenant, layout, places, twins)
            except Lost:
                continue
            return
        raise Lost("the history was being laid out all the time; try again")

    async def _sort_out(
        self, tenant: str, layout: SegmentOffsets, places: Array, renamed: Callable[[str], str]
    ) -> tuple[list[terms_sql.Term], list[terms_sql.Term], bool]:
        """Sort the terms to be renamed.

        Returns those used nowhere else, those of them whose new text another one has already, and whether
        there are terms that are used elsewhere too.
        """
        columns = {name: await self._finder.column(tenant, name, layout) for name in COLUMNS}
        numbers = np.unique(np.concatenate([columns[name][places] for name in COLUMNS])).tolist()
        alone: dict[str, terms_sql.Term] = {}
        twins: list[terms_sql.Term] = []
        shared = False
        for start in range(0, len(numbers), terms_sql.ASKED):
            asked = numbers[start : start + terms_sql.ASKED]
            for row in await self._store.read(terms_sql.select_terms_by_number(tenant, asked)):
                term = terms_sql.Term._make(row)
                new = renamed(term.value)
                if new == term.value:
                    continue
                if _is_used_elsewhere(term, columns, places):
                    shared = True
                elif new in alone or await self._store.read(terms_sql.select_terms(tenant, [new])):
                    twins.append(term)
                else:
                    alone[new] = term
        return list(alone.values()), twins, shared

    async def _compact_again(
        self, tenant: str, layout: SegmentOffsets, places: Array, orphans: Sequence[terms_sql.Term]
    ) -> None:
        """Replace the chunks of some decisions, then the rosters of their days; remove terms left over."""
        indexes = np.unique(layout.chunks_of_places(places)).tolist()
        days: set[int] = set()
        for index in indexes:
            chunk = layout.chunks[index]
            days.update(range(_day_of(chunk.occurred_min_ms), _day_of(chunk.occurred_max_ms) + 1))
            await self._compactor.compact_again(tenant, chunk.first_seq, chunk.id)
        epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
        fresh = DecisionFinder(self._store)
        layout = await fresh.layout(tenant)
        names = ("occurred_at_ms", *COUNTED_COLUMNS)
        columns = {name: await fresh.column(tenant, name, layout) for name in names}
        seen, day_of = keys_of(columns), columns["occurred_at_ms"] // (decisions_sql.DAY_S * 1000)
        statements = [sql.raise_epoch(tenant, epoch, layout.through)]
        for day in sorted(days):
            for kind, terms in seen.items():
                here = np.unique(terms[day_of == day])
                statements.append(
                    history_sql.save_roster(tenant, kind, day * decisions_sql.DAY_S, here[here > 0])
                )
        for term in orphans:
            statements.append(sql.remove_term(tenant, term.id))
            if term.fields & SEARCHED_BITS:
                statements.append(terms_sql.delete_term_search(term))
        await self._store.write(*statements)


def _day_of(moment_ms: int) -> int:
    return moment_ms // (decisions_sql.DAY_S * 1000)


def _is_used_elsewhere(term: terms_sql.Term, columns: dict[str, Array], places: Array) -> bool:
    """Tell whether a term is used in other decisions, or in a field that is never renamed."""
    if term.fields & ~sum(BITS[name] for name in COLUMNS):
        return True
    for name in COLUMNS:
        if term.fields & BITS[name] and not np.isin(np.flatnonzero(columns[name] == term.id), places).all():
            return True
    return False


def _rename(tenant: str, term: terms_sql.Term, value: str) -> list[Statement]:
    statements = [sql.rename_term(tenant, term.id, value)]
    if term.fields & SEARCHED_BITS:
        statements.append(terms_sql.delete_term_search(term))
        statements += terms_sql.insert_term_search([term._replace(value=value)])
    return statements
