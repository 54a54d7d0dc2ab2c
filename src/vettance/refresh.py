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
    """Reads new rows of the change table once a second and has what they name read again.

    What cannot be read again is tried again at the next look, and keeps no other change from being
    seen.
    """

    def __init__(self, store: Store, reloads: Mapping[str, Reload]) -> None:
        self._store = store
        self._reloads = reloads
        self._seen = 0
        # (area, tenant, subject), in the order of the changes; a dict for want of an ordered set.
        self._due: dict[tuple[str, str, str], None] = {}
        #: Why the newest look at the store failed, for readiness; None when it went well.
        self.fault: str | None = None

    async def start(self) -> None:
        """Remember where the changes stand; call before the mirrors are first filled."""
        self._seen = (await self._store.read(sql.select_last_change()))[0][0]

    async def look(self) -> None:
        """Apply every change noted since the last look; what was read once for many changes is read once.

        Raises the first of what went wrong, when all else has been applied.
        """
        rows = await self._store.read(sql.select_changes(self._seen))
        self._due.update(((area, tenant, subject), None) for _, area, tenant, subject in rows)
        if rows:
            self._seen = rows[-1][0]
        failed: Exception | None = None
        for area, tenant, subject in list(self._due):
            reload = self._reloads.get(area)
            try:
                if reload is not None:
                    await reload(tenant, subject)
            except StoreDown:
                raise
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
            else:
                del self._due[area, tenant, subject]
        if failed is not None:
            raise failed

    async def run(self, after_each: Callable[[], Awaitable[None]]) -> None:
        """Look for ever. `after_each` is what else happens once a second; faults are logged, not fatal."""
        while True:
            await asyncio.sleep(PAUSE_S)
            fault = None
            for step in (self.look, after_each):
                try:
                    await step()
                except StoreDown as error:
                    fault = str(error) or "the store is away"
                except Exception as error:  # noqa: BLE001
                    # A loop that died silently would freeze every mirror; this one says what happened.
                    # Its text may repeat somebody's data, and anybody may ask whether we are ready.
                    fault = type(error).__name__
                    _log.exception("refresh_failed")
            self.fault = fault
