"""Copy: move house, from the embedded store to PostgreSQL, all of it or nothing."""

# ruff: noqa: S608 - only names of tables and columns of ours are put into the texts

import asyncio
import contextlib
import datetime
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from vettance.db.connection import failure, open_reader
from vettance.db.engine import PIECE_BYTES, StoreDown, take_piece
from vettance.db.exclusive_database import ExclusiveUse
from vettance.db.exclusive_file import unserved
from vettance.db.migrate import check
from vettance.db.postgres_analyze import count
from vettance.db.postgres_link import tables_of_ours
from vettance.db.postgres_schema import migrate, owning, partition

#: Rows read and sent at a time.
ROWS: Final = 2_000
#: How long a server that was just stopped may take to let go.
_LEAVING_S: Final = 2.0
#: Tables that others refer to come first.
_FIRST: Final = ("tenant", "subscription", "chunk", "delivery")
#: Not copied: derived from other tables, kept by triggers, or there already.
_MADE: Final = (
    *("schema_version", "term_search", "id_search", "term_epoch"),
    *("aml_alert_count", "aml_case_count", "review_count", "list_count"),
)

#: Called with a table, how many of its rows have been copied, and of how many.
Progress = Callable[[str, int, int], None]


class Copied(NamedTuple):
    """A table with the rows that it holds in both stores."""

    table: str
    rows: int


async def copy(source: Path, url: str, searched_bits: int, progress: Progress) -> list[Copied]:
    """Copy the store file into an empty database, in one transaction, and count both sides.

    `searched_bits` are the fields of terms that searches look into. Raises `StoreDown` with one line when the
    source is not there or not up to date, when a server is at work on either side, when the target holds
    rows, and when a count differs.
    """
    await asyncio.to_thread(_insist, source)
    try:
        async with left_alone(source, url):
            await migrate(url)
            with closing(open_reader(source)) as file:
                # One transaction: what a command writes meanwhile is not in the copy, nor half of it.
                file.execute("BEGIN")
                copied = await _copy(file, url, searched_bits, progress)
            # Before it has looked at them, PostgreSQL plans for tables as small as new ones are.
            await count(url, sorted(tables_of_ours()))
            return copied
    except sqlite3.Error as error:
        raise StoreDown(f"{source}: {failure(error)[1]}") from None


@contextlib.asynccontextmanager
async def left_alone(path: Path, url: str) -> AsyncIterator[None]:
    """Keep servers off both sides. Raises `StoreDown` when there is one.

    What it wrote after the copy began would be missing there, and numbers be given twice.
    """
    async with unserved(path, "a server is using this folder; stop it first", _LEAVING_S):
        stop = "a server is at work on the database; stop every one first"
        presence = await ExclusiveUse.take(url, alone=True, wait_s=_LEAVING_S, refusal=stop)
        try:
            yield
        finally:
            await presence.leave()


async def _copy(file: sqlite3.Connection, url: str, searched_bits: int, progress: Progress) -> list[Copied]:
    tables = tables_of(file)
    async with owning(url) as connection:
        oldest = file.execute("SELECT MIN(received_at_ms) FROM event").fetchone()[0]
        if oldest is not None:
            await partition(connection, datetime.datetime.fromtimestamp(oldest / 1000, datetime.UTC))
        await connection.execute("SET statement_timeout = 0")
        async with connection.transaction():
            await connection.execute("SELECT set_config('vettance.tenant', '*', true)")
            # A server that was started before wrote it; where there is nothing else, nothing hangs on it.
            await connection.execute("DELETE FROM deployment")
            for table in tables:
                if await connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {table})"):
                    raise StoreDown(f"the database is not empty: it has rows in {table}")
            copied = [await _copy_table(file, connection, table, progress) for table in tables]
            epoch = file.execute("SELECT epoch FROM term_epoch").fetchone()[0]
            await connection.execute("UPDATE term_epoch SET epoch = $1", epoch)
            await _make(connection, searched_bits)
            await _number(connection, tables)
    return copied


def _insist(source: Path) -> None:
    if not source.exists():
        raise StoreDown(f"{source}: there is no store")
    if check(source):
        raise StoreDown(f"{source}: its schema is not up to date; run `vettance migrate` first")


def tables_of(file: sqlite3.Connection) -> list[str]:
    """Name the tables to copy, those that others refer to first."""
    rows = file.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    names = [name for (name,) in rows if not name.startswith(("term_search_", "id_search_"))]
    return [*_FIRST, *(name for name in names if name not in (*_FIRST, *_MADE))]


async def _copy_table(file: sqlite3.Connection, connection: Any, table: str, progress: Progress) -> Copied:
    columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    names = ", ".join(columns)
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    prepared = await connection.prepare(f"INSERT INTO {table} ({names}) VALUES ({places})")
    kinds = [kind.name for kind in prepared.get_parameters()]
    lists = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(kinds, 1))
    text = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({lists})"
    total = file.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
    order = " ORDER BY seq" if "seq" in columns else ""
    reading = file.execute(f"SELECT {names} FROM {table}{order}")
    done = 0
    while rows := await asyncio.to_thread(take_piece, reading, PIECE_BYTES, ROWS):
        given = [_as(kind, column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]
        await connection.execute(text, *given)
        done += len(rows)
        progress(table, done, total)
    there = await connection.fetchval(f"SELECT count(*) FROM {table}")
    if there != total:
        raise StoreDown(f"{table} has {total} rows in the file and {there} in the database")
    return Copied(table, total)


def _as(kind: str, values: Sequence[Any]) -> list[Any]:
    """Give values the type of their column; the embedded store does not insist on it."""
    if kind == "bytea":
        return [value.encode() if isinstance(value, str) else value for value in values]
    if kind == "text":
        return [value.decode() if isinstance(value, bytes) else value for value in values]
    return list(values)


async def _make(connection: Any, searched_bits: int) -> None:
    """Fill what searches look into."""
    await connection.execute(
        "INSERT INTO term_search (rowid, value) "
        "SELECT id, COALESCE(folded, lower(value)) FROM term WHERE fields & $1 <> 0",
        searched_bits,
    )
    await connection.execute(
        "INSERT INTO id_search (rowid, digits) SELECT seq, split_part(id, '_', 2) FROM decision "
        "WHERE seq <= (SELECT MAX(id) FROM chunk WHERE chunk.tenant = decision.tenant)"
    )


async def _number(connection: Any, tables: Sequence[str]) -> None:
    """Go on numbering where the file had come to."""
    for table in tables:
        counter = f"{table}_seq" if table in ("event", "decision") else None
        if counter is None and await connection.fetchval(
            "SELECT 1 FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1 "
            "AND column_name = 'seq' AND is_identity = 'YES'",
            table,
        ):
            counter = await connection.fetchval("SELECT pg_get_serial_sequence($1, 'seq')", table)
        if counter is not None:
            await connection.execute(
                f"SELECT setval('{counter}', (SELECT COALESCE(MAX(seq), 0) + 1 FROM {table}), false)"
            )
