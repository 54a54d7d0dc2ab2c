"""Membership: processes of a deployment that do the same work know each other, and know when one is gone."""

import asyncio
import secrets
from typing import Any, Final

from vettance.db.engine import StoreDown
from vettance.db.postgres_link import ERRORS, connect, part

_ANSWER_S_MAX: Final = 3.0
_JOIN: Final = "SELECT pg_try_advisory_lock($1::int, $2::int)"
# An advisory lock of two numbers has `objsubid` 2, the numbers in `classid` and `objid`
# (postgresql.org/docs/current/view-pg-locks.html).
_MEMBERS: Final = (
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::int::oid "
    "AND objsubid = 2 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
# The number is "whsd" in ASCII.
_DELIVERERS: Final = 0x77687364
_NUMBER_MAX: Final = 2**31


class Membership:
    """The place of one process among those that deliver webhooks from a database.

    It is a lock that PostgreSQL takes back with the connection: a process without one is gone, or cut off
    from the database, which for its work is the same.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._is_member = False
        #: By which the others know this process.
        self.number = secrets.randbelow(_NUMBER_MAX)

    async def look(self) -> frozenset[int]:
        """Take the place, or make sure of it; return the numbers of all who have one. Raises `StoreDown`."""
        try:
            if self._connection is None:
                self._connection = await connect(
                    self._url, statement_s_max=_ANSWER_S_MAX, writes=False, plain=True
                )
            if not self._is_member:
                self._is_member = bool(
                    await self._ask(self._connection.fetchval(_JOIN, _DELIVERERS, self.number))
                )
            rows = await self._ask(self._connection.fetch(_MEMBERS, _DELIVERERS))
        except ERRORS as error:
            await self.leave()
            raise StoreDown(f"PostgreSQL cannot be asked who delivers ({type(error).__name__})") from None
        return frozenset(row[0] for row in rows)

    async def leave(self) -> None:
        """Give the place up."""
        connection, self._connection, self._is_member = self._connection, None, False
        if connection is not None:
            await part(connection)

    async def _ask(self, question: Any) -> Any:
        """Ask the server; one that went away without a word has not answered in time."""
        async with asyncio.timeout(_ANSWER_S_MAX):
            return await question
