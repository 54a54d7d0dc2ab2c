"""The shared memory between events: two evaluators on one store and one Redis, as two processes have them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis_server import PATIENCE_S, SECRET, PrivateRedis

from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite import SqliteStore
from vettance.decisions.active import RuleCache
from vettance.decisions.decision import Record
from vettance.decisions.evaluate import Evaluated, Evaluator
from vettance.decisions.features import fraud_schema
from vettance.decisions.share import DEAD_MS, HOLD_S, SharedMemory
from vettance.errors import Unavailable
from vettance.events.event import Source, read_event
from vettance.ids import IdSource
from vettance.rules import sql as rules_sql
from vettance.rules.ruleset import compile_document
from vettance.state.memory import MemoryVelocity
from vettance.state.redis_limits import SharedLimits
from vettance.state.redis_line import Line
from vettance.state.redis_velocity import RedisVelocity
from vettance.websdk import sql as websdk_sql
from vettance.websdk.follow import Follower
from vettance.wire import encode

TENANT = "ten_1"
LOGIN = {"eventName": "user.login", "ip": "203.0.113.9", "customer": {"externalId": "c1"}}


def document(*questions: str) -> str:
    rules = "".join(
        f"  - {{id: r{number}, name: r, reason: R, explanation: e, score: 0, tests: [], "
        f"when: '{text} >= 0'}}\n"
        for number, text in enumerate(questions)
    )
    return f"name: test\nrules:\n{rules}"


COUNTING = document('count(by=ip, within="1h")')
SUMMING = document('count(by=ip, within="1h")', 'sum(metadata.amount, by=customer.external_id, within="24h")')


class FailingStore:
    """A real store whose writes can be made to fail, as a full disk makes them."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.failing = False
        #: Holds the next write up until it is set.
        self.gate: asyncio.Event | None = None
        self.read = store.read
        self.migrate = store.migrate
        self.close = store.close

    async def write(self, *statements: Statement) -> list[int]:
        if self.failing:
            raise StoreDown("the disk is full")
        gate, self.gate = self.gate, None
        if gate is not None:
            await gate.wait()
        return await self._store.write(*statements)


class Process:
    """What one process has of its own."""

    def __init__(self, store: FailingStore, url: str) -> None:
        self.store = store
        self.line = Line(url, PATIENCE_S)
        self.velocity = RedisVelocity(self.line, SECRET)
        schema = fraud_schema()
        cache = RuleCache(lambda text: compile_document(text, schema))
        self.memory = SharedMemory(store, self.velocity, cache)
        self.evaluator = Evaluator(store, MemoryVelocity(), IdSource())
        self.limits = SharedLimits(self.line)
        self.follower = Follower(store, self.evaluator.sessions)
        self.follower.marks = self.limits
        self.evaluator.share(self.memory, self.follower.freshen)
        self.running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.memory.start()
        self.running = asyncio.create_task(self.memory.run())

    async def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
        await self.line.close()

    async def decide(self, body: dict[str, Any] = LOGIN) -> Evaluated:
        sent = encode(body)
        event = read_event(body, len(sent), time.time_ns() // 1_000_000)
        return await self.evaluator.evaluate(TENANT, event, sent, Source.EVENTS, "r", time.perf_counter_ns())

    async def answers(self, evaluated: Evaluated) -> list[Any]:
        read = Statement("SELECT record FROM decision WHERE id = ?", (evaluated.id,))
        rows: list[Row] = await self.store.read(read)
        return list(msgspec.json.decode(rows[0][0], type=Record).answers)

    async def until_exact(self) -> Evaluated:
        """Decide until the memory is whole again."""
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(0.02)
                try:
                    evaluated = await self.decide()
                except Unavailable:
                    continue
                if not evaluated.degraded:
                    return evaluated

    async def until_like_the_log(self) -> None:
        """Decide until the memory counts what is stored."""
        async with asyncio.timeout(20):
            while True:
                (count,) = await self.answers(await self.until_exact())
                (stored,) = (await self.store.read(Statement("SELECT COUNT(*) FROM event")))[0]
                if count == stored - 1:
                    return


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110 - what is waited for goes on in the background
            await asyncio.sleep(0.01)


@pytest.fixture
def server():
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


@asynccontextmanager
async def processes(data: Path, url: str, count: int = 2) -> AsyncIterator[list[Process]]:
    store = FailingStore(await SqliteStore.open(data / "store.db", writer="thread"))
    await store.migrate()
    await store.write(rules_sql.insert_version(TENANT, 1, COUNTING, "", 0))
    found = [Process(store, url) for _ in range(count)]
    try:
        for process in found:
            await process.start()
        yield found
    finally:
        for process in found:
            await process.stop()
        await store.close()


async def test_of_simultaneous_events_in_two_processes_each_sees_those_before_it(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        decided = await asyncio.gather(*((one, other)[number % 2].decide() for number in range(100)))
        counts = [(await one.answers(evaluated))[0] for evaluated in decided]
        assert sorted(counts) == list(range(100))
        assert not any(evaluated.degraded for evaluated in decided)


async def test_a_flushed_memory_answers_as_degraded_and_is_filled_from_the_log(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        for _ in range(30):
            await one.decide()
        await one.line.call(b"FLUSHALL")
        first = await other.decide()
        assert first.degraded
        assert await one.answers(first) == [0]
        whole = await other.until_exact()
        (count,) = await one.answers(whole)
        # Whatever was decided while the memory was filled is in it too.
        (stored,) = (await one.store.read(Statement("SELECT COUNT(*) FROM event")))[0]
        assert count == stored - 1 >= 31
        again = await one.decide()
        assert await one.answers(again) == [count + 1]


async def test_without_redis_an_event_is_refused_and_soon_taken_when_it_is_back(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        for _ in range(5):
            await one.decide()
        server.stop()
        with pytest.raises(Unavailable):
            await one.decide()
        server.start()
        began_s = time.monotonic()
        async with asyncio.timeout(5):
            while True:
                try:
                    await other.decide()
                    break
                except Unavailable:
                    await asyncio.sleep(0.02)
        assert time.monotonic() - began_s < 5
        (count,) = await one.answers(await one.until_exact())
        (stored,) = (await one.store.read(Statement("SELECT COUNT(*) FROM event")))[0]
        assert count == stored - 1


async def test_new_rules_begin_with_a_memory_of_the_whole_log_in_every_process(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        paid = {**LOGIN, "metadata": {"amount": 10}}
        for _ in range(7):
            await one.decide(paid)
        await one.store.write(rules_sql.insert_version(TENANT, 2, SUMMING, "", 1))
        await one.memory.reload(TENANT)
        await until(lambda: one.memory.rules[TENANT].version == 2)
        # The other has not heard of the new rules; the memory tells it.
        evaluated = await other.decide(paid)
        assert evaluated.decision.ruleset_version == 2
        assert await other.answers(evaluated) == [7, 70.0]


async def test_an_event_that_the_store_refused_is_taken_out_of_the_memory(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        one.store.failing = True
        with pytest.raises(Unavailable):
            await one.decide()
        one.store.failing = False
        await until(lambda: not one.memory.astray)
        assert await other.answers(await other.decide()) == [1]


async def test_an_event_that_is_stored_after_its_memory_was_lost_and_filled_is_counted(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        gate = one.store.gate = asyncio.Event()
        late = asyncio.create_task(one.decide())
        await until(lambda: one.store.gate is None)
        await one.line.call(b"FLUSHALL")
        (before,) = await other.answers(await other.until_exact())
        gate.set()
        await late
        await other.until_like_the_log()
        assert (await other.answers(await other.decide()))[0] > before + 2


async def test_an_event_that_its_process_did_not_live_to_store_is_taken_out_of_the_memory(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        compiled = one.memory.rules[TENANT].compiled
        then_ms = time.time_ns() // 1_000_000 - 2 * DEAD_MS
        event = read_event(LOGIN, 100, then_ms)
        dead = IdSource().make("evt", then_ms)
        seen = compiled.observe(compiled.facts(event))
        await one.velocity.observe(TENANT, dead, then_ms, seen, compiled.plan, received=True)
        assert await one.answers(await one.decide()) == [2]
        await other.memory.sweep()
        await other.until_like_the_log()
        assert dead not in await one.velocity.pending(TENANT)


async def test_what_is_settled_or_exchanged_leaves_nothing_behind(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, _):
        for _ in range(10):
            await one.decide()
        await one.velocity.settle_all()
        assert await one.velocity.pending(TENANT) == []
        one.memory.follow_astray(TENANT)
        await until(lambda: not one.memory.astray)
        await one.velocity.sweep(TENANT)
        # What says how the memory stands, and the entries of one key.
        assert len(await one.line.call(b"KEYS", b"*")) == 2


async def test_a_second_process_takes_over_from_one_that_died_filling(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        assert await one.velocity.lease(TENANT, 0.3) is not None
        assert await other.velocity.lease(TENANT, 0.3) is None
        other.memory.follow_astray(TENANT)
        await until(lambda: not other.memory.astray)
        assert await one.answers(await one.decide()) == [1]


async def test_events_held_back_by_a_process_that_died_are_answered_all_the_same(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        assert not await one.velocity.hold(TENANT, HOLD_S, again=True)
        assert await one.velocity.hold(TENANT, HOLD_S)
        assert await one.velocity.hold(TENANT, HOLD_S, again=True)
        assert await other.answers(await other.decide()) == [1]


async def test_signals_that_one_process_has_acknowledged_are_seen_by_the_next_request_in_another(
    tmp_path, server
):
    async with processes(tmp_path, server.url) as (one, other):
        event = {**LOGIN, "sessionId": "s1"}
        for number in range(2):
            now_ms = time.time_ns() // 1_000_000
            await one.store.write(
                websdk_sql.insert_batch(TENANT, "s1", f"b{number}", None, now_ms, b'{"moveCount": 4}')
            )
            await one.follower.announce(TENANT)
            await other.limits.charge(TENANT, "key", 100, 100)
            evaluated = await other.decide(event)
            read = Statement("SELECT signals FROM event WHERE id = ?", (evaluated.id,))
            assert msgspec.json.decode((await one.store.read(read))[0][0]) == {"moveCount": 4 * (number + 1)}
