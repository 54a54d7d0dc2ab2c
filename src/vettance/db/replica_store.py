"""The replica store: reads that may lag behind go to a replica, all else to the primary."""

import contextlib
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from vettance.db.engine import EVERYBODY, Misuse, Row, Statement, Store, StoreDown
from vettance.db.postgres_link import RolledBack, StatementRefused
from vettance.db.postgres_readers import ReadBehind, ReadTooLong
from vettance.db.replica_link import ReplicaLink
from vettance.db.write_positions import WritePositions, note_write
from vettance.telemetry.meters import Meters

#: A request of which one read went to the primary reads there to its end, and no longer than this: a replica
#: that is behind what it has seen already would contradict it.
_STAYS_S: Final = 30.0
#: What says nothing against the replica: it is one statement that failed, or is behind for one tenant.
_OF_ONE_READ: Final = (ReadBehind, RolledBack, StatementRefused)

_primary_until_s: ContextVar[float] = ContextVar("primary_until_s", default=0.0)


class ReplicaStore:
    """Implements `Store`: reads from a replica where that may be, and writes to the primary.

    A read sees every write of its tenant that somebody made within an act (`positions`), as on the primary,
    and decisions as late as the replica is behind. Where the replica cannot answer, for whatever reason, the
    primary does. Nothing that decides may read here.
    """

    def __init__(
        self,
        primary: Store,
        link: ReplicaLink,
        positions: WritePositions,
        meters: Meters | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._positions = positions
        self._meters = meters or Meters()
        self._now_s = now_s
        self.link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._primary, name)

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known."""
        return self._primary.healthy()

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, from the replica where it may be asked."""
        if self.link.fault is None and self._now_s() >= _primary_until_s.get():
            tenant = statement.tenant
            position = 0 if tenant in (None, EVERYBODY) else await self._positions.newest(str(tenant))
            if position is not None:
                try:
                    rows = await self.link.read(statement, position)
                except ReadTooLong:
                    raise
                except (StoreDown, Misuse) as error:
                    # A statement that is wrong may be one for a schema that the replica has not replayed.
                    if not isinstance(error, (*_OF_ONE_READ, Misuse)):
                        self.link.doubt(str(error))
                else:
                    self._meters.read_from("replica")
                    return rows
        _primary_until_s.set(self._now_s() + _STAYS_S)
        self._meters.read_from("primary")
        return await self._primary.read(statement)

    async def note_change(self, tenant: str) -> None:
        """Have reads of a tenant that begin from now on see what somebody has just changed."""
        if tenant and tenant != EVERYBODY:
            # The write is kept already. Without the primary there are no reads of it either, and when it is
            # back the replica is looked at anew.
            with contextlib.suppress(StoreDown):
                await note_write(self._primary, self._positions, tenant)

    @property
    def levels(self) -> dict[str, Callable[[], float | None]]:
        """Return the figures of the replica, for the metrics."""
        return {
            "replica_used": lambda: self.link.fault is None,
            "replica_lag_seconds": lambda: self.link.lag_s,
        }

    async def notice(self) -> str | None:
        """Say why the replica is not read, where that is so."""
        return f"the primary is read instead: {fault}" if (fault := self.link.fault) is not None else None

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit of the primary."""
        return await self._primary.write(*statements)

    async def migrate(self) -> int:
        """Bring the schema to the newest version."""
        return await self._primary.migrate()

    async def close(self) -> None:
        """Let go of the replica; the primary belongs to others."""
        await self.link.close()
