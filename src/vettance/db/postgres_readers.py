"""Readers of PostgreSQL: a few connections of a process that only read, of a primary or of its replica."""

import asyncio
import contextlib
from typing import Final

from vettance.db.engine import Clash, Misuse, Row, Statement, StoreDown
from vettance.db.postgres_link import ERRORS, RolledBack, StatementRefused, connect, failure, part
from vettance.db.postgres_read import ReadConnection
from vettance.db.reader_pool import READERS, WAITING_MAX

CLOSED: Final = "the store is closed"
_TOO_LONG: Final = "57014"
_HAS_REPLAYED: Final = (
    "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= pg_lsn '0/0' + $1::bigint::numeric"
)


class ReadTooLong(StoreDown):
    """A read took longer than it may; another server would not take less."""


class ReadBehind(StoreDown):
    """The replica has not replayed what the read must see."""

    def __init__(self) -> None:
        super().__init__("the replica is behind a write that the read must see")


class PostgresReaders:
    """Answers queries; at most `READERS` at a time, each within `read_s_max` seconds.

    With `of_replica`, only a standby is read, and nothing is read twice: the primary is asked then.
    """

    def __init__(self, url: str, read_s_max: float, *, of_replica: bool = False) -> None:
        self._url = url
        self._read_s_max = read_s_max
        self._of_replica = of_replica
        self._idle: list[ReadConnection] = []
        self._reading = asyncio.Semaphore(READERS)
        self._reads = 0
        self._closed = False

    async def read(self, statement: Statement, position: int | None = None) -> list[Row]:
        """Return the rows of a query. Raises `StoreDown` and `Misuse`.

        With a `position` in the log of the primary (bytes), a server that has not replayed it raises
        `ReadBehind`.
        """
        if self._reads >= WAITING_MAX:
            raise StoreDown("the store is overloaded with reads")
        self._reads += 1
        try:
            async with asyncio.timeout(self._read_s_max + 1), self._reading:
                if not self._of_replica:
                    with contextlib.suppress(RolledBack):
                        return await self._read(statement, position)
                return await self._read(statement, position)
        except TimeoutError:
            raise ReadTooLong(f"a read took longer than {self._read_s_max:g} s") from None
        finally:
            self._reads -= 1

    async def _read(self, statement: Statement, position: int | None) -> list[Row]:
        if self._closed:
            raise StoreDown(CLOSED)
        reader = self._idle.pop() if self._idle else None
        if reader is None or reader.raw.is_closed():
            made = await connect(
                self._url, statement_s_max=self._read_s_max, writes=False, standby=self._of_replica
            )
            reader = ReadConnection(made)
        whole = False
        try:
            if position is not None and not await reader.raw.fetchval(_HAS_REPLAYED, position):
                whole = True
                raise ReadBehind
            rows = await reader.fetch(statement)
            whole = True
        except ERRORS as error:
            reason = failure(error)
            whole = isinstance(reason, Misuse | Clash | StatementRefused)
            if isinstance(error, TimeoutError):
                raise
            if getattr(error, "sqlstate", None) == _TOO_LONG:
                whole = True
                reason = ReadTooLong(f"a read took longer than {self._read_s_max:g} s")
            raise (Misuse(str(reason)) if isinstance(reason, Clash) else reason) from None
        finally:
            if whole and not self._closed and not reader.raw.is_closed():
                self._idle.append(reader)
            else:
                # Nobody waits for its answer; the server notices the closed connection.
                reader.raw.terminate()
        return rows

    def drop(self) -> None:
        """Let go of connections that nobody uses: the server behind them may be another by now."""
        idle, self._idle = self._idle, []
        for reader in idle:
            reader.raw.terminate()

    async def close(self) -> None:
        """Take no more queries and let go of every connection."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(part(reader.raw) for reader in idle))
