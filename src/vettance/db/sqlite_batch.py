"""Group commit: applies a batch of independent writes in one transaction and answers each of them."""

import sqlite3
import threading
import time
from typing import Any

import msgspec

from vettance.db.connection import failure

# A frame is `[first, shapes, writes]`: new shapes, numbered from `first`, and what is to be written. A write
# is `[shape, arguments, arguments, …]`, its shape being such a number, or the shape itself. A shape is
# `[[sql, rows, table, width], …]`, one part for each statement. An insert of given rows has a width, how many
# arguments make a row, and the text of one row whatever the number of rows: a text for each number would be
# prepared and kept for each, 300 KB for 500 rows. It has its table, too, where each row given changes a row.
# Other statements have null and 0. A reply holds for each write how many rows its statements changed, or
# `[kind, sentence]`.
Reply = list[Any]

# How long a batch waits for another process to let go of the store.
LOCK_PATIENCE_S = 5.0
_PAUSE_S = 0.001

_decoder = msgspec.msgpack.Decoder()
_encoder = msgspec.msgpack.Encoder()


class _WrongRowCount(Exception):
    """A statement changed another number of rows than its write demands."""


class _Shape:
    """The statements of a write, apart from their arguments."""

    def __init__(self, frame: list[list[Any]]) -> None:
        self.parts = [(sql, rows, width) for sql, rows, _, width in frame]
        tables = {table for _, _, table, _ in frame if table is not None}
        # Inserts of given rows into different tables commute, also those that add to a row where there is
        # one, each changes as many rows as it names, and every table still gets its rows in order. So a run
        # of such writes may go table by table, which costs a quarter less.
        self.by_table = len(tables) == len(frame) and all(rows is None for _, rows, _, _ in frame)


class Committer:
    """Owns the connection that writes. Called by one thread; `gate` keeps a checkpoint out while it works.

    `begun` numbers the transactions; `kept` is the number of the last one that changed something.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._shapes: list[_Shape] = []
        self.gate = threading.Lock()
        self.begun = 0
        self.kept = 0

    def answer(self, frame: bytes) -> bytes:
        """Apply the writes of a frame; when this returns, those answered with row counts are on the disk."""
        first, shapes, writes = _decoder.decode(frame)
        self._shapes[first:] = [_Shape(frame) for frame in shapes]
        with self.gate:
            return _encoder.encode(self.apply(writes) if writes else self._probe())

    def interrupt(self) -> None:
        """Make the running batch fail. May be called by another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def apply(self, writes: list[list[Any]]) -> Reply:
        """Commit all writes at once; if one fails, roll back and commit them apart, so that only it fails."""
        try:
            return self._transact(writes, self._together)
        except _WrongRowCount as unmet:
            guilty = ["lost", str(unmet)]
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            kind, sentence = failure(error)
            if kind == "down":
                return [[kind, sentence]] * len(writes)
            guilty = [kind, sentence]
        if len(writes) == 1:
            return [guilty]
        try:
            return self._transact(writes, self._apart)
        except sqlite3.Error as error:
            return [["down", failure(error)[1]]] * len(writes)

    def _transact(self, writes: list[list[Any]], act: Any) -> Reply:
        connection = self._connection
        before = connection.total_changes
        self._begin()
        try:
            reply: Reply = act(writes)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if connection.total_changes != before:
            self.kept = self.begun
        return reply

    def _begin(self) -> None:
        self.begun += 1
        if self._connection.in_transaction:
            # The disk failed so badly that even the last roll back did not go through.
            self._connection.execute("ROLLBACK")
        give_up_at = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return

    def _together(self, writes: list[list[Any]]) -> Reply:
        reply: Reply = []
        start = 0
        while start < len(writes):
            name = writes[start][0]
            shape = self._shape(name)
            end = start + 1
            if shape.by_table:
                while end < len(writes) and writes[end][0] == name:
                    end += 1
            if end - start > 1:
                reply.extend(self._by_table(shape, writes[start:end]))
            else:
                reply.append(self._one(shape, writes[start]))
            start = end
        return reply

    def _by_table(self, shape: _Shape, writes: list[list[Any]]) -> Reply:
        widths = [width for _, _, width in shape.parts]
        is_each_one_row = True
        for place, (sql, _, width) in enumerate(shape.parts, 1):
            rows = [write[place] for write in writes]
            if max(map(len, rows)) > width:
                rows = [row for args in rows for row in _split(args, width)]
                is_each_one_row = False
            self._connection.executemany(sql, rows)
        if is_each_one_row:
            return [[1] * len(widths)] * len(writes)
        return [
            [len(args) // width for args, width in zip(write[1:], widths, strict=True)] for write in writes
        ]

    def _apart(self, writes: list[list[Any]]) -> Reply:
        execute = self._connection.execute
        reply: Reply = []
        for write in writes:
            execute("SAVEPOINT one")
            try:
                reply.append(self._one(self._shape(write[0]), write))
            except _WrongRowCount as unmet:
                reply.append(["lost", str(unmet)])
            except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
                kind, sentence = failure(error)
                if kind == "down":
                    raise
                reply.append([kind, sentence])
            else:
                execute("RELEASE one")
                continue
            execute("ROLLBACK TO one")
            execute("RELEASE one")
        return reply

    def _one(self, shape: _Shape, write: list[Any]) -> list[int]:
        connection = self._connection
        counts = []
        for (sql, rows, width), args in zip(shape.parts, write[1:], strict=True):
            before = connection.total_changes
            if 0 < width < len(args):
                changed = connection.executemany(sql, _split(args, width)).rowcount
            else:
                changed = connection.execute(sql, args).rowcount
            if changed < 0:
                # The driver counts only what begins with INSERT, UPDATE, DELETE or REPLACE, not WITH.
                changed = connection.total_changes - before
            if rows is not None and changed != rows:
                raise _WrongRowCount(f"{changed} rows changed where {rows} must")
            counts.append(changed)
        return counts

    def _shape(self, name: Any) -> _Shape:
        return self._shapes[name] if type(name) is int else _Shape(name)

    def _probe(self) -> Reply:
        """Write a page that says what it said before, to learn whether the disk takes writes again."""
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            return self._transact([], lambda _: self._write_version(version))
        except sqlite3.Error as error:
            return [["down", failure(error)[1]]]

    def _write_version(self, version: int) -> Reply:
        self._connection.execute(f"PRAGMA user_version={version:d}")
        return []


def _split(args: list[Any], width: int) -> list[list[Any]]:
    """Return the rows whose arguments follow each other."""
    return [args[start : start + width] for start in range(0, len(args), width)]
