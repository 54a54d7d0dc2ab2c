"""Copy home: back from PostgreSQL into the file of the embedded store, all of it or nothing."""

# ruff: noqa: S608 - only names of tables and columns of ours are put into the texts

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from vettance.db.connection import BESIDE, failure, keep_entry, open_writer
from vettance.db.copy_to_postgres import ROWS, Copied, Progress, left_alone, tables_of
from vettance.db.engine import PIECE_BYTES, StoreDown
from vettance.db.migrate import migrate
from vettance.db.postgres_read import fetch_next
from vettance.db.postgres_schema import check, owning

#: What the draft is called until it is whole.
_DRAFT: Final = ".copying"


async def copy_home(url: str, target: Path, searched_bits: int, progress: Progress) -> list[Copied]:
    """Copy a database into a store file that is not there yet, and count both sides.

    It is read as it is at one moment. `searched_bits` are the fields of terms that searches look into. Raises
    `StoreDown` with one line when the database is not up to date, when a server is at work on either side,
    when there is a store (or what is left of one), and when a count differs; there is no file then.
    """
    await asyncio.to_thread(_insist, target)
    if await check(url):
        raise StoreDown("the database's schema is not up to date; run `vettance migrate` first")
    draft = target.with_name(target.name + _DRAFT)
    await asyncio.to_thread(_make_folder, target)
    async with left_alone(target, url):
        # A server may have come and gone.
        await asyncio.to_thread(_insist, target)
        return await _fill(draft, target, url, searched_bits, progress)


async def _fill(draft: Path, target: Path, url: str, searched_bits: int, progress: Progress) -> list[Copied]:
    """Copy into a draft, and give it its name when it is whole."""
    _remove(draft)
    try:
        await asyncio.to_thread(migrate, draft)
        with closing(open_writer(draft)) as file:
            file.execute("PRAGMA foreign_keys=OFF")
            file.execute("BEGIN IMMEDIATE")
            copied = await _copy(file, url, progress)
            await asyncio.to_thread(_make, file, searched_bits)
            file.execute("COMMIT")
            if file.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise StoreDown("the database has rows that refer to nothing")
            # Everything is in the file itself from now on, so that it can be given its name.
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await asyncio.to_thread(draft.rename, target)
        keep_entry(target)
    except sqlite3.Error as error:
        raise StoreDown(f"{draft}: {failure(error)[1]}") from None
    finally:
        _remove(draft)
    return copied


def _make_folder(target: Path) -> None:
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreDown(f"{target}: {error.strerror}") from None


def _insist(target: Path) -> None:
    for end in ("", *BESIDE):
        path = target.with_name(target.name + end)
        if path.exists():
            raise StoreDown(f"{path}: there is a store already, or what is left of one")


async def _copy(file: sqlite3.Connection, url: str, progress: Progress) -> list[Copied]:
    async with owning(url, writes=False) as connection:
        await connection.execute("SET statement_timeout = 0")
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute("SELECT set_config('vettance.tenant', '*', true)")
            copied = [await _copy_table(file, connection, table, progress) for table in tables_of(file)]
            epoch = await connection.fetchval("SELECT epoch FROM term_epoch")
    file.execute("UPDATE term_epoch SET epoch = ?", (epoch,))
    return copied


async def _copy_table(file: sqlite3.Connection, connection: Any, table: str, progress: Progress) -> Copied:
    columns = {row[1]: row[2] for row in file.execute(f"PRAGMA table_info({table})")}
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    texts = [place for place, kind in enumerate(columns.values()) if kind == "TEXT"]
    total = await connection.fetchval(f"SELECT count(*) FROM {table}")
    order = " ORDER BY seq" if "seq" in columns else ""
    reading = await connection.cursor(f"SELECT {names} FROM {table}{order}")
    done = 0
    while rows := await fetch_next(reading, PIECE_BYTES, ROWS):
        text = f"INSERT INTO {table} ({names}) VALUES ({places})"
        await asyncio.to_thread(file.executemany, text, [_as_text(row, texts) for row in rows])
        done += len(rows)
        progress(table, done, total)
    there = file.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
    if there != total:
        raise StoreDown(f"{table} has {total} rows in the database and {there} in the file")
    return Copied(table, total)


def _as_text(row: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """Give values the type of their column: long texts are bytes in the database."""
    values = list(row)
    for place in places:
        if isinstance(values[place], bytes):
            values[place] = values[place].decode()
    return values


def _make(file: sqlite3.Connection, searched_bits: int) -> None:
    """Fill what searches look into."""
    terms = file.execute("SELECT id, value FROM term WHERE fields & ? <> 0 ORDER BY id", (searched_bits,))
    file.executemany(
        "INSERT INTO term_search (rowid, value) VALUES (?, ?)",
        ((number, value.casefold()) for number, value in terms),
    )
    ids = file.execute(
        "SELECT seq, id FROM decision WHERE seq <= "
        "(SELECT MAX(id) FROM chunk WHERE chunk.tenant = decision.tenant) ORDER BY seq"
    )
    file.executemany(
        "INSERT INTO id_search (rowid, digits) VALUES (?, ?)",
        ((seq, name.rpartition("_")[2]) for seq, name in ids),
    )


def _remove(draft: Path) -> None:
    for end in ("", *BESIDE):
        draft.with_name(draft.name + end).unlink(missing_ok=True)
