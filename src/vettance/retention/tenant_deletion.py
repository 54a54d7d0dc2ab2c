"""Removes a tenant with everything that is stored of it, in small commits while servers run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import chain, groupby
from typing import Final

from vettance.db.engine import EVERYBODY, Row, Statement, Store
from vettance.history.segment import SEARCHED_BITS
from vettance.history.sql import select_last_compacted
from vettance.retention import deletion_sql, sql
from vettance.tenants import sql as tenants_sql
from vettance.tenants.sql import DELETED, note_change
from vettance.terms import sql as terms_sql
from vettance.webhooks.sql import AREA as WEBHOOKS

#: Servers look for changes once a second, and finish what they were doing; the contract gives them five.
SETTLE_S: Final = 6.0
#: A chunk is some hundred kilobytes, so that few of them go in one commit.
_CHUNKS: Final = 4
#: Two full-text statements for each.
_TERMS: Final = 100
#: First what workers would go on with, then what names it, which a repeated deletion still needs.
_FIRST: Final = ("job", "import_run")
#: Removed with the tenant itself: one notifies servers, and the others keep it from being used.
_LAST: Final = ("change", "api_key", "quota_use")


class TenantDeleter:
    """Deletes a tenant. Deleting again completes an interrupted deletion: the tenant goes last.

    `clear` removes what is kept outside of the store.
    """

    def __init__(
        self,
        store: Store,
        now_ms: Callable[[], int],
        clear: Callable[[], Awaitable[None]] | None = None,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._clear = clear
        self._settle_s = settle_s
        self._removed: dict[str, int] = {}

    async def count(self, tenant: str) -> dict[str, int]:
        """Return how many rows of the tenant each table has, without those that have none."""
        counts = {
            table.name: (await self._store.read(deletion_sql.count_of_tenant(tenant, table.name)))[0][0]
            for table in await self._tables()
        }
        return {name: count for name, count in counts.items() if count}

    async def delete(self, tenant: str) -> dict[str, int]:
        """Remove everything and return how many rows of each table went."""
        await self._shut(tenant)
        await asyncio.sleep(self._settle_s)
        tables = {table.name: table for table in await self._tables()}
        for name in _FIRST:
            await self._rows(tenant, tables[name])
        await self._deliveries(tenant)
        await self._log(tenant)
        await self._terms(tenant)
        await self._rows(tenant, tables["chunk"], _CHUNKS)
        for name, table in tables.items():
            if name not in _LAST:
                await self._newest(tenant, name)
                await self._rows(tenant, table)
        if self._clear is not None:
            await self._clear()
        last = [await self._all_but_few(tenant, tables[name]) for name in _LAST]
        await self._store.write(
            *chain.from_iterable(last),
            deletion_sql.remove_failing_of(tenant),
            deletion_sql.remove_tenant(tenant),
            # Without its name: everything of the tenant has gone.
            note_change(tenants_sql.AREA, EVERYBODY, "", self._now_ms()),
        )
        # A counter that was being saved in that moment.
        await asyncio.sleep(min(1.0, self._settle_s))
        for table in tables.values():
            await self._rows(tenant, table)
        return {name: count for name, count in self._removed.items() if count}

    async def _shut(self, tenant: str) -> None:
        """Revoke the keys, end the subscriptions and tell every server, in one commit."""
        now_ms = self._now_ms()
        await self._store.write(
            tenants_sql.revoke_keys_of(tenant, now_ms),
            *deletion_sql.end_subscriptions(tenant),
            note_change(DELETED, tenant, tenant, now_ms),
            note_change(WEBHOOKS, tenant, tenant, now_ms),
        )

    async def _tables(self) -> list[deletion_sql.TenantTable]:
        rows = await self._store.read(deletion_sql.select_tables_of_tenants())
        return [
            deletion_sql.TenantTable(name, tuple(row[1] for row in found), bool(is_led))
            for (name, is_led), found in groupby(rows, lambda row: (row[0], row[2]))
        ]

    async def _step(self, tenant: str, table: deletion_sql.TenantTable, limit: int) -> int:
        count = (await self._store.write(deletion_sql.remove_of_tenant(tenant, table, limit)))[0]
        self._note(table.name, count)
        return count

    async def _rows(self, tenant: str, table: deletion_sql.TenantTable, limit: int = sql.STEP) -> None:
        if not table.is_led:
            await self._looked_for(tenant, table)
            return
        while await self._step(tenant, table, limit):
            pass

    async def _looked_for(self, tenant: str, table: deletion_sql.TenantTable) -> None:
        """Go through a table without an index of tenants; the writer only removes what was found."""
        async for found in self._found(tenant, table):
            for start in range(0, len(found), sql.STEP):
                await self._remove_found(tenant, table, found[start : start + sql.STEP])

    async def _found(self, tenant: str, table: deletion_sql.TenantTable) -> AsyncIterator[list[Row]]:
        """Yield the keys of the rows of a tenant, those of a piece of the table at a time."""
        after: Row = ()
        while rows := await self._store.read(deletion_sql.select_next_rows(table, after)):
            after = rows[-1][1:]
            yield [row[1:] for row in rows if row[0] == tenant]

    async def _remove_found(self, tenant: str, table: deletion_sql.TenantTable, found: Sequence[Row]) -> None:
        removals = (deletion_sql.remove_keys(tenant, table, keys) for keys in found)
        self._note(table.name, sum(await self._store.write(*removals)))

    async def _all_but_few(self, tenant: str, table: deletion_sql.TenantTable) -> list[Statement]:
        """Remove all but a few rows; returns what removes those, for the commit with the tenant."""
        if table.is_led:
            while (await self._store.read(deletion_sql.count_of_tenant(tenant, table.name)))[0][0] > sql.STEP:
                await self._step(tenant, table, sql.STEP)
            return [deletion_sql.remove_of_tenant(tenant, table, sql.STEP)]
        found = [keys async for some in self._found(tenant, table) for keys in some]
        while len(found) > sql.STEP:
            await self._remove_found(tenant, table, found[-sql.STEP :])
            del found[-sql.STEP :]
        return [deletion_sql.remove_keys(tenant, table, keys) for keys in found]

    async def _newest(self, tenant: str, table: str) -> None:
        if table in deletion_sql.PLACED and (
            columns := await self._store.read(deletion_sql.select_columns(table))
        ):
            counts = await self._store.write(*deletion_sql.empty_newest(tenant, table, columns))
            self._note(table, counts[-1])

    async def _deliveries(self, tenant: str) -> None:
        await self._newest(tenant, "delivery")
        while count := (await self._store.write(*deletion_sql.remove_deliveries_of(tenant)))[-1]:
            self._note("delivery", count)

    async def _log(self, tenant: str) -> None:
        """Remove events with their decisions and feedback, and what finds them by their ids."""
        while events := await self._store.read(deletion_sql.select_log_of(tenant, sql.STEP)):
            # Asked each time: a server may lay out the last events meanwhile.
            compacted = (await self._store.read(select_last_compacted(tenant)))[0][0] or 0
            found = terms_sql.delete_id_search(event for event in events if event[0] <= compacted)
            ids = [event_id for _, event_id in events]
            if events[-1][0] == (await self._store.read(sql.select_newest()))[0][0]:
                # The rest of this step removes its feedback, and what finds it by its id.
                await self._newest(tenant, "event")
                await self._newest(tenant, "decision")
            counts = await self._store.write(*sql.remove_events(tenant, ids), *found)
            for table, count in zip(
                ("feedback", "label", "review", "decision", "event"), counts, strict=False
            ):
                self._note(table, count)

    async def _terms(self, tenant: str) -> None:
        while rows := await self._store.read(sql.select_next_terms(tenant, None, _TERMS)):
            terms = [terms_sql.Term._make(row[:-1]) for row in rows]
            searched = [terms_sql.delete_term_search(term) for term in terms if term.fields & SEARCHED_BITS]
            removed = deletion_sql.remove_terms_of(tenant, [term.id for term in terms])
            self._note("term", (await self._store.write(removed, *searched))[0])

    def _note(self, table: str, count: int) -> None:
        self._removed[table] = self._removed.get(table, 0) + count
