"""When chunks are made: behind bursts of events, but never too late."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest
from past import START_MS, Archive, Made

from vettance.db.engine import scoped
from vettance.history.seal import BUSY_CHUNKS, LOOK_S, Sealer

CHUNK = 4


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    made = Archive(tmp_path_factory.mktemp("archive"))
    yield made
    made.close()


async def chunks(archive: Archive, tenant: str) -> int:
    rows = await archive.store.read(scoped(tenant, "SELECT COUNT(*) FROM chunk WHERE tenant = ?"))
    return int(rows[0][0])


async def made_of(archive: Archive, tenant: str, expected: int) -> None:
    async with asyncio.timeout(20):
        while await chunks(archive, tenant) != expected:  # noqa: ASYNC110 - it is in the store that it shows
            await asyncio.sleep(0.02)


def test_chunks_wait_while_events_are_being_accepted_unless_too_many_decisions_wait(archive: Archive) -> None:
    tenant, is_bursting = archive.tenant(), True

    async def write(count: int) -> None:
        for number in range(count):
            await archive.write(tenant, Made(ip=f"192.0.2.{number % 200}"), START_MS + number)[1]
            ever[tenant] = ever.get(tenant, 0) + 1

    ever: dict[str, int] = {}

    async def scene() -> None:
        nonlocal is_bursting
        sealer = Sealer(archive.store, ever, is_bursting=lambda: is_bursting, chunk=CHUNK, held_s_max=0.1)
        sealing = asyncio.create_task(sealer.run([tenant]))
        await write(CHUNK * 2)
        await asyncio.sleep(LOOK_S * 2)
        assert await chunks(archive, tenant) == 0
        await write(CHUNK * (BUSY_CHUNKS - 2))
        await made_of(archive, tenant, 1)
        is_bursting = False
        await made_of(archive, tenant, BUSY_CHUNKS)
        sealing.cancel()
        with suppress(asyncio.CancelledError):
            await sealing

    archive.runner.run(scene())
