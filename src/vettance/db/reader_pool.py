"""Readers: a few threads, each query on a read-only connection, every one of them with a time limit."""

import asyncio
import contextlib
import queue
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vettance.db.connection import failure, open_reader
from vettance.db.engine import ANSWER_S_MAX, Misuse, Row, Statement, StoreDown, take_piece

READERS = 4
WAITING_MAX = 1_000
_CLOSED = "the store is closed"
STEPS_BETWEEN_LOOKS = 20_000  # Virtual machine steps; about a millisecond.


class _Query:
    """One query on its way, which its caller may abandon at any moment."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._abandoned = False

    def run(self, idle: "queue.SimpleQueue[sqlite3.Connection]") -> list[Row]:
        connection = idle.get()
        try:
            # SQLite asks this every so many steps. `Connection.interrupt` would be simpler, but does nothing
            # in the instant before the first step, and such a query would run for ever.
            connection.set_progress_handler(self._is_abandoned, STEPS_BETWEEN_LOOKS)
            if self._abandoned:
                # Somebody still waits for it only where the pool is being closed.
                raise StoreDown(_CLOSED)
            return _rows(connection, self.statement)
        finally:
            connection.set_progress_handler(None, 0)
            idle.put(connection)

    def _is_abandoned(self) -> bool:
        return self._abandoned

    def abandon(self) -> None:
        self._abandoned = True


def _rows(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    cursor = connection.execute(statement.sql, statement.args)
    if statement.bytes_max is None:
        return cursor.fetchall()
    # A query that is not read to its end would keep its view of the store.
    with contextlib.closing(cursor):
        return take_piece(cursor, statement.bytes_max)


class ReaderPool:
    """The pool. Queries beyond the number of threads wait, up to a bound."""

    def __init__(self, path: Path, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._answer_s_max = answer_s_max
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._connections = [open_reader(path) for _ in range(READERS)]
        for connection in self._connections:
            self._idle.put(connection)
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._running: set[_Query] = set()
        self._is_closed = False

    async def read(self, statement: Statement) -> list[Row]:
        """Return all rows. Raises `StoreDown` when the store fails, is closed, overloaded or too slow."""
        if self._is_closed:
            raise StoreDown(_CLOSED)
        if len(self._running) >= WAITING_MAX:
            raise StoreDown("the store is overloaded with reads")
        query = _Query(statement)
        self._running.add(query)
        try:
            async with asyncio.timeout(self._answer_s_max):
                return await asyncio.get_running_loop().run_in_executor(self._threads, query.run, self._idle)
        except TimeoutError:
            raise StoreDown(f"a read took longer than {self._answer_s_max:g} s") from None
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            kind, sentence = failure(error)
            raise (StoreDown if kind == "down" else Misuse)(sentence) from None
        finally:
            query.abandon()
            self._running.discard(query)

    async def close(self) -> None:
        """End what still runs and let go of the connections."""
        self._is_closed = True
        for query in list(self._running):
            query.abandon()
        # Queries that wait for a thread run too, for a moment, so that their callers get an answer.
        await asyncio.to_thread(self._threads.shutdown, wait=True)
        for connection in self._connections:
            connection.close()
