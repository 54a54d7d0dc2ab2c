"""Checkpoints keep the log bounded, and never start when nothing is left to move."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from tests.db.rows import decided, size, use
from vettance.db.checkpoint import Checkpointer, FileLock
from vettance.db.connection import open_writer
from vettance.db.engine import Statement, StoreDown
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore
from vettance.db.sqlite_batch import Committer


def _frame(*statements: Statement) -> bytes:
    """Frame one write whose shape travels with it."""
    shape = [[statement.sql, statement.rows, None, 0] for statement in statements]
    return msgspec.msgpack.encode([0, [], [[shape, *[statement.args for statement in statements]]]])


async def test_the_log_stays_bounded_under_load(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vettance.db.checkpoint.INTERVAL_S", 0.02)
    for module in ("checkpoint", "connection"):
        monkeypatch.setattr(f"vettance.db.{module}.LOG_BYTES_MAX", 4 * 2**20)
    migrate(path)
    log = path.with_name("vettance.db-wal")
    async with await SqliteStore.open(path, writer="thread") as store:
        for batch in range(200):
            ids = [f"evt_{batch:016x}{number:016x}" for number in range(20)]
            await asyncio.gather(*(store.write(*decided(event_id, size=5000)) for event_id in ids))
        assert size(path) > 20 * 2**20
        assert size(log) < 20 * 2**20
        assert await store.read(Statement("SELECT count(*) FROM event")) == [(4000,)]
        assert await store.read(Statement("PRAGMA integrity_check")) == [("ok",)]


def test_a_checkpoint_needs_a_commit_begun_after_the_last_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vettance.db.checkpoint.INTERVAL_S", 0.01)
    migrate(path)
    lock = FileLock(path)
    assert lock.take()
    committer = Committer(open_writer(path))
    checkpointer = Checkpointer(path, committer, lock)
    started: list[str] = []
    checkpointer._connection.set_trace_callback(started.append)
    for commits in range(1, 4):
        time.sleep(0.1)
        assert len(started) == commits - 1
        committer.answer(_frame(use("ten_a", commits)))
        # A write that clashes, and one that changes nothing, leave nothing to move.
        time.sleep(0.1)
        committer.answer(_frame(use("ten_a", commits)))
        committer.answer(_frame(Statement("DELETE FROM quota_use WHERE hour = 77")))
        time.sleep(0.1)
        assert len(started) == commits
    checkpointer.stop()
    committer.close()


def test_only_one_process_at_a_time_checkpoints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vettance.db.checkpoint._OWNER_PATIENCE_S", 0.05)
    path.parent.mkdir()
    first, second = FileLock(path), FileLock(path)
    first.insist()
    assert not second.take()
    with pytest.raises(StoreDown, match="another server"):
        second.insist()
    first.release()
    second.insist()
    assert second.held
    assert not first.take()
    second.release()


async def test_a_command_leaves_the_checkpoints_to_the_server(path: Path, served: SqliteStore) -> None:
    async with await SqliteStore.open(path, writer="thread") as command:
        for number in range(300):
            await command.write(*decided(f"evt_{number:032x}", size=9000))
        await asyncio.sleep(0.6)
        assert not FileLock(path).take()
    assert await served.write(use("ten_a", 1)) == [1]


async def test_a_command_that_writes_much_lets_a_server_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vettance.db.checkpoint.INTERVAL_S", 0.02)
    migrate(path)
    async with await SqliteStore.open(path, writer="thread") as command:
        for number in range(900):
            await command.write(*decided(f"evt_{number:032x}", size=9000))
        assert size(path) > 4 * 2**20  # It has moved what it wrote, since nobody else was there.
        server = FileLock(path)
        server.insist()
        server.release()
