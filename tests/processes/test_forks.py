"""A process that cannot be started (too many open files here) is tried again, and ends nothing."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog  # noqa: F401 - a server has long written its first line when it runs out of files

from vettance.db.sqlite import SqliteStore, store_path
from vettance.deployment.companion_process import CompanionProcess
from vettance.processes.worker_pool import WorkerPool
from vettance.server.deliverer import DELIVERER
from vettance.settings.settings import ProcessRole, read_settings
from vettance.telemetry.meters import take_place
from vettance.telemetry.shared_counters import deliverer_slot
from vettance.watchlists.search_processes import SearchFault, searching

START_S_MAX = 20.0


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Leave this process no descriptor, so that it can fork nothing."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held[0], 64) + 1, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for one in held:
            os.close(one)


async def started(pid: Callable[[], int]) -> None:
    async with asyncio.timeout(START_S_MAX):
        while not pid():  # noqa: ASYNC110 - it offers nothing to wait for
            await asyncio.sleep(0.05)


async def test_the_process_of_webhooks_is_tried_again(tmp_path: Path) -> None:
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as store:
        await store.migrate()
        settings, board = read_settings({}, data=str(tmp_path)), take_place().board
        worker = CompanionProcess(DELIVERER, settings, store, board, deliverer_slot(0))
        with no_more_files():
            worker.ensure()
            await asyncio.sleep(0.1)
        assert worker.pid == 0
        await started(lambda: worker.pid)
        await worker.stop()


async def test_a_child_of_a_pool_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pool = WorkerPool(listener, 1, ProcessRole.ALL, (), lambda: None, lambda _: None, stop_s_max=10.0)
        supervisor = pool.slots[0].supervisor
        with no_more_files():
            supervisor.ensure()
            await asyncio.sleep(0.1)
        assert supervisor.pid == 0
        await started(lambda: supervisor.pid)
        supervisor.begin_stop()
        supervisor.kill()
        await supervisor.wait()
        for end in (pool._ours, pool._theirs):
            end.close()


async def test_a_search_that_cannot_be_started_is_a_fault_of_the_search(tmp_path: Path) -> None:
    process = searching([tmp_path], 1)
    with no_more_files(), pytest.raises(SearchFault, match="cannot be started: Too many open files"):
        await process.entities()
    await process.close()
