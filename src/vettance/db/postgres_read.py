"""Read from PostgreSQL: the rows of a query, whole or as many as come to so many bytes."""

from collections.abc import Sequence
from typing import Any, Final

from vettance.db.dialect import form_of
from vettance.db.engine import Row, Statement, bytes_of

_ASIDE: Final = "BEGIN READ ONLY"
_TENANT: Final = "SELECT set_config('vettance.tenant', $1, true)"
#: Rows that a cursor is asked for first, and at most: a round trip each, and all in memory at once.
_ROWS_FIRST: Final = 8
_ROWS_AT_ONCE: Final = 64


async def fetch(connection: Any, statement: Statement) -> list[Row]:
    """Return the rows of a query, as its tenant sees them."""
    bytes_max = statement.bytes_max
    statement = statement.postgres or statement
    text = form_of(statement).text
    if bytes_max is not None:
        return await _fetch_piece(connection, statement.tenant, text, statement.args, bytes_max)
    if statement.tenant is None:
        return [tuple(row) for row in await connection.fetch(text, *statement.args)]
    await connection.execute(_ASIDE)
    await connection.fetchval(_TENANT, statement.tenant)
    rows = [tuple(row) for row in await connection.fetch(text, *statement.args)]
    await connection.execute("COMMIT")
    return rows


async def _fetch_piece(
    connection: Any, tenant: str | None, text: str, args: Sequence[Any], bytes_max: int
) -> list[Row]:
    async with connection.transaction(readonly=True):
        if tenant is not None:
            await connection.fetchval(_TENANT, tenant)
        return await fetch_next(await connection.cursor(text, *args), bytes_max)


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
