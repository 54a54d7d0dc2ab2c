"""Messages are taken once, whatever a broker delivers again and whoever else takes them."""

import asyncio
from pathlib import Path

import pytest

from tests.streams.brokers import login
from vettance.db.engine import Store, everyone
from vettance.db.sqlite import SqliteStore
from vettance.db.tables import JOB
from vettance.ids import IdSource
from vettance.jobs.sql import JobKind
from vettance.streams import sql
from vettance.streams.stream_message import IdRule, StreamMessage
from vettance.streams.take_messages import MessageTaker, StreamConsumer

TENANT = "ten_1"


def messages(first: int, end: int) -> list[StreamMessage]:
    return [StreamMessage(login(n), f"e{n}", None, {}, None, n) for n in range(first, end)]


def taker(store: Store, name: str = "c") -> MessageTaker:
    return MessageTaker(
        store, StreamConsumer(TENANT, name, JobKind.FRAUD, IdRule(), results_due=True), IdSource()
    )


async def jobs(store: Store) -> list[tuple[str, str]]:
    return [
        (row[0], row[1])
        for row in await store.read(everyone(JOB, "SELECT request_id, state FROM job ORDER BY seq"))
    ]


@pytest.fixture
async def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        yield store


async def test_what_comes_again_is_taken_once(store: Store) -> None:
    one = taker(store)
    assert await one.take(messages(0, 10)) == sql.StreamCounts(10)
    assert await one.take(messages(5, 15)) == sql.StreamCounts(5, 5)
    assert await one.take(messages(20, 22) + messages(20, 22)) == sql.StreamCounts(2, 2)
    assert [name for name, _ in await jobs(store)] == [f"e{n}" for n in (*range(15), 20, 21)]
    (counted,) = await store.read(sql.select_counts(TENANT, "c"))
    assert sql.StreamCounts._make(counted) == sql.StreamCounts(17, 7)


async def test_another_consumer_takes_it_too(store: Store) -> None:
    await taker(store).take(messages(0, 3))
    assert await taker(store, "d").take(messages(0, 3)) == sql.StreamCounts(3)


async def test_an_id_used_for_other_content_is_refused_once(store: Store) -> None:
    one = taker(store)
    await one.take(messages(0, 2))
    other = [StreamMessage(login(7), "e0", None, {}, None, 0)]
    assert await one.take(other) == sql.StreamCounts(0, 0, 1)
    assert await one.take(other + other) == sql.StreamCounts(0, 2)
    assert await jobs(store) == [("e0", "accepted"), ("e1", "accepted"), ("e0", "failed")]


async def test_what_is_no_event_is_kept_with_the_reason_once(store: Store) -> None:
    one = taker(store)
    bad = [StreamMessage(b"nonsense", "e0", None, {}, None, 0)]
    assert await one.take(bad + messages(0, 1)) == sql.StreamCounts(1, 0, 1)
    assert await one.take(bad) == sql.StreamCounts(0, 1)
    rows = await store.read(everyone(JOB, "SELECT error, sent FROM job WHERE state = 'failed'"))
    assert [(b"valid JSON" in bytes(error), bytes(sent)) for error, sent in rows] == [(True, b"nonsense")]


async def test_takers_that_meet_take_each_message_once(store: Store) -> None:
    takers = [taker(store) for _ in range(4)]
    counts = await asyncio.gather(*(one.take(messages(0, 50)) for one in takers))
    assert sum(one.accepted for one in counts) == 50
    assert sum(one.repeated for one in counts) == 150
    assert len(await jobs(store)) == 50


async def test_large_messages_are_taken_in_several_commits(store: Store) -> None:
    large = [
        StreamMessage(login(n, metadata={"text": ["x" * 4_000] * 7}), f"e{n}", None, {}, None, n)
        for n in range(300)
    ]
    assert await taker(store).take(large) == sql.StreamCounts(300)
    assert len(await jobs(store)) == 300
