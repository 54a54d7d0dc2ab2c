"""Write positions: how far the log of the primary was when somebody last changed something of a tenant."""

from typing import Final, Protocol

from vettance.db.engine import Statement, Store

#: The place in the log of the primary up to which everything is on the disk, in bytes.
SELECT_POSITION: Final = Statement("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")


class WritePositions(Protocol):
    """Remembers, for all processes of a deployment, what the reads of a tenant have to see."""

    async def note(self, tenant: str, position: int) -> None:
        """Note a position; of two the later one is kept."""

    async def newest(self, tenant: str) -> int | None:
        """Return the position that a tenant's reads must see; 0 for any, None where that cannot be known."""


class OwnPositions:
    """Implements `WritePositions` for one process: a number for each tenant of which anything was changed."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    async def note(self, tenant: str, position: int) -> None:
        """Note a position; of two the later one is kept."""
        self._positions[tenant] = max(position, self._positions.get(tenant, 0))

    async def newest(self, tenant: str) -> int | None:
        """Return the position that a tenant's reads must see."""
        return self._positions.get(tenant, 0)


async def note_write(primary: Store, positions: WritePositions, tenant: str) -> None:
    """Have the reads of a tenant that begin from now on see everything that is written by now."""
    rows = await primary.read(SELECT_POSITION)
    await positions.note(tenant, rows[0][0])
