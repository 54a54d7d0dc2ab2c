"""Backup: a copy of the embedded store as it was at one moment, made while a server goes on writing.

SQLite's own online backup starts over whenever another process commits (sqlite.org/backup.html), so under
load it would never end. Here one read transaction spans the whole copy: in WAL mode its snapshot stays
while others write, and holds up none of them. The log cannot start over meanwhile, and grows by what is
written.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from vettance.db.connection import failure, open_reader
from vettance.db.engine import StoreDown

#: Pages between two looks at how far it has come: 16 MiB.
PAGES: Final = 2048

#: Called with how many pages are copied, and how many there are.
Progress = Callable[[int, int], None]


class Contents(NamedTuple):
    """What a store holds, for people to recognise it by."""

    schema: int
    events: int
    newest_at_ms: int | None
    tables: Mapping[str, int]  # Table → its rows.


def copy_store(source: Path, target: Path, progress: Progress | None = None, pages: int = PAGES) -> None:
    """Copy a store into a new file, as one consistent file without a log. Raises `StoreDown`."""

    def told(_status: int, left: int, total: int) -> None:
        if progress is not None:
            progress(total - left, total)

    try:
        with closing(open_reader(source)) as reader, closing(sqlite3.connect(target)) as copy:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            reader.backup(copy, pages=pages, progress=told)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise StoreDown(f"{source}: {failure(error)[1]}") from None


def check_store(path: Path) -> Contents:
    """Check every page of a copy that nobody writes to. Raises `StoreDown` when it is not sound."""
    try:
        with closing(open_reader(path)) as reader:
            found = reader.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise StoreDown(f"{path} is damaged: {found}")
            (schema,) = reader.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetchone()
            (newest,) = reader.execute("SELECT MAX(received_at_ms) FROM event").fetchone()
            tables = _count(reader)
    except sqlite3.Error as error:
        raise StoreDown(f"{path}: {failure(error)[1]}") from None
    return Contents(schema, tables["event"], newest, tables)


def _count(reader: sqlite3.Connection) -> dict[str, int]:
    """Count the rows of every table that is not a search index, nor a part of one."""
    made = reader.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    indexes = tuple(name for name, sql in made if sql.startswith("CREATE VIRTUAL"))
    names = [name for name, _ in made if not name.startswith(("sqlite_", *indexes))]
    return {name: reader.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608
