"""Stores logged decisions by columns, in steps so small that no request waits for them."""

import asyncio
import contextlib
import importlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from vettance.db.engine import Clash, Lost, Statement, Store, StoreDown
from vettance.db.log_walk import END
from vettance.decisions import sql as decisions_sql
from vettance.fairness.isolation import Isolation
from vettance.history import sql
from vettance.history.segment import (
    AT_ONCE,
    CHUNK,
    SEARCHED_BITS,
    TERM,
    Array,
    describe,
    ids_of,
    keys_of,
    layout,
    row_of,
    texts_of,
)
from vettance.terms import sql as terms_sql
from vettance.terms.find_terms import find_terms

LOOK_S: Final = 0.25
#: Rows of a full-text index in one commit: a millisecond of the embedded store's writer, for which decisions
#: wait, or a few of PostgreSQL, for which nobody does.
STEP: Final = 64
SHARED_STEP: Final = 256


class Compactor:
    """Makes a chunk of a tenant's decisions whenever enough of them are in none.

    It follows the log of all tenants, whichever process writes it. A chunk that was interrupted is begun
    again: terms that exist already are reused, and the chunk itself is one commit.
    """

    def __init__(self, store: Store, *, chunk: int = CHUNK, at_once: int = AT_ONCE, step: int = STEP) -> None:
        self._store = store
        self._chunk = chunk
        self._at_once = at_once
        self._step = step
        #: Up to where the log of all tenants was looked at.
        self._end = 0
        self._compacted: dict[str, int] = {}
        #: How many decisions of a tenant up to `_end` are in no chunk, where that was counted.
        self._open: dict[str, int] = {}
        self._last_term = 0
        self._isolation = Isolation("history")

    async def run(self, tenants: Sequence[str]) -> None:
        """Make chunks until cancelled; `tenants` are those whose decisions may be in none at the start."""
        # `np.unique` imports it at its first call, which would take 40 ms of the loop.
        await asyncio.to_thread(importlib.import_module, "numpy.ma")
        waiting = set(tenants)
        while True:
            with contextlib.suppress(StoreDown):  # Chunks wait until it is back.
                waiting.update(await self._look())
                for tenant in self._isolation.due(sorted(waiting)):
                    with self._isolation.of(tenant):
                        while await self._count_open(tenant) >= self._chunk:
                            await self.compact(tenant, self._chunk)
                        waiting.discard(tenant)
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> list[str]:
        """Count what is new in the log, and return whose it is."""
        if not self._end:
            self._end = (await self._store.read(sql.select_end()))[0][0]
            return []
        rows = await self._store.read(sql.count_new(self._end))
        for tenant, fresh, last in rows:
            self._end = max(self._end, last)
            if tenant in self._open:
                self._open[tenant] += fresh
        return [row[0] for row in rows]

    async def _count_open(self, tenant: str) -> int:
        if tenant not in self._open:
            after = await self._last_compacted(tenant)
            self._open[tenant] = (await self._store.read(sql.count_after(tenant, after, self._end)))[0][0]
        return self._open[tenant]

    async def _last_compacted(self, tenant: str) -> int:
        if tenant not in self._compacted:
            self._compacted[tenant] = (await self._store.read(sql.select_last_compacted(tenant)))[0][0] or 0
        return self._compacted[tenant]

    async def compact(self, tenant: str, limit: int) -> int:
        """Make a chunk of the next decisions, `limit` at most, and return how many they are."""
        after = await self._last_compacted(tenant)
        self._open.pop(tenant, None)
        epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
        columns = await self._lay_out(tenant, after, limit)
        if columns is None:
            return 0
        size, last = len(columns["seq"]), int(columns["seq"][-1])
        for start in range(0, size, self._step):
            await asyncio.sleep(0)
            ids = ids_of(columns, start, start + self._step)
            await self._store.write(*terms_sql.insert_id_search(ids))
        try:
            await self._store.write(
                terms_sql.hold_epoch(epoch),
                *sql.insert_chunk(tenant, describe(columns), columns),
                *await self._rosters(tenant, columns),
            )
        except (Clash, Lost):
            # Another process was faster, or removed terms meanwhile: begin again from what there is now.
            self._compacted.pop(tenant, None)
            return size
        self._compacted[tenant] = last
        return size

    async def compact_again(self, tenant: str, first: int, last: int) -> None:
        """Lay out a chunk anew (the one that ends at `last`), from what is left of its decisions."""
        while True:
            epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
            columns = await self._lay_out(tenant, first - 1, last - first + 1, last)
            try:
                await self._store.write(
                    terms_sql.hold_epoch(epoch),
                    sql.delete_chunk(tenant, last),
                    *(sql.insert_chunk(tenant, describe(columns), columns) if columns is not None else ()),
                )
            except Lost:
                continue
            return

    async def _lay_out(self, tenant: str, after: int, limit: int, last: int = END) -> dict[str, Array] | None:
        """Lay out the next decisions after a place in the log, none beyond `last`; None when there are none.

        They are read in slices: all of a chunk at once would be a hundred thousand small objects, and leave
        holes in memory where they were.
        """
        terms: dict[str, terms_sql.Term] = {}
        parts: list[dict[str, Array]] = []
        start = 0
        while start < limit:
            found = await self._store.read(
                sql.select_span(tenant, after, min(self._at_once, limit - start), last)
            )
            if not found:
                break
            rows = [row_of(row) for row in found]
            texts = texts_of(rows)
            await self._number(tenant, texts, terms)
            parts.append(layout(rows, {text: terms[text].id for text in texts}, start))
            await asyncio.sleep(0)
            after, start = rows[-1].seq, start + len(rows)
        if not parts:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    async def _number(self, tenant: str, texts: Mapping[str, int], known: dict[str, terms_sql.Term]) -> None:
        """Get to know the term of every text of some decisions, giving new ones to those that have none."""
        known.update(await find_terms(self._store, tenant, [text for text in texts if text not in known]))
        fresh = [text for text in texts.items() if text[0] not in known]
        for start in range(0, len(fresh), self._step):
            await asyncio.sleep(0)
            added = await self._add(tenant, fresh[start : start + self._step])
            known.update((term.value, term) for term in added)
        # Also those that another process has added meanwhile, maybe for other fields.
        for value, fields in texts.items():
            term = known[value]
            if not fields & ~term.fields:
                continue
            wide = known[value] = term._replace(fields=term.fields | fields)
            if not term.fields & SEARCHED_BITS and wide.fields & SEARCHED_BITS:
                with contextlib.suppress(Clash, Lost):  # Another process has made it findable.
                    await self._store.write(
                        terms_sql.make_findable(tenant, wide, SEARCHED_BITS),
                        *terms_sql.insert_term_search([wide]),
                    )
            await self._store.write(terms_sql.widen_term(tenant, wide))

    async def _add(self, tenant: str, fresh: Sequence[tuple[str, int]]) -> list[terms_sql.Term]:
        """Number some texts. Another process may be doing so too; then we look again."""
        found: list[terms_sql.Term] = []
        while fresh:
            if not self._last_term:
                self._last_term = (await self._store.read(terms_sql.select_last_term()))[0][0]
            first = self._last_term + 1
            terms = [terms_sql.Term(first + place, *text) for place, text in enumerate(fresh)]
            searched = [term for term in terms if term.fields & SEARCHED_BITS]
            try:
                await self._store.write(
                    *terms_sql.insert_terms(tenant, terms), *terms_sql.insert_term_search(searched)
                )
            except Clash:
                self._last_term = 0
                known = await find_terms(self._store, tenant, [value for value, _ in fresh])
                found += known.values()
                fresh = [text for text in fresh if text[0] not in known]
            else:
                self._last_term = terms[-1].id
                return found + terms
        return found

    async def _rosters(self, tenant: str, columns: Mapping[str, Array]) -> list[Statement]:
        """Add the customers and devices of a chunk to those of its days."""
        days = columns["occurred_at_ms"] // (decisions_sql.DAY_S * 1000) * decisions_sql.DAY_S
        seen = keys_of(columns)
        statements = []
        for day in np.unique(days):
            known: dict[str, bytes] = dict(await self._store.read(sql.select_roster_day(tenant, int(day))))
            for kind, terms in seen.items():
                here = terms[days == day]
                before = np.frombuffer(known.get(kind, b""), TERM)
                together = np.union1d(before, here[here > 0])
                if len(together) > len(before):
                    statements.append(sql.save_roster(tenant, kind, int(day), together))
        return statements
