"""Refresh: keep the mirrors of configuration equal to the store, whoever changed it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from vettance.db.engine import Store, StoreDown
from vettance.tenants import sql

PAUSE_S = 1.0

#: Reads again what a change of (tenant, subject) touched.
Reload = Callable[[str, str], Awaitable[None]]

_log = structlog.get_logger()


class Refresher:
    """Reads new rows of the change table once a second and has what they name read again."""

    def __init__(self, store: Store, reloads: Mapping[str, Reload]) -> None:
        self._store = store
        self._reloads = reloads
        self._seen = 0
        #: Why the newest look at the store failed, for readiness; None when it went well.
        self.fault: str | None = None

    async def start(self) -> None:
        """Remember where the changes stand; call before the mirrors are first filled."""
        self._seen = (await self._store.read(sql.select_last_change()))[0][0]

    async def look(self) -> None:
        """Apply every change noted since the last look; what was read once for many changes is read once."""
        rows = await self._store.read(sql.select_changes(self._seen))
        for area, tenant, subject in dict.fromkeys((row[1], row[2], row[3]) for row in rows):
            reload = self._reloads.get(area)
            if reload is not None:
                await reload(tenant, subject)
        if rows:
            self._seen = rows[-1][0]

    async def run(self, after_each: Callable[[], Awaitable[None]]) -> None:
        """Look for ever. `after_each` is what else happens once a second; faults are logged, not fatal."""
        while True:
            await asyncio.sleep(PAUSE_S)
            try:
                await self.look()
                await after_each()
                self.fault = None
            except StoreDown as error:
                self.fault = str(error) or "the store is away"
            except Exception as error:  # noqa: BLE001
                # A loop that died silently would freeze every mirror; this one says what happened.
                # Its text may repeat somebody's data, and anybody may ask whether we are ready.
                self.fault = type(error).__name__
                _log.exception("refresh_failed")
