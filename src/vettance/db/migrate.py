"""Migrations: brings the schema of a store file forward, one numbered file after the other."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from vettance import clock
from vettance.db.connection import failure, open_reader, open_writer, prepare
from vettance.db.engine import StoreDown

FOLDER = Path(__file__).parent / "schema" / "sqlite"
_NAME = re.compile(r"(\d{4})_\w+\.sql")
_LOCK_PATIENCE_S = 30.0
#: How the name of a migration begins (after its number) that programs older than it cannot live with. Any
#: other only adds, so that the version before goes on working on the new schema (ADR 57).
BREAKING = "breaking_"

_TABLE = """CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied_at_ms INTEGER NOT NULL
)"""


class SchemaRefused(StoreDown):
    """The schema of the file and the migrations of this program do not belong together."""


class Migration(NamedTuple):
    """One file of the folder. `digest` is the SHA-256 of its text in hex digits."""

    version: int
    name: str
    text: str
    digest: str


def migrations(folder: Path = FOLDER) -> list[Migration]:
    """Read the migrations, which must be numbered from 0001 without a gap."""
    found: list[Migration] = []
    for file in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(file.name)
        if match is None or int(match.group(1)) != len(found) + 1:
            raise SchemaRefused(f"{file.name}: migrations are named NNNN_name.sql, from 0001 without a gap")
        text = file.read_text("utf-8")
        found.append(Migration(len(found) + 1, file.stem, text, hashlib.sha256(text.encode()).hexdigest()))
    return found


def migrate(path: Path, folder: Path = FOLDER) -> int:
    """Apply what is pending, each migration in one transaction, and return the version reached.

    Two processes may do so at once: each looks again once it holds the store. Raises `SchemaRefused` when the
    file was made for newer programs only or from other migrations, `StoreDown` when it cannot be used.
    """
    known = migrations(folder)
    prepare(path)
    try:
        with closing(open_writer(path)) as connection:
            # A migration may rebuild a table that others refer to; what it leaves is checked instead.
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute(f"PRAGMA busy_timeout={_LOCK_PATIENCE_S * 1000:.0f}")
            while _advance(connection, known, path):
                pass
    except sqlite3.Error as error:
        raise StoreDown(f"{path}: {failure(error)[1]}") from None
    return len(known)


def check(path: Path, folder: Path = FOLDER) -> list[str]:
    """Name the pending migrations without applying any; all of them when there is no store yet."""
    known = migrations(folder)
    if not path.exists():
        return [migration.name for migration in known]
    try:
        with closing(open_reader(path)) as connection:
            return [migration.name for migration in known[_applied(connection, known, path) :]]
    except sqlite3.Error as error:
        raise StoreDown(f"{path}: {failure(error)[1]}") from None


def _advance(connection: sqlite3.Connection, known: list[Migration], path: Path) -> bool:
    """Apply the next migration, if there is one, and tell whether there was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _applied(connection, known, path)
        if applied == len(known):
            connection.execute("ROLLBACK")
            return False
        _apply(connection, known[applied])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute(_TABLE)
    try:
        for statement in _statements(migration.text):
            connection.execute(statement)
    except sqlite3.Error as error:
        kind, sentence = failure(error)
        if kind == "down":
            raise
        raise SchemaRefused(f"migration {migration.name}: {sentence}") from None
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise SchemaRefused(f"migration {migration.name}: it leaves rows that refer to nothing")
    connection.execute(
        "INSERT INTO schema_version (version, name, digest, applied_at_ms) VALUES (?, ?, ?, ?)",
        (migration.version, migration.name, migration.digest, clock.now_ms()),
    )


def _applied(connection: sqlite3.Connection, known: list[Migration], path: Path) -> int:
    """Count the migrations that the file has seen, holding each against the one we know."""
    exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"
    if connection.execute(exists).fetchone() is None:
        return 0
    rows = connection.execute("SELECT version, name, digest FROM schema_version ORDER BY version").fetchall()
    return hold_against(rows, known, str(path))


def hold_against(rows: Sequence[Sequence[Any]], known: list[Migration], whose: str) -> int:
    """Hold the (version, name, digest) that a store has seen against what we know; return how many we know.

    Newer ones that only add are none of our business. Raises `SchemaRefused` for one that breaks what came
    before it, and when a migration is not what was applied.
    """
    for version, name, _ in rows[len(known) :]:
        if name.partition("_")[2].startswith(BREAKING):
            raise SchemaRefused(
                f"{whose}: the store has schema version {version} ({name}), which programs that know only "
                f"{len(known)} cannot use; start the newer version"
            )
    for (version, name, digest), migration in zip(rows, known, strict=False):
        if (version, digest) != (migration.version, migration.digest):
            raise SchemaRefused(f"{whose}: migration {name} was changed after it had been applied")
    return min(len(rows), len(known))


def _statements(text: str) -> Iterator[str]:
    """Cut a script into statements, because the driver's own way to run one commits in between."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    rest = re.sub(r"--[^\n]*", "", statement)
    if rest.strip():
        raise SchemaRefused("a migration ends in the middle of a statement")
