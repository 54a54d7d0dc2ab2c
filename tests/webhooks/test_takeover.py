"""What a killed deliverer had claimed is sent by another at once, and its retries keep their moment."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.databases import absence, ask, database, run_beside
from tests.webhooks.office import TENANT, Office
from tests.webhooks.receivers import Receiver, receiving
from vettance.db import postgres_schema
from vettance.db.engine import StoreDown
from vettance.db.membership import Membership
from vettance.db.postgres import PostgresStore
from vettance.outbox import FAN_OUT_MAX
from vettance.tenants.vault import Vault
from vettance.webhooks.retry_policy import LEASE_MS

pytestmark = pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")

MEMBERS = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Deliverers:
    """Processes that deliver from one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._stack = contextlib.ExitStack()

    async def start(self) -> subprocess.Popen[bytes]:
        """Start one more, and wait until the others can know it.

        One that was just killed may still be among the members, and go meanwhile.
        """
        members = set(ask(self.url, MEMBERS))
        process = self._spawn()
        async with asyncio.timeout(20):
            while members.issuperset(ask(self.url, MEMBERS)):  # noqa: ASYNC110 - bounded
                await asyncio.sleep(0.05)
        return process

    def _spawn(self) -> subprocess.Popen[bytes]:
        link, theirs = socket.socketpair()
        self._stack.enter_context(link)
        with theirs, (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "vettance.server.deliverer", str(self._folder), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={
                    **os.environ,
                    "VETTANCE_DATABASE_URL": self.url,
                    "VETTANCE_SECRET": "ab" * 32,
                    "VETTANCE_UNSAFE_WEBHOOKS": "1",
                },
                stderr=log,
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def end(self) -> None:
        self._stack.close()


@pytest.fixture
def url() -> Iterator[str]:
    with database() as made:
        run_beside(lambda: postgres_schema.migrate(made))
        yield made


@pytest.fixture
def deliverers(url: str, tmp_path: Path) -> Iterator[Deliverers]:
    running = Deliverers(url, tmp_path)
    yield running
    running.end()


@pytest.fixture
async def office(url: str) -> AsyncIterator[Office]:
    async with await PostgresStore.open(url) as store:
        office = Office(store)
        office.vault = Vault(b"\xab" * 32)
        yield office


async def claim_some(office: Office, receiver: Receiver) -> set[str]:
    """Have deliveries claimed and sent, and not answered; returns their ids."""
    for _ in range(2):
        await office.subscribe(receiver.url)
    for _ in range(7):
        await office.tell()
    await receiver.wait_for_arrival(14)
    return {one.id for one in receiver.received}


@pytest.mark.parametrize("is_there", [True, False], ids=["by another", "by the next"])
async def test_what_a_killed_deliverer_had_claimed_is_sent_long_before_its_lease_ends(
    office: Office, deliverers: Deliverers, *, is_there: bool
) -> None:
    async with receiving(lambda _n, _r: 60.0) as receiver:
        first = await deliverers.start()
        claimed = await claim_some(office, receiver)
        if is_there:
            await deliverers.start()
        receiver.behave = lambda _n, _r: 200
        before = len(receiver.received)
        first.send_signal(signal.SIGKILL)
        first.wait()
        if not is_there:
            await deliverers.start()
        await receiver.wait_for_arrival(before + len(claimed), seconds=LEASE_MS / 1000 / 3)
        assert {one.id for one in receiver.received[before:]} == claimed
        assert {one.headers["x-webhook-attempt"] for one in receiver.received} == {"1"}


async def test_a_retry_of_a_killed_deliverer_keeps_its_second(office: Office, deliverers: Deliverers) -> None:
    async with receiving(lambda number, _r: 500 if number < 3 else 200) as receiver:
        await office.subscribe(receiver.url)
        first = await deliverers.start()
        await deliverers.start()
        await office.tell()
        await office.until(("pending", 3), seconds=15)  # The next is due in four seconds.
        first.send_signal(signal.SIGKILL)
        await receiver.wait_for(4, seconds=9)
        (gap_ms,) = receiver.gaps_ms(receiver.received[0].id)[2:]
        assert 4000 <= gap_ms < 6000


async def test_deliverers_killed_between_two_pieces_leave_no_subscription_out_and_tell_none_twice(
    office: Office, deliverers: Deliverers
) -> None:
    count = "SELECT count(*) FROM delivery"
    async with receiving() as receiver:
        for _ in range(5 * FAN_OUT_MAX):
            await office.subscribe(receiver.url)
        for _ in range(4):
            await office.tell()
        for already in (4 * FAN_OUT_MAX, 8 * FAN_OUT_MAX, 12 * FAN_OUT_MAX):
            process = await deliverers.start()
            while ask(deliverers.url, count)[0][0] <= already:  # noqa: ASYNC110 - bounded
                await asyncio.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
        await deliverers.start()
        while ask(deliverers.url, count)[0][0] < 20 * FAN_OUT_MAX:  # noqa: ASYNC110 - bounded
            await asyncio.sleep(0.05)
        told = "SELECT substr(id, 1, 32), count(DISTINCT subscription), count(*) FROM delivery GROUP BY 1"
        assert {row[1:] for row in ask(deliverers.url, told)} == {(5 * FAN_OUT_MAX, 5 * FAN_OUT_MAX)}
        assert not ask(deliverers.url, "SELECT id FROM message WHERE next_subscription IS NOT NULL")


async def test_a_deliverer_that_is_alive_is_never_taken_over_from(
    office: Office, deliverers: Deliverers
) -> None:
    async with receiving(lambda _n, _r: 4.0) as receiver:
        await deliverers.start()
        claimed = await claim_some(office, receiver)
        await deliverers.start()
        await receiver.wait_for(len(claimed))
        assert len(receiver.received) == len(claimed)


async def test_members_are_known_by_their_numbers_until_they_go(url: str) -> None:
    one, two = Membership(url), Membership(url)
    assert await one.look() == {one.number}
    assert await two.look() == await one.look() == {one.number, two.number}
    await two.leave()
    async with asyncio.timeout(5):
        while await one.look() != {one.number}:
            pass
    ask(url, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")  # fmt: skip
    with pytest.raises(StoreDown):
        await one.look()
    assert await one.look() == {one.number}
    await one.leave()


async def test_a_lease_of_an_earlier_version_is_waited_for(office: Office, deliverers: Deliverers) -> None:
    """It tells nobody's number, and who holds it may be alive."""
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        await office.tell()
        ask(deliverers.url, f"UPDATE delivery SET body = 'x', lease = 'abcdef0123456789', "
            f"leased_until_ms = {time.time_ns() // 1_000_000 + LEASE_MS}")  # fmt: skip
        await deliverers.start()
        await asyncio.sleep(2)
        assert not receiver.received
        assert await office.states(TENANT) == [("pending", 0)]
