"""Observed store: reports the outages of a store to the log, once for all of its callers."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

from vettance.db.engine import Row, Statement, Store, StoreDown, Turn, Turns
from vettance.telemetry.outages import Outage


class WatchedStore:
    """Wraps a store and records how each call ended; everything else is the store itself."""

    def __init__(self, store: Store, outage: Outage) -> None:
        self._store = store
        self._outage = outage
        self._is_closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known."""
        return self._store.healthy()

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query."""
        try:
            rows = await self._store.read(statement)
        except StoreDown as error:
            self._down(error.full)
            raise
        # Writes may fail while reads do not. There are always reads, but not always writes.
        if not self._store.healthy():
            self._down(getattr(self._store, "trouble", None) or "it takes no writes")
        elif self._outage.is_down:
            self._outage.up()
        return rows

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit."""
        try:
            return await self._store.write(*statements)
        except StoreDown as error:
            self._down(error.full)
            raise

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Wait for a turn; only a store of several processes gives any."""
        try:
            async with cast(Turns, self._store).turn() as turn:
                yield turn
        except StoreDown as error:
            self._down(error.full)
            raise

    async def migrate(self) -> int:
        """Bring the schema to the newest version."""
        return await self._store.migrate()

    async def close(self) -> None:
        """Close the store; its refusals after that are no outage."""
        self._is_closing = True
        await self._store.close()

    def _down(self, reason: str) -> None:
        if not self._is_closing:
            self._outage.down(reason)
