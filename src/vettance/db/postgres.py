"""The store for many processes: PostgreSQL, one writing connection for each process, and a few that read."""

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from vettance.db import write_batcher
from vettance.db.engine import ANSWER_S_MAX, EVERYBODY, Clash, Lost, Misuse, Row, Statement, StoreDown, Turn
from vettance.db.postgres_analyze import LOOK_S, count, select_grown
from vettance.db.postgres_batch import BatchCommitter, CommitBatch, Reply, WrongRowCount
from vettance.db.postgres_link import (
    ERRORS,
    TOO_LONG_DETAIL,
    ReadOnly,
    StatementRefused,
    connect,
    failure,
    part,
)
from vettance.db.postgres_readers import CLOSED, PostgresReaders
from vettance.db.postgres_schema import lacking, migrate, prepare, tend
from vettance.db.postgres_turn import PostgresTurns
from vettance.db.tables import UNFOLLOWED
from vettance.telemetry.meters import Meters

#: How long a batch may take, the wait for those of other processes included.
BATCH_S_MAX: Final = ANSWER_S_MAX - 2.0
#: How much longer it may take until its connection is given up: the server ends each statement by itself.
BATCH_OVER_S: Final = 1.0
_DRAIN_S_MAX: Final = 20.0
#: How often a write that was refused is tried.
_TRY_S: Final = 1.0
_REVIVE_S_MIN: Final = 0.05
_REVIVE_S_MAX: Final = 1.0
#: How often the partitions of months to come are looked after.
TEND_S: Final = 3_600.0


class _WaitingWrite(NamedTuple):
    caller: "asyncio.Future[list[int]]"
    statements: tuple[Statement, ...]
    tenants: set[str]
    in_turn: bool


class PostgresStore:
    """Implements `Store` on a database. Make one with `await PostgresStore.open(...)`; `close()` it.

    Writes of one process share a commit, and one batch at a time is applied in the whole database: places in
    the log are in the order of the commits, and batches cannot block each other half-way. Batches of what
    nobody follows (`UNFOLLOWED`) wait for none.
    """

    def __init__(self, url: str, read_s_max: float, meters: Meters | None = None) -> None:
        self._meters = meters or Meters()
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._batcher = BatchCommitter()
        self._turns = PostgresTurns(url, self._batcher, self._meters, self._note_refusal)
        self._writer: Any = None
        self._waiting: deque[_WaitingWrite] = deque()
        self._in_flight: list[_WaitingWrite] = []
        self._awake = asyncio.Event()
        self._readers = PostgresReaders(url, read_s_max)
        self._refused: Sequence[Statement] | None = None
        self._try_at_s = 0.0
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []
        #: One line that says why writes fail at the moment, or None.
        self.trouble: str | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        read_s_max: float = ANSWER_S_MAX,
        tends: bool = False,
        meters: Meters | None = None,
    ) -> Self:
        """Connect to a database; its schema is left to `migrate`. Raises `StoreDown` when that fails.

        `read_s_max` bounds a query, in seconds. With `tends`, months to come get their partitions and tables
        that have grown are counted while it is open.
        """
        await prepare(url)
        store = cls(url, read_s_max, meters)
        store._writer = await connect(url, statement_s_max=BATCH_S_MAX, writes=True)
        store._tasks.append(asyncio.create_task(store._write_for_ever()))
        if tends:
            store._tasks.append(asyncio.create_task(store._tend_for_ever()))
            store._tasks.append(asyncio.create_task(store._count_for_ever()))
        return store

    @property
    def pending(self) -> int:
        """How many writes wait for their commit."""
        return len(self._waiting) + len(self._in_flight)

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known. Recovers by itself, within a second."""
        return self.trouble is None and not self._closed

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing every write that has returned before."""
        return await self._readers.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit and return how many rows each changed; see `Store.write`."""
        if not statements:
            return []
        if self._closed:
            raise StoreDown(CLOSED)
        if self._writer is None:
            raise StoreDown(self.trouble or "PostgreSQL cannot be reached")
        if len(self._waiting) >= write_batcher.WAITING_MAX:
            raise StoreDown("the store is overloaded")
        caller: asyncio.Future[list[int]] = self._loop.create_future()
        about = {statement.tenant for statement in statements if statement.tenant is not None}
        self._waiting.append(_WaitingWrite(caller, statements, about, _takes_turn(statements)))
        self._awake.set()
        try:
            return await caller
        finally:
            del caller  # An exception that is raised here would hold it, and it the exception.

    def turn(self) -> contextlib.AbstractAsyncContextManager[Turn]:
        """Wait for the only write transaction that also reads; see `Turns.turn`."""
        return self._turns.turn()

    async def migrate(self) -> int:
        """Bring the schema to the newest version and return that version's number."""
        version = await migrate(self._url)
        if self._writer is not None:
            # What was prepared for the schema before is not of use any more.
            await self._writer.reload_schema_state()
        return version

    async def close(self) -> None:
        """Finish the writes that wait, then let go of every connection. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        give_up_at = self._loop.time() + _DRAIN_S_MAX
        while self.pending and self._writer is not None and self._loop.time() < give_up_at:
            callers = [one.caller for one in (*self._in_flight, *self._waiting) if not one.caller.done()]
            if not callers:
                break
            await asyncio.wait(callers, timeout=0.25)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, self._turns.close(), return_exceptions=True)
        self._fail_all(StoreDown(CLOSED))
        writer, self._writer = self._writer, None
        await asyncio.gather(self._readers.close(), *([part(writer)] if writer is not None else []))

    async def _write_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if self._refused is None else _TRY_S):
                    await self._awake.wait()
            self._awake.clear()
            while self._waiting or self._is_to_try():
                # Callers of the same turn of the loop share a batch.
                await asyncio.sleep(0)
                try:
                    async with asyncio.timeout(BATCH_S_MAX + BATCH_OVER_S):
                        await (self._try_refused() if self._is_to_try() else self._commit())
                except ERRORS as error:
                    await self._revive(_meant(error))
                except Exception as error:  # noqa: BLE001
                    # A bug of this program: the callers get the error, and the loop goes on.
                    await self._revive(StoreDown(f"the store failed inside: {type(error).__name__}"))

    async def _commit(self) -> None:
        """Apply one batch: what waits when it is this process's turn, or what waits first and takes none."""
        in_turn = not self._waiting or self._waiting[0].in_turn
        admitted = await self._batcher.begin(self._writer, self._expected(), in_turn=in_turn)
        batch = self._take(in_turn=in_turn)
        if not batch.writes:
            await self._writer.execute("ROLLBACK")
            return
        started_ns = time.perf_counter_ns()
        replies = await self._batcher.apply(self._writer, batch, admitted)
        if self._refused is None:
            self.trouble = None
        self._meters.committed(len(replies), time.perf_counter_ns() - started_ns)
        callers, self._in_flight = self._in_flight, []
        for one, reply in zip(callers, replies, strict=True):
            _answer(one.caller, reply)
            if isinstance(reply, StatementRefused):
                self._note_refusal(reply, one.statements)

    def _note_refusal(self, reason: StoreDown, statements: Sequence[Statement]) -> None:
        if self._refused is None and self._writer is not None:
            self._refused, self.trouble, self._try_at_s = statements, str(reason), self._loop.time()
            self._awake.set()

    def _is_to_try(self) -> bool:
        return self._refused is not None and self._loop.time() >= self._try_at_s

    async def _try_refused(self) -> None:
        """Try what the database refused, and undo it; until it is taken, the store is not healthy.

        Nobody may be writing meanwhile because we said so.
        """
        assert self._refused is not None
        self._try_at_s = self._loop.time() + _TRY_S
        write = [statement.postgres or statement for statement in self._refused]
        about = {statement.tenant for statement in write if statement.tenant is not None}
        await self._batcher.begin(self._writer)
        reason: Exception | None = None
        try:
            await self._batcher.admit(self._writer, about)
            await self._batcher.together(self._writer, [write])
        except WrongRowCount:
            pass
        except ERRORS as error:
            reason = failure(error)
            if isinstance(reason, ReadOnly) or self._writer.is_closed():
                raise
        await self._writer.execute("ROLLBACK")
        if isinstance(reason, StatementRefused):
            self.trouble = await lacking(self._writer) or str(reason)
        elif not isinstance(reason, StoreDown):
            self._refused = self.trouble = None

    def _expected(self) -> set[str]:
        """Return the tenants of the next batch, as far as they are known before its turn."""
        maintenance = EVERYBODY in self._waiting[0].tenants if self._waiting else False
        expected: set[str] = set()
        for one in itertools.islice(self._waiting, write_batcher.BATCH_WRITES_MAX):
            if (EVERYBODY in one.tenants) != maintenance:
                break
            expected |= one.tenants
        return expected

    def _take(self, *, in_turn: bool) -> CommitBatch:
        """Take the next writes, as long as they are all of tenants or all of maintenance; out of turn only
        those that take none.
        """
        batch = CommitBatch([], set(), in_turn)
        statements = 0
        while self._waiting and len(batch.writes) < write_batcher.BATCH_WRITES_MAX and statements < 4_000:
            one = self._waiting[0]
            if one.caller.done():
                # It was cancelled, and wants nothing any more.
                self._waiting.popleft()
                continue
            if batch.writes and (EVERYBODY in one.tenants) != (EVERYBODY in batch.tenants):
                break
            if one.in_turn and not in_turn:
                break
            self._waiting.popleft()
            self._in_flight.append(one)
            batch.writes.append([statement.postgres or statement for statement in one.statements])
            batch.tenants.update(one.tenants)
            statements += len(one.statements)
        return batch

    async def _revive(self, reason: Exception) -> None:
        """Fail everything that waits, and connect again, however long that takes."""
        self.trouble = str(reason) or "PostgreSQL cannot be reached"
        self._meters.store_failed()
        writer, self._writer = self._writer, None
        self._fail_all(StoreDown(self.trouble, reason.detail if isinstance(reason, StoreDown) else ""))
        if writer is not None:
            writer.terminate()
        pause_s = _REVIVE_S_MIN
        while True:
            try:
                self._writer = await connect(self._url, statement_s_max=BATCH_S_MAX, writes=True)
            except StoreDown as error:
                self.trouble = str(error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _REVIVE_S_MAX)
            else:
                if self._refused is None:
                    self.trouble = None
                return

    def _fail_all(self, reason: StoreDown) -> None:
        callers = [one.caller for one in (*self._in_flight, *self._waiting)]
        self._in_flight = []
        self._waiting.clear()
        for caller in callers:
            if not caller.done():
                caller.set_exception(StoreDown(str(reason), reason.detail))

    async def _tend_for_ever(self) -> None:
        while True:
            with contextlib.suppress(StoreDown):
                await tend(self._url)
            await asyncio.sleep(TEND_S)

    async def _count_for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(StoreDown, Misuse):
                if grown := await self.read(select_grown()):
                    await count(self._url, [name for (name,) in grown])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _meant(error: BaseException) -> Exception:
    """Tell what ended a batch means; a clock of ours that ran out says nothing of the server's state."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return StoreDown(f"a write took longer than {BATCH_S_MAX:g} s, and was given up", TOO_LONG_DETAIL)
    return failure(error)


def _takes_turn(statements: Sequence[Statement]) -> bool:
    return not all(
        one.tables is not None and one.tables.changed and one.tables.changed <= UNFOLLOWED
        for one in statements
    )


def _answer(caller: "asyncio.Future[list[int]]", reply: Reply) -> None:
    if caller.done():
        return
    if isinstance(reply, Clash | Lost | Misuse | StoreDown):
        caller.set_exception(reply)
    else:
        caller.set_result(reply)
