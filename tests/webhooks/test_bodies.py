"""A message is stored once, what waits for a tenant is bounded, and nothing is given up silently."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from tests.databases import absence, database, run_beside
from tests.live import Caller, Service, started
from tests.webhooks.office import TENANT, Office
from tests.webhooks.receivers import receiving
from vettance.db import postgres_schema
from vettance.db.engine import Store, everyone, scoped
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.tables import DELIVERY, MESSAGE
from vettance.retention import sql as retention_sql
from vettance.retention.stored_texts import REWRITTEN
from vettance.telemetry.meters import Meters
from vettance.webhooks import backlog_limit, deliver, delivery_queue, sql
from vettance.webhooks.retry_policy import RetryPolicy

BIG = b'{"id":"x","notes":"' + b"n" * 20_000 + b'"}'
OTHER = "ten_" + "2" * 32


@pytest.fixture(params=["sqlite", "postgres"])
async def office(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Office]:
    store: Store
    if request.param == "sqlite":
        async with await SqliteStore.open(store_path(tmp_path), writer="thread") as store:
            await store.migrate()
            office = Office(store)
            yield office
            await office.end()
        return
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        run_beside(lambda: postgres_schema.migrate(url))
        async with await PostgresStore.open(url) as store:
            office = Office(store)
            yield office
            await office.end()


async def stored(office: Office) -> tuple[int, int]:
    """(how many messages are stored, how many bytes of bodies in all)."""
    text = (
        "SELECT (SELECT COUNT(*) FROM message), (SELECT COALESCE(SUM(length(body)), 0) FROM message) "
        "+ (SELECT COALESCE(SUM(length(body)), 0) FROM delivery)"
    )
    count, size = (await office.store.read(everyone(MESSAGE.reading(DELIVERY), text)))[0]
    return int(count), int(size)


async def test_a_message_is_stored_once_for_all_who_hear_of_it(office: Office) -> None:
    async with receiving() as receiver:
        for _ in range(25):
            await office.subscribe(receiver.url)
        for _ in range(5):
            await office.tell(BIG)
        messages, size = await stored(office)
        assert messages == 5
        assert size < 5 * (len(BIG) + 200)
        office.begin()
        got = await receiver.wait_for(125)
        assert len({one.id for one in got}) == 125
        assert all(one.body.endswith(BIG + b"}") for one in got)


async def test_nothing_is_stored_where_nobody_listens(office: Office) -> None:
    await office.tell()
    assert await stored(office) == (0, 0)


@pytest.mark.parametrize("by", ["the deliverer", "retention"])
async def test_a_message_goes_with_the_last_of_its_deliveries(office: Office, by: str) -> None:
    async with receiving() as receiver:
        for _ in range(3):
            await office.subscribe(receiver.url)
        for _ in range(2):
            await office.tell()
        office.begin()
        await office.until(*[("delivered", 1)] * 6)
        await office.end()
    (kind,) = (one for one in retention_sql.CLASSES if one.table == "delivery")
    left = []
    for count in range(1, 6):
        if by == "retention":
            old = everyone(DELIVERY, "UPDATE delivery SET settled_at_ms = 1 WHERE seq = ?", (count,))
            await office.store.write(old)
            assert (await office.store.write(*retention_sql.remove_found(kind, [count], 2, 3)))[-1] == 1
        else:
            first = (await office.store.read(delivery_queue.select_first_delivery()))[0][0]
            assert (await office.store.write(*delivery_queue.forget(first, 2**53, 1)))[-1] == 1
        left.append((await stored(office))[0])
    assert left == [2, 2, 1, 1, 1]


async def test_a_delivery_of_an_earlier_version_is_sent_with_its_own_body(office: Office) -> None:
    async with receiving() as receiver:
        made = await office.subscribe(receiver.url)
        now_ms = time.time_ns() // 1_000_000
        row = (
            "INSERT INTO delivery (tenant, id, subscription, type, subject, created_at_ms, state, due_at_ms, "
            "body) VALUES (?, ?, ?, 'BLOCKLIST_ENTRY_ADDED', 'lst_x', ?, 'pending', ?, ?)"
        )
        args = ("dlv_" + "7" * 32, made.id, now_ms, now_ms, b'{"own":1}')
        await office.store.write(scoped(DELIVERY, TENANT, row, args))
        office.begin()
        (got,) = await receiver.wait_for(1)
        assert got.body == b'{"own":1}'
        await office.until(("delivered", 1))


async def test_an_earlier_version_cannot_claim_what_it_would_send_without_its_body(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        await office.tell()
        claim = "UPDATE delivery SET lease = '0123456789abcdef', leased_until_ms = 9 WHERE state = 'pending'"
        assert await office.store.write(everyone(DELIVERY, claim)) == [0]
        free = everyone(DELIVERY, "SELECT COUNT(*) FROM delivery WHERE lease IS NULL")
        assert (await office.store.read(free))[0][0] == 1
        office.begin()
        await office.until(("delivered", 1))


async def test_erasing_rewrites_the_body_of_what_is_settled_and_of_what_waits(office: Office) -> None:
    async with receiving(lambda number, _r: 200 if number < 2 else 500) as receiver:
        await office.subscribe(receiver.url)
        await office.subscribe(receiver.url)
        await office.tell(b'{"id":"settled"}')
        office.begin(RetryPolicy())
        await office.until(("delivered", 1), ("delivered", 1))
        await office.tell(b'{"id":"waits"}')
        await receiver.wait_for(4)
        (place,) = (one for one in REWRITTEN if one.table == "message")
        rows = await office.store.read(retention_sql.select_place(TENANT, place, place.start))
        assert [b"settled" in body or b"waits" in body for _, body in rows] == [True, True]
        for key, _ in rows:
            await office.store.write(retention_sql.rewrite_row(TENANT, place, [key], {"body": b"{}"}))
        rows = await office.store.read(retention_sql.select_place(TENANT, place, place.start))
        assert [body for _, body in rows] == [b"{}", b"{}"]
        await office.crash()


async def test_what_waits_beyond_the_bound_is_given_up_oldest_first_and_said(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "BACKLOG_BYTES_MAX", 4 * 21_000)
    monkeypatch.setattr(deliver, "_SWEEP_S", 0.1)
    mine = await office.subscribe("http://127.0.0.1:9/")
    others = await office.subscribe("http://127.0.0.1:9/", tenant=OTHER)
    for _ in range(10):
        await office.tell(BIG)
    for _ in range(3):
        await office.tell(BIG, tenant=OTHER)
    meters = Meters(memoryview(bytearray(16 * 1024)).cast("Q"), "webhooks")
    with structlog.testing.capture_logs() as said:
        office.begin(RetryPolicy(delays_ms=(60_000,)), meters=meters)
        async with asyncio.timeout(10):
            left = ["exhausted"] * 6 + ["pending"] * 4
            while [state for state, _ in await office.states()] != left:  # noqa: ASYNC110 - short
                await asyncio.sleep(0.01)
            while "webhook_backlog_bounded" not in [one["event"] for one in said]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await office.end()
    assert [state for state, _ in await office.states(OTHER)] == ["pending"] * 3
    told = [one for one in said if one["event"] == "webhook_backlog_bounded"]
    assert sum(one["deliveries"] for one in told) == 6
    assert {one["tenant"] for one in told} == {TENANT}
    shown = sql.subscription_of((await office.store.read(sql.select_subscription(TENANT, mine.id)))[0])
    assert shown.overflowed == 6
    assert shown.overflowed_at_ms is not None
    other = sql.subscription_of((await office.store.read(sql.select_subscription(OTHER, others.id)))[0])
    assert (other.overflowed, other.overflowed_at_ms) == (0, None)


async def test_giving_up_a_large_backlog_keeps_nobodys_deliveries_waiting(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "BACKLOG_BYTES_MAX", 21_000)
    monkeypatch.setattr(backlog_limit, "_GIVEN_UP_ROWS", 1)
    monkeypatch.setattr(backlog_limit, "_PAUSE_S", 1.0)
    await office.subscribe("http://127.0.0.1:9/")
    for _ in range(10):
        await office.tell(BIG)
    async with receiving(lambda _n, _r: 200) as receiver:
        await office.subscribe(receiver.url, tenant=OTHER)
        office.begin(RetryPolicy(delays_ms=(60_000,)))
        async with asyncio.timeout(10):
            while "exhausted" not in dict(await office.states()):  # noqa: ASYNC110 - short and bounded
                await asyncio.sleep(0.01)
        # Eight more are given up, one a second.
        await office.tell(tenant=OTHER)
        await receiver.wait_for(1)
        assert [state for state, _ in await office.states()].count("exhausted") < 5
        await office.end()


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = started(tmp_path_factory.mktemp("bodies"), VETTANCE_UNSAFE_WEBHOOKS="1")
    yield running
    assert running.stop() == 0


def test_a_replay_queues_so_many_and_is_to_be_called_again(unsafe: Service) -> None:
    mine = Caller(unsafe, *unsafe.new_tenant())
    root = "/api/v1/webhooks/subscriptions"
    made = mine.post(root, {"url": "http://127.0.0.1:9/", "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}).json
    unsafe.rows(
        "INSERT INTO delivery (tenant, id, subscription, type, subject, created_at_ms, state, due_at_ms, "
        "settled_at_ms, body) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
        f"WHERE n < 12000) SELECT '{mine.id}', 'dlv_' || substr('{mine.id}', 9) || n, '{made['id']}', "
        "'BLOCKLIST_ENTRY_ADDED', 'lst_x', 1, 'exhausted', 1, 1, '{}' FROM n"
    )
    first = mine.post(f"{root}/{made['id']}/replay", {}).json
    assert (first["replayed"], first["complete"]) == (10_000, False)
    assert "Call again" in first["message"]
    second = mine.post(f"{root}/{made['id']}/replay", {}).json
    assert second["replayed"] < 2_000
    assert not second["complete"]


def test_health_shows_what_was_given_up(unsafe: Service) -> None:
    mine = Caller(unsafe, *unsafe.new_tenant())
    root = "/api/v1/webhooks/subscriptions"
    made = mine.post(root, {"url": "http://127.0.0.1:9/", "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}).json
    unsafe.rows(f"UPDATE subscription SET overflowed = 7, overflowed_at_ms = 0 WHERE id = '{made['id']}'")
    health = mine.get(f"{root}/{made['id']}").json["health"]
    assert (health["overflowed"], health["lastOverflowAt"]) == (7, "1970-01-01T00:00:00.000Z")
    now_ms = time.time_ns() // 1_000_000
    unsafe.rows(f"UPDATE subscription SET overflowed_at_ms = {now_ms} WHERE id = '{made['id']}'")
    findings = unsafe.cli("doctor", "--json", ok=False).stdout
    assert "7 deliveries of 1 subscription were given up" in findings
