"""The process that works behind the log: it makes chunks and counts rules, is started again, and ends."""

import asyncio
import os
import signal
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.live import Service
from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite import SqliteStore, store_path
from vettance.demo.demo_client import DemoTarget
from vettance.demo.drive import drive
from vettance.demo.feed import generated
from vettance.history.segment import CHUNK
from vettance.server.indexer import Indexer
from vettance.settings.settings import Settings
from vettance.telemetry.meters import Meters


def children_of(pid: int) -> dict[str, int]:
    """Return the processes of a service by the module that they run."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == pid and "-m" in words:
            found[words[words.index("-m") + 1]] = int(folder.name)
    return found


def indexer_of(service: Service) -> int | None:
    assert service.process is not None
    return children_of(service.process.pid).get("vettance.server.indexer")


def decide(service: Service, count: int) -> None:
    """Have so many events decided."""
    target = DemoTarget("127.0.0.1", int(service.base_url.rpartition(":")[2]), service.api_key)
    samples = islice(generated(400, 30, 7, 0.01).samples, count)
    run = asyncio.run(drive(samples, target, 16, lambda _done: None))
    assert run.card.decided == count, run.refusal


def chunks(service: Service) -> int:
    return int(service.rows("SELECT COUNT(*) FROM chunk")[0][0])


def is_counted(service: Service) -> bool:
    """Tell whether the rules of every decision are counted."""
    ends = service.rows("SELECT MAX(seq) FROM decision UNION ALL SELECT MAX(decision_seq) FROM rule_counted")
    return len({row[0] for row in ends}) == 1


@pytest.mark.slow
def test_chunks_and_counts_are_made_by_a_process_that_is_started_again(own_service: Service) -> None:
    service = own_service
    decide(service, CHUNK + 10)
    service.wait_for(lambda: chunks(service) == 1, 30)
    service.wait_for(lambda: is_counted(service), 30)
    first = indexer_of(service)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    decide(service, CHUNK)
    service.wait_for(lambda: chunks(service) == 2, 30)
    service.wait_for(lambda: is_counted(service), 30)
    second = indexer_of(service)
    assert second not in {None, first}
    assert service.get("/api/v1/events?limit=1").json["total"] == 2 * CHUNK + 10
    assert service.stop() == 0
    assert not Path(f"/proc/{second}").exists()


def test_the_process_ends_with_a_server_that_was_killed(own_service: Service) -> None:
    service = own_service
    service.wait_for(lambda: indexer_of(service) is not None, 30)
    pid = indexer_of(service)
    assert service.process is not None
    service.process.send_signal(signal.SIGKILL)
    service.process.wait(20)
    until_s = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < until_s, "it goes on without its server"
        time.sleep(0.05)


class FailingStore:
    """A real store that does not answer its first questions."""

    def __init__(self, store: SqliteStore, failures: int) -> None:
        self._store = store
        self.failures = failures
        self.failed = asyncio.Event()
        self.answered = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, statement: Statement) -> list[Row]:
        if self.failures:
            self.failures -= 1
            self.failed.set()
            raise StoreDown("it starts")
        self.answered.set()
        return await self._store.read(statement)


@pytest.mark.parametrize("answers_later", [True, False])
async def test_it_waits_for_a_store_that_is_down(answers_later: bool, tmp_path: Path) -> None:
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as store:
        await store.migrate()
        failing = FailingStore(store, 1 if answers_later else 1_000_000)
        indexer = Indexer(Settings(data=tmp_path), failing, Meters())
        running = asyncio.create_task(indexer.run())
        async with asyncio.timeout(20):
            await failing.failed.wait()
            if answers_later:
                await failing.answered.wait()
            indexer.stop()
            await running
