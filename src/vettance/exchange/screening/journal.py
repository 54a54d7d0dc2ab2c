"""The journal of a batch: what is done, row by row, so that an interrupted run continues where it stopped."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vettance.exchange.columns import Cell
from vettance.wire.payload import encode


class JournalBusy(Exception):
    """Another command is writing this journal."""


class JournalLine(NamedTuple):
    """A row that is done: its number, its line in the file, and its results, or why it was refused."""

    number: int
    line: int
    cells: Sequence[Cell] | None
    refused: dict[str, Any] | None


_decode_line = msgspec.json.Decoder(tuple[int, int, list[Cell] | None, dict[str, Any] | None]).decode
_DONE = b'"done"\n'


class Journal:
    """A file next to the results; its first line names the run, and every other line is a row.

    Rows are on disk when `append` returns, before the store records that they are done.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._head = encode(name) + b"\n"
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise JournalBusy from None
        self._file.seek(0)
        #: How many rows are done, and whether all are; of a run of another name, none.
        self.rows = 0
        self.is_done = False
        self._end = 0
        if self._file.readline() == self._head:
            self._end = len(self._head)
            for raw in self._file:
                if raw == _DONE:
                    self.is_done = True
                if raw == _DONE or not raw.endswith(b"\n"):
                    break  # What a crash has cut off was never recorded in the store.
                self.rows += 1
                self._end += len(raw)
        else:
            self.keep(0)

    def keep(self, rows: int) -> None:
        """Forget every row after so many."""
        self.is_done = False
        self._end = len(self._head)
        if rows:
            self._file.seek(len(self._head))
            for _ in range(rows):
                self._end += len(self._file.readline())
        self.rows = rows
        self._file.truncate(self._end if rows else 0)
        if not rows:
            self._file.write(self._head)
        self._sync()

    def append(self, lines: Sequence[JournalLine]) -> None:
        """Add rows."""
        self._file.truncate(self._end)
        written = b"".join(encode(line) + b"\n" for line in lines)
        self._file.write(written)
        self._sync()
        self._end += len(written)
        self.rows += len(lines)

    def finish(self) -> None:
        """Note that every row is done."""
        self._file.truncate(self._end)
        self._file.write(_DONE)
        self._sync()
        self.is_done = True

    def lines(self) -> Iterator[JournalLine]:
        """Yield the rows in order."""
        self._file.seek(len(self._head))
        for _ in range(self.rows):
            yield JournalLine._make(_decode_line(self._file.readline()))
        self._file.seek(0, os.SEEK_END)

    def close(self, *, remove: bool = False) -> None:
        """Close the file; with `remove`, delete it."""
        if remove:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
