"""When the disk or the file fails: a clear sentence, nothing half-written, and back to work afterwards."""

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from tests.db.rows import all_uses, decided, size, until, use
from vettance.db.connection import open_writer
from vettance.db.engine import Statement, StoreDown
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore
from vettance.db.sqlite_batch import Committer

HALVES = Statement(
    "SELECT count(*) FROM event LEFT JOIN decision USING (id) LEFT JOIN delivery ON"
    " delivery.subject = event.id WHERE decision.id IS NULL OR delivery.seq IS NULL"
)


def _limit_files(pid: int, size: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


async def test_a_disk_that_takes_no_more_fails_writes_until_it_does(path: Path, served: SqliteStore) -> None:
    await served.write(*decided("evt_" + "0" * 32))
    assert served.writer_pid is not None
    _limit_files(served.writer_pid, size(path.with_name("vettance.db-wal")) + 50_000)
    refused = 0
    for batch in range(10):
        writes = [
            served.write(*decided(f"evt_{batch:016x}{number:016x}", size=2000)) for number in range(1, 20)
        ]
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            assert isinstance(outcome, list | StoreDown)
            refused += isinstance(outcome, StoreDown)
    assert refused > 100
    assert not served.healthy()
    assert served.trouble == "the disk failed"
    assert (await served.read(HALVES)) == [(0,)]
    _limit_files(served.writer_pid, resource.RLIM_INFINITY)
    await until(served.healthy)
    assert await served.write(*decided("evt_" + "f" * 32)) == [1, 1, 1]
    assert (await served.read(HALVES)) == [(0,)]
    assert await served.read(Statement("PRAGMA integrity_check")) == [("ok",)]


def test_a_full_file_refuses_the_whole_batch_and_takes_the_next_small_one(path: Path) -> None:
    migrate(path)
    connection = open_writer(path)
    committer = Committer(connection)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages + 10}")
    big = decided("evt_" + "a" * 32, size=200_000)
    shape = [[statement.sql, None, None, 0] for statement in big]
    writes = [[0, *[statement.args for statement in one]] for one in (decided("evt_" + "b" * 32), big)]
    reply = msgspec.msgpack.decode(committer.answer(msgspec.msgpack.encode([0, [shape], writes])))
    assert reply == [["down", "the disk is full"]] * 2
    assert connection.execute("SELECT count(*) FROM event").fetchone() == (0,)
    reply = msgspec.msgpack.decode(committer.answer(msgspec.msgpack.encode([1, [], writes[:1]])))
    assert reply == [[1, 1, 1]]
    committer.close()


async def test_a_store_held_by_another_process_is_waited_for(embedded: SqliteStore, path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(embedded.write(use("ten_a", 1)))
    await asyncio.sleep(0.3)
    assert not write.done()
    assert await embedded.read(all_uses()) == []
    holder.execute("ROLLBACK")
    async with asyncio.timeout(1):
        assert await write == [1]
    holder.close()


async def test_a_store_held_for_too_long_refuses_and_recovers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vettance.db.sqlite_batch.LOCK_PATIENCE_S", 0.2)
    migrate(path)
    async with await SqliteStore.open(path, writer="thread") as store:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreDown, match="another process holds the store"):
            await store.write(use("ten_a", 1))
        assert not store.healthy()
        holder.execute("ROLLBACK")
        holder.close()
        await until(store.healthy)
        assert await store.write(use("ten_a", 1)) == [1]


async def test_a_thread_that_hangs_is_given_up_and_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vettance.db.write_batcher._TICKS_MAX", 2)
    migrate(path)
    async with await SqliteStore.open(path, writer="thread") as store:
        await store.write(use("ten_a", 1))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreDown, match="did not answer"):
            await store.write(use("ten_a", 2))
        with pytest.raises(StoreDown, match="did not answer"):
            await store.write(use("ten_a", 3))
        holder.execute("ROLLBACK")
        holder.close()
        await until(store.healthy)
        assert await store.write(use("ten_a", 4)) == [1]
        assert (await store.read(all_uses()))[-1] == ("ten_a", 4, 1)


def _spoil(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"certainly not a database, " * 1000)


@pytest.mark.parametrize("seat", ["thread", "process"])
async def test_a_file_that_is_no_store_is_refused_in_one_line(path: Path, seat: str) -> None:
    _spoil(path)
    with pytest.raises(StoreDown) as refused:
        await SqliteStore.open(path, writer=seat)  # type: ignore[arg-type]
    assert str(refused.value) == f"{path}: the file is not a Vettance store"
    with pytest.raises(StoreDown, match="not a Vettance store"):
        migrate(path)


def test_a_folder_in_place_of_the_file_is_refused_in_one_line(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreDown, match=r"vettance.db: the store file cannot be opened$"):
        asyncio.run(SqliteStore.open(path, writer="thread"))


async def test_a_damaged_page_is_reported_as_such(path: Path) -> None:
    migrate(path)
    async with await SqliteStore.open(path, writer="thread") as store:
        before = size(path)
        for number in range(200):
            await store.write(*decided(f"evt_{number:032x}", size=3000))
    with path.open("r+b") as file:
        # What was there before the rows is the schema, without which the file would not even open.
        file.seek(before)
        file.write(os.urandom(size(path) - before))
    async with await SqliteStore.open(path, writer="thread") as store:
        with pytest.raises(StoreDown, match="the store file is damaged"):
            await store.read(Statement("SELECT sum(length(sent)) FROM event"))
        with pytest.raises(StoreDown, match="the store file is damaged"):
            await store.write(*decided("evt_" + "f" * 32))


_OPEN_AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from vettance.db.sqlite import SqliteStore
from vettance.db.engine import StoreDown
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
async def main():
    try:
        await SqliteStore.open(Path(sys.argv[1]), writer="thread")
    except StoreDown as down:
        print(down)
asyncio.run(main())
"""


def test_a_read_only_file_is_refused_in_one_line() -> None:
    # Not below tmp_path, which pytest closes to everybody else: the child gives up the rights of root.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vettance.db"
        migrate(path)
        Path(folder).chmod(0o555)
        path.chmod(0o444)
        told = subprocess.run(
            [sys.executable, "-c", _OPEN_AS_NOBODY, path],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        (line,) = told.stdout.splitlines()
        assert line.startswith(f"{path}: this user cannot write to the store and its folder")
        assert line.endswith("see `vettance doctor`")
        Path(folder).chmod(0o755)
