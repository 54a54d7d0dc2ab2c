"""The writer as a process: what happens when it, its parent, or its patience dies."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import BENCH
from tests.db.rows import all_uses, decided, until, use, uses
from vettance.db.engine import StoreDown
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


async def test_a_killed_writer_fails_what_waits_and_comes_back(served: SqliteStore) -> None:
    for number in range(3):
        before = served.writer_pid
        assert before is not None
        writes = [asyncio.create_task(served.write(use(f"ten_{number}", hour))) for hour in range(3000)]
        await asyncio.sleep(0)
        os.kill(before, signal.SIGKILL)
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {list, StoreDown}
        assert StoreDown in {type(outcome) for outcome in outcomes}
        assert await served.write(use(f"after_{number}", 1)) == [1]
        assert served.writer_pid != before
        assert served.healthy()
        assert served.pending == 0


async def test_writes_made_while_the_writer_restarts_are_kept(served: SqliteStore) -> None:
    assert served.writer_pid is not None
    os.kill(served.writer_pid, signal.SIGKILL)
    await until(lambda: not served.healthy())
    assert await served.write(*decided("evt_" + "1" * 32)) == [1, 1, 1]


async def test_signals_to_the_group_do_not_end_the_writer(served: SqliteStore) -> None:
    before = served.writer_pid
    assert before is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(before, number)
    await asyncio.sleep(0.1)
    await served.write(use("ten_a", 1))
    assert served.writer_pid == before


async def test_a_writer_that_hangs_is_replaced(served: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vettance.db.write_batcher._TICKS_MAX", 2)
    before = served.writer_pid
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    writes = [asyncio.create_task(served.write(use("ten_a", hour))) for hour in range(10)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"the store did not answer within 10 s"}
    assert await served.write(use("ten_b", 1)) == [1]
    assert served.writer_pid != before


async def test_a_writer_that_cannot_come_back_is_reported_until_it_can(path: Path) -> None:
    migrate(path)
    async with await SqliteStore.open(path, writer="process") as store:
        assert store.writer_pid is not None
        away = path.with_name("away")
        os.rename(path, away)  # noqa: PTH104 - the loop may wait for this
        os.kill(store.writer_pid, signal.SIGKILL)
        await until(lambda: store.trouble is not None and "cannot be opened" in store.trouble)
        with pytest.raises(StoreDown, match="cannot be opened"):
            await store.write(use("ten_a", 1))
        os.rename(away, path)  # noqa: PTH104
        await until(store.healthy)
        assert await store.write(use("ten_a", 1)) == [1]


async def test_the_writer_is_a_small_process(served: SqliteStore) -> None:
    await asyncio.gather(*(served.write(use("ten_a", hour)) for hour in range(1000)))
    assert served.writer_pid is not None
    assert _resident_kib(served.writer_pid) < 40 * 1024


async def test_inserts_of_many_different_numbers_of_rows_do_not_fill_the_writer(served: SqliteStore) -> None:
    assert served.writer_pid is not None
    await served.write(uses("ten_a", range(1)))
    before = _resident_kib(served.writer_pid)
    for count in range(2, 300):
        assert await served.write(uses("ten_a", range(count))) == [count]
    assert await served.read(all_uses()) == [("ten_a", hour, 299 - hour) for hour in range(299)]
    # A statement prepared for each number of rows was 30 MB.
    assert _resident_kib(served.writer_pid) < before + 8 * 1024


def test_a_killed_parent_takes_its_writer_along(path: Path) -> None:
    migrate(path)
    child = subprocess.Popen([sys.executable, BENCH, "crash", "--load", path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        writer_pid = int(child.stdout.readline())
        assert child.stdout.readline().startswith(b"evt_")
        child.kill()
        child.wait()
    give_up_at = time.monotonic() + 5
    while _alive(writer_pid) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert not _alive(writer_pid)


@pytest.mark.slow
async def test_a_second_server_of_one_folder_is_refused(path: Path, served: SqliteStore) -> None:
    with pytest.raises(StoreDown, match="another server is using this folder"):
        await SqliteStore.open(path, writer="process")
    assert await served.write(use("ten_a", 1)) == [1]


async def test_commands_write_beside_a_busy_server(path: Path, served: SqliteStore) -> None:
    stop = asyncio.Event()

    async def serve(caller: int) -> int:
        made = 0
        while not stop.is_set():
            await served.write(*decided(f"evt_{caller:016x}{made:016x}"))
            made += 1
        return made

    callers = [asyncio.create_task(serve(caller)) for caller in range(8)]
    async with await SqliteStore.open(path, writer="thread") as command:
        for hour in range(30):
            assert await command.write(use("ten_a", hour)) == [1]
        # What a command has written, the server sees at once, and the other way round.
        assert len(await served.read(all_uses())) == 30
    stop.set()
    assert all(made > 0 for made in await asyncio.gather(*callers))
    assert served.healthy()
