"""Turns in PostgreSQL: the one write transaction of the whole database, open to reads and writes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any, Final

from vettance.db.dialect import form_of
from vettance.db.engine import ANSWER_S_MAX, Clash, Lost, Misuse, Row, Statement, StoreDown
from vettance.db.postgres_batch import LOCK, BatchCommitter, WrongRowCount
from vettance.db.postgres_link import ERRORS, ReadOnly, StatementRefused, connect, failure, part
from vettance.telemetry.meters import Meters

#: How long a turn may take, the wait for the batches and turns of others included.
TURN_S_MAX: Final = ANSWER_S_MAX - 2.0
# The mark is set with the lock, in one round trip: what fails is undone to here, and the turn goes on.
_BEGIN: Final = f"BEGIN; {LOCK}; SAVEPOINT turn"
_UNDO: Final = "ROLLBACK TO SAVEPOINT turn"

#: Called with why the database refused a turn, and the statements of the turn.
Report = Callable[[StoreDown, Sequence[Statement]], object]


class PostgresTurn:
    """Implements `Turn` on a transaction that holds the lock of all batches."""

    def __init__(self, connection: Any, batcher: BatchCommitter) -> None:
        self._connection = connection
        self._batcher = batcher
        # A connection answers one question at a time, and callers may ask two at once.
        self._asking = asyncio.Lock()
        self._tenants: Collection[str] = ()
        #: What was applied so far.
        self.kept: list[Sequence[Statement]] = []
        #: What was asked last.
        self.asked: Sequence[Statement] = ()

    async def begin(self, tenants: Collection[str]) -> None:
        """Say whose rows it is about."""
        self._tenants = tenants
        async with self._asking_for(()):
            await self._batcher.admit(self._connection, tenants)

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing everything that was written before."""
        statement = statement.postgres or statement
        async with self._asking_for([statement]):
            rows = await self._connection.fetch(form_of(statement).text, *statement.args)
        return [tuple(row) for row in rows]

    async def write(self, writes: Sequence[Sequence[Statement]]) -> None:
        """Apply writes, all or none; see `Turn.write`."""
        plain = [[one.postgres or one for one in write] for write in writes]
        try:
            async with self._asking_for([one for write in plain for one in write]):
                await self._batcher.together(self._connection, plain)
        except (Clash, Lost, Misuse):
            async with self._asking_for([one for write in self.kept for one in write]):
                await self._undo()
            raise
        self.kept += plain

    async def _undo(self) -> None:
        """Take back what has just failed. The lock is held throughout, so what was kept is kept again."""
        await self._connection.execute(_UNDO)
        await self._batcher.admit(self._connection, self._tenants)
        if self.kept:
            await self._batcher.together(self._connection, self.kept)

    @contextlib.asynccontextmanager
    async def _asking_for(self, statements: Sequence[Statement]) -> AsyncIterator[None]:
        async with self._asking:
            self.asked = statements
            with _translating(self._connection):
                yield


class PostgresTurns:
    """Gives turns, one at a time, on a connection of their own that is opened for the first one.

    `on_refusal` is called for those that the database refuses.
    """

    def __init__(self, url: str, batcher: BatchCommitter, meters: Meters, on_refusal: Report) -> None:
        self._url = url
        self._batcher = batcher
        self._meters = meters
        self._on_refusal = on_refusal
        self._one = asyncio.Lock()
        self._idle: Any = None
        self._closed = False

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[PostgresTurn]:
        """Wait for a turn; see `Turns.turn`."""
        turn: PostgresTurn | None = None
        try:
            async with asyncio.timeout(TURN_S_MAX + 1), self._one, self._lent() as connection:
                with _translating(connection):
                    await connection.execute(_BEGIN)
                turn = PostgresTurn(connection, self._batcher)
                started_ns = time.perf_counter_ns()
                yield turn
                with _translating(connection):
                    # Where a query has failed, PostgreSQL undoes it all and calls that no error.
                    if await connection.execute("COMMIT") != "COMMIT":
                        raise StoreDown("PostgreSQL undid a turn in which a query had failed")
        except (StatementRefused, ReadOnly) as reason:
            self._on_refusal(reason, turn.asked if turn is not None else ())
            raise
        except TimeoutError:
            raise StoreDown("a turn took too long") from None
        self._meters.committed(len(turn.kept), time.perf_counter_ns() - started_ns)

    @contextlib.asynccontextmanager
    async def _lent(self) -> AsyncIterator[Any]:
        if self._closed:
            raise StoreDown("the store is closed")
        connection, self._idle = self._idle, None
        if connection is None or connection.is_closed():
            connection = await connect(self._url, statement_s_max=TURN_S_MAX, writes=True)
        whole = False
        try:
            yield connection
            whole = True
        finally:
            if whole and not self._closed:
                self._idle = connection
            else:
                # Nobody waits for its answer; the server rolls back when the connection closes.
                connection.terminate()

    async def close(self) -> None:
        """Close the connection, once the turn under way has ended."""
        self._closed = True
        async with self._one:
            if self._idle is not None:
                await part(self._idle)


@contextlib.contextmanager
def _translating(connection: Any) -> Iterator[None]:
    """Translate the errors of the driver into those of the port."""
    try:
        yield
    except WrongRowCount as unmet:
        raise Lost(str(unmet)) from None
    except ERRORS as error:
        # The error of a broken connection depends on what the driver was doing.
        broken = StoreDown("the connection to PostgreSQL failed") if connection.is_closed() else None
        raise broken or failure(error) from None
