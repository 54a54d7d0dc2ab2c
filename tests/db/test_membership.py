"""Who counts alone is alone at a PostgreSQL, whatever happens to the connection that says so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.databases import ask
from tests.live import Service
from tests.servers import private, programs
from vettance.db.engine import StoreDown
from vettance.db.exclusive_database import ExclusiveUse

LOGIN = {"eventName": "user.login", "eventCategory": "AUTHENTICATION", "customer": {"externalId": "c-1"}}


@asynccontextmanager
async def present(url: str, *, alone: bool) -> AsyncIterator[ExclusiveUse]:
    presence = await ExclusiveUse.take(url, alone=alone, wait_s=0)
    keeping = asyncio.create_task(presence.keep())
    try:
        yield presence
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await presence.leave()


# The view shows the locks of every database of the server.
HOLDERS = (
    "FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def end_connections(url: str) -> None:
    ask(url, f"SELECT pg_terminate_backend(pid) {HOLDERS}")


def holders(url: str) -> int:
    return int(ask(url, f"SELECT count(*) {HOLDERS}")[0][0])


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110 - what is waited for goes on in the background
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
async def test_who_counts_alone_is_refused_beside_others_and_others_beside_it(
    emptied: str, first: bool, second: bool
) -> None:
    async with present(emptied, alone=first):
        with pytest.raises(StoreDown, match="VETTANCE_REDIS_URL"):
            await ExclusiveUse.take(emptied, alone=second, wait_s=0)
    async with present(emptied, alone=second):
        pass


async def test_any_number_that_count_together_are_present(emptied: str) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(present(emptied, alone=False))
        assert holders(emptied) == 3


async def test_a_start_waits_for_the_one_that_is_leaving(emptied: str) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(present(emptied, alone=True))
        second = asyncio.create_task(ExclusiveUse.take(emptied, alone=True, wait_s=20))
        await asyncio.sleep(0.1)
        assert not second.done()
        await stack.aclose()
        await (await second).leave()


async def test_a_start_that_waits_says_at_once_what_for_and_says_it_once(emptied: str) -> None:
    told: list[str] = []
    async with present(emptied, alone=True):
        with pytest.raises(StoreDown, match="VETTANCE_REDIS_URL"):
            await ExclusiveUse.take(emptied, alone=True, wait_s=1.5, tell=told.append)
    assert [line.rpartition("; ")[2] for line in told] == ["waiting up to 1.5 s for them to stop"]
    assert told[0].startswith("other processes are at work on this database")


async def test_a_place_is_taken_again_after_its_connection_was_lost(emptied: str) -> None:
    async with present(emptied, alone=True) as presence:
        end_connections(emptied)
        await until(lambda: holders(emptied) == 1)
        assert presence.fault is None


async def test_whose_place_was_taken_meanwhile_says_so_until_it_is_free(emptied: str) -> None:
    async with present(emptied, alone=True) as presence:
        # What a database that was away, and then asked by another first, comes to.
        await presence.leave()
        async with present(emptied, alone=True):
            await until(lambda: presence.fault is not None)
            assert "VETTANCE_REDIS_URL" in str(presence.fault)
        await until(lambda: presence.fault is None)


@pytest.mark.slow
def test_a_service_starts_first_of_all_on_a_server_that_knows_nothing_of_it(tmp_path: Path) -> None:
    """Roles belong to the server, so any other database on it that was set up before would hide a lack."""
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL to start here")
    with (
        TemporaryDirectory(prefix="vettance-new-") as place,
        contextmanager(private)(folder, Path(place)) as url,
    ):
        assert url is not None
        service = Service(tmp_path)
        service.env = {"VETTANCE_DATABASE_URL": url}
        service.start()
        service.tenant_id, service.api_key = service.new_tenant("First")
        service.wait_for(lambda: service.post("/api/v1/events", LOGIN).status == 201)
        assert ask(url, "SELECT rolsuper FROM pg_roles WHERE rolname = 'vettance_service'") == [(False,)]
        assert service.stop() == 0
