"""Removes what is older than the policy keeps, in small commits while the service runs."""

from collections.abc import Callable

import numpy as np

from vettance.db.engine import Lost, Store
from vettance.decisions.searchable_fields import COLUMNS, REASONS
from vettance.decisions.sql import DAY_S, MINUTE_S
from vettance.fairness.isolation import Isolation, WorkFailure
from vettance.history.column_cache import SegmentOffsets
from vettance.history.compaction import Compactor
from vettance.history.decision_search import ChunksChanged, DecisionFinder
from vettance.history.segment import SEARCHED_BITS, Array
from vettance.history.sql import select_last_compacted
from vettance.retention import sql
from vettance.settings.retention_policy import Policy
from vettance.tenants.sql import select_tenants
from vettance.terms import sql as terms_sql

_TERMS = 2_000
_TRIES = 20


class Retainer:
    """Removes old data. Counts of removed events stay in the statistics, which name no customer."""

    def __init__(self, store: Store, policy: Policy, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._policy = policy
        self._now_ms = now_ms
        self._finder = DecisionFinder(store)
        self._compactor = Compactor(store)
        self._isolation = Isolation("retention")

    async def run(self, *, dry_run: bool = False) -> dict[str, int]:
        """Remove everything too old (or only count it) and return how many rows of each class."""
        removed = {"events": await self._events(dry_run=dry_run)}
        for one in sql.CLASSES:
            removed[one.name] = 0
            with self._isolation.of(one.name):
                removed[one.name] = await self._rows(one, dry_run=dry_run)
        removed[sql.STATISTICS] = 0
        with self._isolation.of(sql.STATISTICS):
            removed[sql.STATISTICS] = await self._statistics(dry_run=dry_run)
        return removed

    @property
    def failing(self) -> tuple[WorkFailure, ...]:
        """For which tenants, and of which classes, nothing or not all could be removed."""
        return self._isolation.failing

    async def _rows(self, one: sql.DataClass, *, dry_run: bool) -> int:
        before_ms = self._policy.before_ms(one.name, self._now_ms())
        if before_ms is None:
            return 0
        if dry_run:
            return int((await self._store.read(sql.count_old(one, before_ms)))[0][0])
        if one.made is not None:
            return await self._looked_for(one, before_ms)
        total = 0
        while count := (await self._store.write(sql.remove_indexed(one, before_ms)))[0]:
            total += count
        return total

    async def _looked_for(self, one: sql.DataClass, before_ms: int) -> int:
        """Go through the rows made before a moment; the writer only removes what was found."""
        total, after, is_over = 0, 0, False
        while not is_over and (rows := await self._store.read(sql.select_looked_at(one, after, before_ms))):
            after = rows[-1][0]
            is_over = not any(is_before for _, _, is_before in rows)
            old = [seq for seq, is_old, _ in rows if is_old]
            for start in range(0, len(old), sql.STEP):
                found = old[start : start + sql.STEP]
                total += (await self._store.write(*sql.remove_found(one, found, before_ms, self._now_ms())))[
                    -1
                ]
        return total

    async def _statistics(self, *, dry_run: bool) -> int:
        before_ms = self._policy.before_ms(sql.STATISTICS, self._now_ms())
        if before_ms is None:
            return 0
        total = 0
        for row in await self._store.read(select_tenants()):
            if dry_run:
                counted = await self._store.read(sql.count_old_statistics(row[0], before_ms // 1000))
                total += counted[0][0]
                continue
            for width_s in (MINUTE_S, DAY_S):
                removal = sql.remove_old_statistics(row[0], width_s, before_ms // 1000)
                while count := (await self._store.write(removal))[0]:
                    total += count
        return total

    async def _events(self, *, dry_run: bool) -> int:
        before_ms = self._policy.before_ms("events", self._now_ms())
        if before_ms is None:
            return 0
        total = 0
        newest = (await self._store.read(sql.select_newest()))[0][0] or 0
        for row in await self._store.read(select_tenants()):
            with self._isolation.of(row[0]):
                total += await self._events_of(row[0], before_ms, newest, dry_run=dry_run)
        return total

    async def _events_of(self, tenant: str, before_ms: int, newest: int, *, dry_run: bool) -> int:
        total, through = 0, 0
        # What is in a chunk is certainly in the index of ids; what is newer may not be yet.
        compacted = (await self._store.read(select_last_compacted(tenant)))[0][0] or 0
        while found := await self._store.read(sql.select_oldest(tenant, through, newest, sql.STEP)):
            # The log is in the order of evaluation: the first event young enough ends the search.
            old = [(seq, event_id) for seq, event_id, at_ms in found if at_ms < before_ms]
            if old:
                through = old[-1][0]
                total += len(old)
                if not dry_run:
                    await self._store.write(
                        *sql.remove_events(tenant, [event_id for _, event_id in old]),
                        *terms_sql.delete_id_search(one for one in old if one[0] <= compacted),
                    )
            if len(old) < len(found):
                break
        if total and not dry_run:
            await self._chunks(tenant, through)
            await self._terms(tenant)
        return total

    async def _chunks(self, tenant: str, through: int) -> None:
        """Remove the chunks of removed events; one that holds others too is replaced."""
        await self._store.write(sql.remove_chunks(tenant, through))
        for chunk in (await self._finder.layout(tenant)).chunks:
            if chunk.first_seq <= through:
                await self._compactor.compact_again(tenant, through + 1, chunk.id)

    async def _terms(self, tenant: str) -> None:
        """Remove the texts that no chunk refers to any more."""
        for _ in range(_TRIES):
            epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
            highest = (await self._store.read(terms_sql.select_last_term()))[0][0]
            layout = await self._finder.layout(tenant)
            try:
                used = await self._used_terms(tenant, highest, layout)
                # The highest number stays, so that it is never given to another text.
                used[highest] = True
                await self._remove_terms(tenant, used, epoch, layout.through)
            except (ChunksChanged, Lost):
                continue
            return

    async def _used_terms(self, tenant: str, highest: int, layout: SegmentOffsets) -> Array:
        """Mark the terms, by number, that a tenant's chunks refer to."""
        used = np.zeros(highest + 1, bool)
        for name in (*COLUMNS, REASONS):
            async for _, columns in self._finder.each_chunk(tenant, [name], layout, range(len(layout.ids))):
                terms = columns[name]
                used[terms["term"] if name == REASONS else terms] = True
        return used

    async def _remove_terms(self, tenant: str, used: Array, epoch: int, newest: int) -> None:
        after = None
        while rows := await self._store.read(sql.select_next_terms(tenant, after, _TERMS)):
            terms = [terms_sql.Term._make(row[:-1]) for row in rows]
            after = rows[-1][-1]
            orphans = [term for term in terms if term.id < len(used) and not used[term.id]]
            for start in range(0, len(orphans), sql.STEP // 5):
                statements = [sql.raise_epoch(tenant, epoch, newest)]
                for term in orphans[start : start + sql.STEP // 5]:
                    statements.append(sql.remove_term(tenant, term.id))
                    if term.fields & SEARCHED_BITS:
                        statements.append(terms_sql.delete_term_search(term))
                await self._store.write(*statements)
                epoch += 1
