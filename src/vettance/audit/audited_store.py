"""A store that adds the entry of the current act to the commit of its first change."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from vettance import clock
from vettance.audit.act import Act, current_act
from vettance.audit.sql import is_entry, record
from vettance.db.engine import EVERYBODY, Row, Statement, Store
from vettance.ids import IdSource

#: Hears whose rows were changed, and by which statements.
OnChange = Callable[[str, Sequence[Statement]], Awaitable[None]]


class AuditedStore:
    """Implements `Store` on another one. Outside of an act it adds nothing.

    `act` is what everything that is written by it belongs to, for a command. `on_change` is called with the
    tenant and what was written after each write within an act, before that returns.
    """

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        act: Act | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
        on_change: OnChange | None = None,
    ) -> None:
        self._store = store
        self._on_change = on_change
        self._ids = ids
        self.act = act
        self._now_ms = now_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known."""
        return self._store.healthy()

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query."""
        return await self._store.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit, with the entry of the act when this is its first change."""
        act = current_act() or self.act
        if act is None:
            return await self._store.write(*statements)
        counts = await self._write_within(act, statements)
        if self._on_change is not None:
            await self._on_change(act.tenant or _tenant_of(statements), statements)
        return counts

    async def _write_within(self, act: Act, statements: tuple[Statement, ...]) -> list[int]:
        if act.is_recorded:
            return await self._store.write(*statements)
        added = []
        if not any(map(is_entry, statements)):
            now_ms = self._now_ms()
            added = record(act.entry(self._ids.make("aud", now_ms), _tenant_of(statements), now_ms))
        counts = await self._store.write(*statements, *added)
        act.is_recorded = True
        return counts[: len(statements)]

    async def record(self) -> None:
        """Record the act although it changes nothing: somebody took data out, or looked behind a mask."""
        act = current_act() or self.act
        if act is not None and not act.is_recorded:
            await self.write()

    async def migrate(self) -> int:
        """Bring the schema to the newest version."""
        return await self._store.migrate()

    async def close(self) -> None:
        """Finish what is in flight and release every resource."""
        await self._store.close()


def _tenant_of(statements: tuple[Statement, ...]) -> str:
    """Return whose rows are changed first, of all that name a tenant."""
    return (
        next((one.tenant for one in statements if one.tenant not in (None, "", EVERYBODY)), None) or EVERYBODY
    )
