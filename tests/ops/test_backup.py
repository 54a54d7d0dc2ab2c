"""Backups are consistent while everything runs, verified, and restored to a service that works."""

import asyncio
import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.db.filled import MADE, contents, fill
from tests.db.rows import decided
from tests.live import Service, run_cli
from vettance.db.connection import open_writer
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.sqlite_backup import copy_store
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import read_settings
from vettance.tenants.vault import secret_digest

LOGIN = {"eventName": "user.login", "eventCategory": "AUTHENTICATION", "customer": {"externalId": "c-1"}}
DECIDE = "/api/v1/decisions/evaluate"


def restored(service: Service, backup: Path, data: Path, *options: str) -> Service:
    """Restore a backup into a folder and start a service on it, with the key of the first one."""
    run_cli(data, "restore", str(backup), *options, "--json")
    again = Service(data)
    again.tenant_id, again.api_key = service.tenant_id, service.api_key
    again.start()
    return again


def test_a_backup_under_load_holds_all_that_was_acknowledged_before_it_and_nothing_half(
    own_service: Service, tmp_path: Path
) -> None:
    service = own_service
    service.cli("watchlist", "import", "--source", "sample")
    acknowledged: list[str] = []
    enough, stopping = threading.Event(), threading.Event()

    def load() -> None:
        while not stopping.is_set():
            answer = service.post(DECIDE, LOGIN)
            assert answer.status == 200
            acknowledged.append(answer.json["correlationIds"]["eventId"])
            if len(acknowledged) > 100:
                enough.set()

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    before = list(acknowledged)
    target = tmp_path / "backup"
    told = service.cli("backup", str(target), "--with-secret", "--json")
    stopping.set()
    for thread in threads:
        thread.join(30)

    with closing(sqlite3.connect(target / "vettance.db")) as copy:
        events = {row[0] for row in copy.execute("SELECT id FROM event")}
        decisions = {row[0] for row in copy.execute("SELECT id FROM decision")}
    assert events == decisions
    assert set(before) <= events
    assert told["events"] == told["tables"]["decision"] == len(events)
    assert not list(tmp_path.glob(".backup*"))
    assert (target / "secret.key").stat().st_mode & 0o777 == 0o600

    again = restored(service, target, tmp_path / "restored")
    try:
        assert again.get(f"/api/v1/decisions/{before[-1]}").status == 200
        assert again.post(DECIDE, LOGIN).status == 200
        assert not list((tmp_path / "restored").glob(".*"))
        assert (tmp_path / "restored" / "watchlists" / "sample").is_dir()
    finally:
        assert again.stop() == 0


def own(data: Path) -> None:
    """Give a folder a secret, and have its filled store say that it was made with it."""
    digest = secret_digest(load_secret(read_settings({}, data=str(data))))
    with closing(open_writer(store_path(data))) as writer:
        writer.execute("UPDATE deployment SET secret_digest = ? WHERE id = 1", (digest,))


async def test_every_table_comes_back_from_a_backup_that_was_made_while_others_wrote(tmp_path: Path) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    migrate(store_path(data))
    tables = fill(store_path(data), rows=50)
    own(data)
    before = contents(store_path(data), tables)
    async with await SqliteStore.open(store_path(data), writer="process") as store:
        told = asyncio.create_task(asyncio.to_thread(run_cli, data, "backup", str(target), "--json"))
        written = 0
        while not told.done():
            await asyncio.gather(*(store.write(*decided(f"evt_{written + more}")) for more in range(8)))
            written += 8
        await told
    after = contents(store_path(data), tables)
    secret = {"VETTANCE_SECRET": (data / "secret.key").read_text().strip()}
    run_cli(restored, "restore", str(target), "--json", env=secret)
    found = contents(store_path(restored), tables)
    busy = ("event", "decision", "delivery")
    for table in tables:
        assert len(before[table]) == 50
        if table in busy:
            assert found[table] == after[table][: len(found[table])]
        else:
            assert found[table] == before[table] == after[table]
    # All three tables of each write, or none; and the writing went on before and after that moment.
    assert 50 <= len(found["event"]) < len(after["event"]) == 50 + written
    assert len({len(found[table]) for table in busy}) == 1
    made = [*MADE - {"term_search", "id_search"}, "term_search_data", "id_search_data"]
    assert contents(store_path(restored), made) == contents(target / "vettance.db", made)


def test_a_copy_in_many_steps_shows_one_moment_although_others_commit_in_between(tmp_path: Path) -> None:
    source, target = tmp_path / "vettance.db", tmp_path / "copy.db"
    migrate(source)
    rows = "SELECT count(*) FROM change"
    insert = "INSERT INTO change (area, tenant, subject, at_ms) VALUES ('x', 'x', ?, 0)"
    steps = 0
    with closing(open_writer(source)) as writer:
        writer.executemany(insert, [("x" * 4000,)] * 200)

        def commit(_done: int, _of: int) -> None:
            nonlocal steps
            steps += 1
            writer.execute(insert, ("x" * 4000,))

        copy_store(source, target, commit, pages=10)
        assert writer.execute(rows).fetchone() == (200 + steps,)
    assert steps > 10
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute(rows).fetchone() == (200,)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a folder with a tenant, its secret apart."""
    data = tmp_path / "data"
    run_cli(data, "tenant", "create", "Shop", "--json")
    run_cli(data, "backup", str(tmp_path / "backup"), "--json")
    return tmp_path / "backup"


def test_backup_and_restore_tell_what_they_saved(tmp_path: Path) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    migrate(store_path(data))
    tables = fill(store_path(data), rows=2)
    own(data)
    made = run_cli(data, "backup", str(target), "--with-secret").stdout
    checked = run_cli(restored, "restore", str(target), "--check", "--json")
    for said in (made, run_cli(restored, "restore", str(target)).stdout):
        assert "2 events (the newest: 1970-" in said
        assert ", 2 decisions, 2 labels, 2 list entries, 2 webhook subscriptions, 2 deliveries" in said
        assert "2 AML events, 2 AML cases, 2 screenings, 2 screened subjects; " in said
    assert dict.fromkeys(tables, 2).items() <= checked["tables"].items()
    assert not [table for table in checked["tables"] if "search" in table]


def test_a_backup_of_a_version_that_did_not_count_tables_is_as_good(backup: Path, tmp_path: Path) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    assert manifest.pop("tables")["tenant"] == 1
    (backup / "manifest.json").write_text(json.dumps(manifest))
    assert run_cli(tmp_path / "x", "restore", str(backup), "--check", "--json")["tables"]["tenant"] == 1


def test_a_backup_never_overwrites_anything(backup: Path, tmp_path: Path) -> None:
    before = sorted((path.name, path.stat().st_mtime_ns) for path in backup.iterdir())
    done = run_cli(tmp_path / "data", "backup", str(backup), ok=False)
    assert done.returncode != 0
    assert "never overwrites" in done.stderr
    assert sorted((path.name, path.stat().st_mtime_ns) for path in backup.iterdir()) == before


def test_a_restore_never_overwrites_anything(backup: Path, tmp_path: Path) -> None:
    done = run_cli(tmp_path / "data", "restore", str(backup), ok=False)
    assert done.returncode != 0
    assert "holds vettance.db already" in done.stderr


@pytest.mark.parametrize("left", ["vettance.db-wal", "vettance.db-shm", "vettance.db-journal"])
def test_a_restore_gives_no_store_a_name_beside_which_something_of_another_is_left(
    backup: Path, tmp_path: Path, left: str
) -> None:
    folder = tmp_path / "restored"
    folder.mkdir()
    (folder / left).touch()
    done = run_cli(folder, "restore", str(backup), "--other-secret", ok=False)
    assert done.returncode == 1
    assert f"holds {left} already" in done.stderr
    assert [path.name for path in folder.iterdir()] == [left]


def test_a_restore_asks_for_the_secret_that_belongs_to_the_backup(backup: Path, tmp_path: Path) -> None:
    assert not (backup / "secret.key").exists()
    folder = tmp_path / "restored"
    done = run_cli(folder, "restore", str(backup), ok=False)
    assert "set VETTANCE_SECRET" in done.stderr
    done = run_cli(folder, "restore", str(backup), ok=False, env={"VETTANCE_SECRET": "ab" * 32})
    assert "not the one of this backup" in done.stderr
    assert not (folder / "vettance.db").exists()
    secret = (tmp_path / "data" / "secret.key").read_text().strip()
    run_cli(folder, "restore", str(backup), "--json", env={"VETTANCE_SECRET": secret})
    assert run_cli(folder, "tenant", "list", "--json")[0]["name"] == "Shop"


def test_the_own_list_of_a_tenant_is_backed_up_checked_and_restored(tmp_path: Path) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    tenant = own_list(data)
    (file,) = data.glob(f"watchlists/tenants/{tenant}/own/*.jsonl.gz")
    name = file.relative_to(data)
    assert run_cli(data, "backup", str(target), "--with-secret", "--json")["missing"] == []
    run_cli(restored, "restore", str(target), "--json")
    assert (restored / name).read_bytes() == file.read_bytes()
    (target / name).unlink()
    done = run_cli(restored, "restore", str(target), "--check", ok=False)
    assert f"{name} is missing" in done.stderr


def test_a_list_that_cannot_be_backed_up_is_told_whoever_owns_it(tmp_path: Path) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    own_list(data)
    run_cli(data, "watchlist", "import", "--source", "sample")
    lists = {str(path.relative_to(data)) for path in data.glob("watchlists/**/*.jsonl.gz")}
    assert len(lists) == 2
    shutil.rmtree(data / "watchlists")
    for folder, arguments in (
        (data, ("backup", str(target), "--with-secret")),
        (restored, ("restore", str(target), "--check")),
        (restored, ("restore", str(target))),
    ):
        done = run_cli(folder, *arguments, "--json", ok=False)
        assert done.returncode == 0
        assert set(json.loads(done.stdout)["missing"]) == lists
        assert all(name in done.stderr for name in lists)


def own_list(data: Path) -> str:
    """Make a tenant with a list of its own; returns its id."""
    tenant: str = run_cli(data, "tenant", "create", "Shop", "--aml", "--json")["tenantId"]
    listed = data.with_name("own.csv")
    listed.write_text("name\nIvan PETROV\n")
    run_cli(data, "watchlist", "import", "--source", "csv", "--tenant", tenant, str(listed))
    return tenant


def test_a_damaged_backup_is_refused_and_leaves_nothing(backup: Path, tmp_path: Path) -> None:
    store = backup / "vettance.db"
    content = bytearray(store.read_bytes())
    content[len(content) // 2] ^= 1
    store.write_bytes(content)
    for arguments in (("restore", str(backup), "--check"), ("restore", str(backup), "--other-secret")):
        done = run_cli(tmp_path / "restored", *arguments, ok=False)
        assert done.returncode != 0
        assert "is not what was backed up" in done.stderr
    assert not (tmp_path / "restored" / "vettance.db").exists()


@pytest.mark.parametrize("fault", ["missing file", "no manifest", "another format", "a way out"])
def test_what_is_no_backup_is_told_in_one_line(backup: Path, tmp_path: Path, fault: str) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    if fault == "missing file":
        (backup / "vettance.db").unlink()
    elif fault == "no manifest":
        (backup / "manifest.json").unlink()
    elif fault == "another format":
        (backup / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    else:
        manifest["files"]["../outside"] = {"bytes": 0, "sha256": ""}
        (backup / "manifest.json").write_text(json.dumps(manifest))
    done = run_cli(tmp_path / "restored", "restore", str(backup), "--check", ok=False)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_backup_that_cannot_be_written_leaves_nothing(backup: Path, tmp_path: Path) -> None:
    shutil.rmtree(backup)
    done = run_cli(tmp_path / "data", "backup", str(tmp_path / "nowhere" / "backup"), ok=False)
    assert done.returncode == 1
    assert "is no folder" in done.stderr
    done = run_cli(tmp_path / "empty", "backup", str(tmp_path / "backup"), ok=False)
    assert "holds no store" in done.stderr
    assert not list(tmp_path.glob("*backup*"))


def test_a_backup_belongs_to_the_secret_that_its_store_was_made_with(tmp_path: Path) -> None:
    data, right, wrong = tmp_path / "data", {"VETTANCE_SECRET": "ab" * 32}, {"VETTANCE_SECRET": "cd" * 32}
    tenant = run_cli(data, "tenant", "create", "Shop", "--json")["tenantId"]
    run_cli(data, "key", "create", "--tenant", tenant, "--json", env=right)
    done = run_cli(data, "backup", str(tmp_path / "none"), "--with-secret", ok=False, env=wrong)
    assert "not the one that this store was made with" in done.stderr
    assert not (tmp_path / "none").exists()
    for name, env in (("beside", wrong), ("without", {})):
        run_cli(data, "backup", str(tmp_path / name), "--json", env=env)
        restored = tmp_path / f"{name}-restored"
        done = run_cli(restored, "restore", str(tmp_path / name), ok=False, env=wrong)
        assert "not the one of this backup" in done.stderr
        run_cli(restored, "restore", str(tmp_path / name), "--json", env=right)
        run_cli(restored, "key", "create", "--tenant", tenant, "--json", env=right)
    assert not (data / "secret.key").exists()
