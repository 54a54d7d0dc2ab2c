"""Read from PostgreSQL: the rows of a query, whole or as many as come to so many bytes."""

from typing import Any, Final

from vettance.db.dialect import form_of
from vettance.db.engine import Row, Statement, bytes_of

_TENANT: Final = "SELECT set_config('vettance.tenant', $1, false)"
#: Rows that a cursor is asked for first, and at most: a round trip each, and all in memory at once.
_ROWS_FIRST: Final = 8
_ROWS_AT_ONCE: Final = 64


class ReadConnection:
    """Reads on a connection that writes nothing and that nobody else uses.

    It keeps whose rows the connection shows until a query is about others (ADR 159).
    """

    __slots__ = ("_tenant", "raw")

    def __init__(self, raw: Any) -> None:
        #: The driver's connection.
        self.raw = raw
        self._tenant: str | None = ""

    async def fetch(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, as its tenant sees them."""
        bytes_max = statement.bytes_max
        statement = statement.postgres or statement
        text = form_of(statement).text
        await self._show(statement.tenant or "")
        if bytes_max is not None:
            async with self.raw.transaction(readonly=True):
                return await fetch_next(await self.raw.cursor(text, *statement.args), bytes_max)
        return [tuple(row) for row in await self.raw.fetch(text, *statement.args)]

    async def _show(self, tenant: str) -> None:
        """Have the connection show a tenant's rows and no others; nobody's when the name is empty."""
        if self._tenant != tenant:
            self._tenant = None  # Until the answer is there, it may be either.
            await self.raw.fetchval(_TENANT, tenant)
            self._tenant = tenant


async def fetch_next(cursor: Any, bytes_max: int, rows_max: int | None = None) -> list[Row]:
    """Return the next rows of a cursor until they come to so many bytes, or are so many.

    A cursor is asked for a number of rows, which are in memory together before anybody sees how large they
    are: so for few at first, and then for as many as may still come if all are like the largest so far.
    """
    rows: list[Row] = []
    used, largest, asked = 0, 1, _ROWS_FIRST
    while used < bytes_max and (rows_max is None or len(rows) < rows_max):
        if rows_max is not None:
            asked = min(asked, rows_max - len(rows))
        found = await cursor.fetch(asked)
        if not found:
            break
        for record in found:
            row = tuple(record)
            rows.append(row)
            size = bytes_of(row)
            used += size
            largest = max(largest, size)
        asked = max(1, min(_ROWS_AT_ONCE, (bytes_max - used) // largest))
    return rows
