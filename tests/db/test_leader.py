"""The duty: work that fails is begun again, by one process at a time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from vettance.db.engine import Misuse
from vettance.db.leader import keep_duty
from vettance.deployment.connect import stores_of
from vettance.settings.settings import read_settings

pytestmark = pytest.mark.slow


@contextlib.asynccontextmanager
async def kept(url: str, *works: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Have processes that keep the duty, each with work of its own."""
    keeping = [asyncio.create_task(keep_duty(url, work)) for work in works]
    try:
        yield
        assert not any(one.done() for one in keeping)
    finally:
        for one in keeping:
            one.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


async def test_where_one_process_is_alone_work_that_fails_is_begun_again_too(tmp_path: Path) -> None:
    starts = 0
    again = asyncio.Event()

    async def work() -> None:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise Misuse("permission denied")
        again.set()
        await asyncio.Event().wait()

    stores = stores_of(read_settings({"VETTANCE_DATA": str(tmp_path)}))
    keeping = asyncio.create_task(stores.keep_leading(work))
    try:
        await asyncio.wait_for(again.wait(), 30)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.parametrize("error", [Misuse("permission denied"), ValueError("odd"), asyncio.CancelledError()])
async def test_work_that_fails_is_begun_again_after_a_pause(emptied: str, error: BaseException) -> None:
    starts: list[float] = []
    again = asyncio.Event()

    async def work() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 1:
            raise error
        again.set()
        await asyncio.Event().wait()

    with capture_logs() as logs:
        async with kept(emptied, work), asyncio.timeout(10):
            await again.wait()
    assert starts[1] - starts[0] > 0.5
    assert [one["event"] for one in logs] == ["duty_failed"] * isinstance(error, Exception)


async def test_nobody_else_has_the_duty_before_work_that_was_told_to_stop_has_ended(emptied: str) -> None:
    at_work: list[str] = []
    first, second = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        at_work.append("first")
        first.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2)
            at_work.append("first has ended")

    async def next_one() -> None:
        at_work.append("second")
        second.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(20):
        keeping = asyncio.create_task(keep_duty(emptied, slow))
        await first.wait()
        async with kept(emptied, next_one):
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await second.wait()
    assert at_work == ["first", "first has ended", "second"]
