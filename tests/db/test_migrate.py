"""Migrations: each once, in order, whole or not at all, and never by a program that does not know them."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from vettance.db.engine import Statement, StoreDown
from vettance.db.migrate import SchemaRefused, check, migrate, migrations
from vettance.db.sqlite import SqliteStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "schema"
    made.mkdir()
    (made / "0001_first.sql").write_text(
        "-- A comment; with a semicolon.\nCREATE TABLE a (x TEXT DEFAULT ';');\n"
        "INSERT INTO a VALUES ('1;\n2');\n"
    )
    (made / "0002_second.sql").write_text(
        "CREATE TABLE b (y INTEGER);\n"
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  INSERT INTO b VALUES (1);\n"
        "  INSERT INTO b VALUES (2);\nEND;\n"
        "INSERT INTO a VALUES ('3'); -- the end"
    )
    return made


def _tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return [row[0] for row in rows]


def test_every_migration_is_applied_once_and_in_order(path: Path, folder: Path) -> None:
    assert check(path, folder) == ["0001_first", "0002_second"]
    assert not path.exists()
    assert migrate(path, folder) == 2
    assert check(path, folder) == []
    assert migrate(path, folder) == 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT x FROM a").fetchall() == [("1;\n2",), ("3",)]
        assert connection.execute("SELECT y FROM b").fetchall() == [(1,), (2,)]
        assert connection.execute("SELECT version, name FROM schema_version").fetchall() == [
            (1, "0001_first"),
            (2, "0002_second"),
        ]


def test_a_new_migration_is_pending_and_then_applied(path: Path, folder: Path) -> None:
    migrate(path, folder)
    (folder / "0003_third.sql").write_text("CREATE TABLE c (z INTEGER);")
    assert check(path, folder) == ["0003_third"]
    assert "c" not in _tables(path)
    assert migrate(path, folder) == 3
    assert "c" in _tables(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CREATE TABLE c (z INTEGER);\nCREATE TABLE a (x);", "already exists"),
        ("CREATE TABLE c (z INTEGER);\nCREATE TABLE d (", "in the middle of a statement"),
        (
            "CREATE TABLE c (z INTEGER PRIMARY KEY);\nCREATE TABLE d (z REFERENCES c (z));\n"
            "INSERT INTO d VALUES (7);",
            "rows that refer to nothing",
        ),
    ],
)
def test_a_migration_that_fails_leaves_nothing_behind(
    path: Path, folder: Path, text: str, sentence: str
) -> None:
    migrate(path, folder)
    (folder / "0003_third.sql").write_text(text)
    with pytest.raises(SchemaRefused, match=sentence):
        migrate(path, folder)
    assert "c" not in _tables(path)
    assert check(path, folder) == ["0003_third"]


def test_a_migration_changed_after_it_was_applied_is_refused(path: Path, folder: Path) -> None:
    migrate(path, folder)
    (folder / "0001_first.sql").write_text("CREATE TABLE a (x TEXT, more TEXT);")
    for act in (migrate, check):
        with pytest.raises(SchemaRefused, match="migration 0001_first was changed after it had been applied"):
            act(path, folder)


def test_a_store_made_for_newer_programs_is_refused_and_one_that_only_has_more_is_not(
    path: Path, folder: Path
) -> None:
    migrate(path, folder)
    newer = folder / "0003_more.sql"
    newer.write_text("CREATE TABLE c (z INTEGER);")
    migrate(path, folder)
    newer.unlink()
    assert check(path, folder) == []
    assert migrate(path, folder) == 2
    newer.write_text("CREATE TABLE c (z INTEGER);")
    breaking = folder / "0004_breaking_less.sql"
    breaking.write_text("DROP TABLE c;")
    migrate(path, folder)
    breaking.unlink()
    for act in (migrate, check):
        with pytest.raises(SchemaRefused, match=r"has schema version 4 .*that know only 3 cannot use"):
            act(path, folder)


@pytest.mark.parametrize("name", ["0004_gap.sql", "third.sql", "3_third.sql"])
def test_a_misnamed_migration_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("CREATE TABLE c (z INTEGER);")
    with pytest.raises(SchemaRefused, match="are named NNNN_name"):
        migrations(folder)


def test_simultaneous_starts_migrate_once(path: Path, folder: Path) -> None:
    for number in range(3, 12):
        (folder / f"{number:04d}_more.sql").write_text(f"CREATE TABLE t{number} (z INTEGER);")
    outcomes: list[object] = []

    def start() -> None:
        try:
            outcomes.append(migrate(path, folder))
        except StoreDown as down:
            outcomes.append(down)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [11] * 6


async def test_the_schema_of_the_service_is_made_through_the_store(path: Path) -> None:
    async with await SqliteStore.open(path, writer="thread") as store:
        assert await store.migrate() == len(migrations())
        assert await store.read(Statement("SELECT count(*) FROM event")) == [(0,)]
    assert check(path) == []
