"""Moving house: everything arrives, is found again, and the numbers go on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.databases import absence, ask, database
from tests.db.filled import MADE, contents, fill
from tests.live import Service, run_cli, started
from vettance.db.copy_to_postgres import left_alone
from vettance.db.engine import StoreDown
from vettance.db.exclusive_database import ExclusiveUse
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore

LOGIN = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "c-moved", "email": "anna@example.com"},
}


def test_a_store_is_copied_and_served_from_postgresql(tmp_path: Path) -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        before = started(tmp_path, VETTANCE_DATABASE_URL="")
        ids = [
            before.post("/api/v1/decisions/evaluate", LOGIN).json["correlationIds"]["eventId"]
            for _ in range(30)
        ]
        assert (
            before.post("/api/v1/lists", {"type": "IP", "value": "203.0.113.9", "listType": "block"}).status
            == 201
        )
        assert before.stop() == 0
        arguments = ("copy", "--from", f"sqlite:{tmp_path}", "--to", url)
        copied = _copy(*arguments, "--json")
        assert copied["tables"]["event"] == copied["tables"]["decision"] == 30
        assert copied["tables"]["list_entry"] == 1
        assert ask(url, "SELECT id FROM event ORDER BY seq") == [(event_id,) for event_id in ids]
        counted = {table for (table,) in ask(url, "SELECT DISTINCT tablename FROM pg_stats")}
        assert {"event", "decision", "list_entry"} <= counted
        again = run_cli(tmp_path, *arguments, ok=False, data=False)
        assert again.returncode == 1
        assert "the database is not empty" in again.stderr
        after = Service(tmp_path)
        after.env = {"VETTANCE_DATABASE_URL": url}
        after.api_key = before.api_key
        after.start()
        for event_id in (ids[0], ids[-1]):
            assert after.get(f"/api/v1/decisions/{event_id}").status == 200
        newest = after.post("/api/v1/decisions/evaluate", LOGIN).json["correlationIds"]["eventId"]
        found = after.get("/api/v1/decisions?search=c-moved&limit=100").json
        assert [one["id"] for one in found["data"]] == [newest, *reversed(ids)]
        assert after.stop() == 0


def test_no_table_is_forgotten_on_the_way_there_and_back(tmp_path: Path) -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    here, home = tmp_path / "here", tmp_path / "home"
    migrate(here / "vettance.db")
    tables = fill(here / "vettance.db", rows=4)
    with database() as url:
        there = _copy("copy", "--from", f"sqlite:{here}", "--to", url, "--json")
        assert there["tables"] == dict.fromkeys(tables, 4)
        rows = ask(
            url,
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
            "AND relnamespace = 'public'::regnamespace",
        )
        assert {name for (name,) in rows} - MADE == set(tables)
        back = _copy("copy", "--from", url, "--to", f"sqlite:{home}", "--json")
        assert back == there
        again = run_cli(tmp_path, "copy", "--from", url, "--to", f"sqlite:{home}", ok=False, data=False)
        assert "there is a store already" in again.stderr
    assert contents(home / "vettance.db", tables) == contents(here / "vettance.db", tables)
    with closing(sqlite3.connect(home / "vettance.db")) as file:
        assert file.execute("SELECT rowid FROM term_search WHERE term_search MATCH 'quoted'").fetchall() == [
            (2,),
            (3,),
            (4,),
        ]


@pytest.mark.parametrize("left", ["vettance.db-wal", "vettance.db-shm", "vettance.db-journal"])
def test_nothing_is_copied_to_where_something_of_another_store_is_left(tmp_path: Path, left: str) -> None:
    # Nobody asks the database: SQLite would replay that log over the new file.
    arguments = ("copy", "--from", "postgresql://127.0.0.1:1/x", "--to", f"sqlite:{tmp_path}")
    (tmp_path / left).touch()
    done = run_cli(tmp_path, *arguments, ok=False, data=False)
    assert done.returncode == 1
    assert f"{left}: there is a store already, or what is left of one" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [left]


@pytest.mark.parametrize("live", ["folder", "database"])
def test_nothing_is_copied_beside_a_server_on_either_side(tmp_path: Path, live: str) -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    here, home = tmp_path / "here", tmp_path / "home"
    with database() as url:
        migrate(here / "vettance.db")
        given = {"folder": "", "database": url}
        server = started(here if live == "folder" else home, VETTANCE_DATABASE_URL=given[live])
        ways = [("copy", "--from", f"sqlite:{here}", "--to", url)]
        if live == "database":
            ways.append(("copy", "--from", url, "--to", f"sqlite:{tmp_path / 'back'}"))
        for way in ways:
            done = run_cli(tmp_path, *way, ok=False, data=False)
            assert done.returncode == 1
            said = "a server is using this folder" if live == "folder" else "a server is at work on the data"
            assert said in done.stderr
            assert "stop" in done.stderr
        assert not (tmp_path / "back" / "vettance.db").exists()
        assert server.stop() == 0


async def test_no_server_starts_on_a_folder_that_is_being_copied(tmp_path: Path) -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    migrate(tmp_path / "vettance.db")
    with database() as url:
        async with left_alone(tmp_path / "vettance.db", url):
            with pytest.raises(StoreDown, match="another server is using this folder"):
                await SqliteStore.open(tmp_path / "vettance.db", writer="process")
            with pytest.raises(StoreDown, match="other processes are at work on this database"):
                await ExclusiveUse.take(url, alone=True, wait_s=0)


def _copy(*arguments: str) -> dict[str, dict[str, int]]:
    copied: dict[str, dict[str, int]] = run_cli(Path(), *arguments, data=False)
    return copied


def test_what_cannot_be_copied_is_said_in_one_line(tmp_path: Path) -> None:
    for source, target, said in (
        ("vettance-data", "postgresql://127.0.0.1/x", "--from takes sqlite:"),
        (f"sqlite:{tmp_path}", f"sqlite:{tmp_path}/x", "the other one a database"),
        (f"sqlite:{tmp_path}", "mysql://127.0.0.1/x", "--to takes sqlite:"),
        (f"sqlite:{tmp_path}", "postgresql://", "--to must name a host"),
        (f"sqlite:{tmp_path}", "postgresql://127.0.0.1/x", "there is no store"),
    ):
        done = run_cli(tmp_path, "copy", "--from", source, "--to", target, ok=False, data=False)
        assert done.returncode == 1
        assert said in done.stderr
