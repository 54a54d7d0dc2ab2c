"""The shared memory between events: two evaluators on one store and one Redis, as two processes have them."""

import asyncio
import time

import msgspec
import pytest

from tests.velocity.plans import HOUR
from tests.velocity.redis_processes import LOGIN, SUMMING, TENANT, processes, until
from vettance.clock import DAY_MS
from vettance.db.engine import Statement
from vettance.errors import Unavailable
from vettance.events.event import read_taken_event
from vettance.ids import IdSource
from vettance.rules.sql import DECIDING
from vettance.velocity.port import Condition
from vettance.velocity.sync.velocity_backfill import HOLD_S
from vettance.websdk import sql as websdk_sql


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


async def test_a_late_event_is_never_answered_zero_as_exact_where_the_log_was_not_read(tmp_path, server):
    async with processes(tmp_path, server.url, 1) as (one,):
        for _ in range(5):
            await one.decide(waited_ms=100 * DAY_MS)
        await one.line.call(b"FLUSHALL")
        one.memory.follow(TENANT)
        plan = one.memory.rules[TENANT].compiled.plan
        async with asyncio.timeout(20):
            while await one.velocity.condition(TENANT, plan) is not Condition.READY:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await one.record(await one.decide(waited_ms=100 * DAY_MS - 60_000))).inexact == 1
        assert (await one.record(await one.decide())).inexact == 0


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
        await one.store.write(DECIDING.insert(TENANT, 2, SUMMING, "", 1))
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


@pytest.mark.parametrize("ahead_ms", [-HOUR, 0, HOUR])
async def test_an_event_that_its_process_did_not_live_to_store_is_taken_out_whatever_its_clock_said(
    tmp_path, server, ahead_ms
):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        compiled = one.memory.rules[TENANT].compiled
        then_ms = time.time_ns() // 1_000_000
        event = read_taken_event(LOGIN, then_ms)
        dead = IdSource().make("evt", then_ms + ahead_ms)
        seen = compiled.observe(compiled.facts(event))
        await one.velocity.observe(TENANT, dead, then_ms, seen, compiled.plan, received=True)
        assert await one.answers(await one.decide()) == [2]
        await other.memory.sweep()
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
