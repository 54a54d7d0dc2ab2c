"""The shared memory where processes stall or die, writes fail, and Redis or the store refuse."""

import asyncio
import re
import time
from itertools import pairwise
from typing import Any

import pytest

from tests.velocity.plans import HOUR, MINUTE
from tests.velocity.redis_processes import LOGIN, TENANT, Process, processes, until
from vettance.db.engine import Row, Statement
from vettance.errors import Unavailable
from vettance.limits.quota_usage import SharedQuotaUsage
from vettance.limits.sql import save_quota_use
from vettance.redis_link.redis_connection import RedisConnection
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.velocity.port import Unready
from vettance.velocity.sync import shared_sync


async def test_what_redis_refused_for_a_while_is_settled_when_it_takes_it_again(tmp_path, server):
    async with processes(tmp_path, server.url, 1) as (one,):
        # While a script of somebody else goes on, Redis refuses every call.
        await one.line.call(b"CONFIG", b"SET", b"busy-reply-threshold", b"50")
        other = RedisConnection(server.url)
        busy = asyncio.create_task(other.call(b"EVAL", b"while true do end", b"0"))
        await asyncio.sleep(0.3)
        one.velocity.settle(TENANT, "evt_" + "0" * 32)
        await asyncio.sleep(0.3)
        await one.line.call(b"SCRIPT", b"KILL")
        await asyncio.gather(busy, return_exceptions=True)
        await other.close()
        for _ in range(3):
            await one.decide()
        async with asyncio.timeout(20):
            while await one.velocity.pending(TENANT):  # noqa: ASYNC110 - Redis is asked, nothing tells of it
                await asyncio.sleep(0.02)


async def test_a_sweep_that_redis_refuses_ends_nothing(tmp_path, server):
    async with processes(tmp_path, server.url, 1) as (one,):
        await one.decide()
        (memory,) = await one.line.call(b"KEYS", b"*:m")
        gone = memory[:-1] + b"gone"
        await one.line.call(b"SET", gone, b"not a set")
        await one.memory.sweep()
        await one.line.call(b"DEL", gone)
        one.memory.follow_astray(TENANT)
        await until(lambda: not one.memory.astray)


class StalledStore:
    """A store of which one reading of the log is handed over only when `resume` is set."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.stalled = asyncio.Event()
        self.resume = asyncio.Event()

    async def read(self, statement: Statement) -> list[Row]:
        rows = await self._store.read(statement)
        if "sent, signals FROM event" in statement.sql and not self.stalled.is_set():
            self.stalled.set()
            await self.resume.wait()
        return rows


async def test_a_holder_that_stalled_beyond_its_lease_writes_into_no_memory_of_its_successor(
    tmp_path, server, monkeypatch
):
    monkeypatch.setattr(shared_sync, "LEASE_S", 0.5)
    async with processes(tmp_path, server.url) as (one, other):
        for _ in range(20):
            await one.decide()
        first, second = StalledStore(one.store), StalledStore(other.store)
        one.memory._store, other.memory._store = first, second
        one.memory.follow_astray(TENANT)
        await first.stalled.wait()
        # The lease of the first lapses; the second is filling when the first comes to itself.
        monkeypatch.setattr(shared_sync, "LEASE_S", 15.0)
        other.memory.follow_astray(TENANT)
        await second.stalled.wait()
        await other.line.call(b"PERSIST", b"vettance:{%b}:v:lease" % TENANT.encode())
        first.resume.set()
        await asyncio.sleep(0.3)
        second.resume.set()
        await until(lambda: not other.memory.astray)
        evaluated = await other.decide()
        assert (await other.answers(evaluated), evaluated.degraded) == ([20], False)
        await until(lambda: not one.memory.astray)
        assert await other.answers(await other.decide()) == [21]


async def test_a_memory_is_adopted_only_by_who_has_the_lease_and_one_left_by_the_dead_is_swept(
    tmp_path, server
):
    async with processes(tmp_path, server.url, 1) as (one,):
        await one.decide()
        await one.velocity.settle_all()
        active = one.memory.rules[TENANT]
        stale = await one.velocity.lease(TENANT, 0.05)
        assert stale is not None
        coming = f"{TENANT}#{stale.decode()}"
        await one.velocity.install(coming, active.compiled.plan)
        await one.velocity.hold(TENANT, 5)
        await asyncio.sleep(0.1)
        with pytest.raises(Unready):
            await one.velocity.adopt(TENANT, coming, held=True)
        await one.velocity.sweep(TENANT)
        assert len(await one.line.call(b"KEYS", b"*")) == 2
        assert await one.answers(await one.decide()) == [1]


async def test_a_process_that_starts_without_redis_refuses_events_until_redis_is_there(tmp_path, server):
    server.stop()
    async with processes(tmp_path, server.url, 1) as (one,):
        with pytest.raises(Unavailable):
            await one.decide()
        server.start()
        await one.until_exact()
        await one.until_like_the_log()


async def test_a_quota_that_was_written_down_is_given_back_though_redis_was_away_at_the_start(
    tmp_path, server
):
    async with processes(tmp_path, server.url, 1) as (one,):
        hour = int(time.time() // 3600)
        await one.store.write(
            insert_tenant(Tenant(id=TENANT, name="Shop"), 1), *save_quota_use(hour, [(TENANT, 7)])
        )
        server.stop()
        other = Process(one.store, server.url)
        tally = SharedQuotaUsage(one.store, other.limits)
        await tally.restore(hour)
        server.start()
        await tally.save()
        assert await other.limits.used([TENANT]) == [(TENANT, hour, 7)]
        await other.stop()


@pytest.mark.parametrize(("waited_ms", "behind_ms"), [(MINUTE, 0), (0, HOUR)])
async def test_an_event_that_waited_long_or_is_of_a_host_behind_is_not_taken_for_one_of_the_dead(
    tmp_path, server, waited_ms, behind_ms
):
    async with processes(tmp_path, server.url) as (one, other):
        one.evaluator._now_ms = lambda: time.time_ns() // 1_000_000 - behind_ms
        filled: list[str] = []
        lease = other.velocity.lease

        async def noted(tenant: str, lease_s: float) -> bytes | None:
            filled.append(tenant)
            return await lease(tenant, lease_s)

        other.velocity.lease = noted
        gate = one.store.gate = asyncio.Event()
        waiting = asyncio.create_task(one.decide(waited_ms=waited_ms))
        await until(lambda: one.store.gate is None)
        assert len(await other.velocity.pending(TENANT)) >= 1
        await other.memory.sweep()
        await asyncio.sleep(0.5)
        gate.set()
        await waiting
        assert filled == []


async def test_an_event_that_was_refused_by_a_process_that_then_died_is_taken_out_of_the_memory(
    tmp_path, server
):
    async with processes(tmp_path, server.url, 1) as (one,):
        await one.decide()
        assert one.running is not None
        one.running.cancel()
        one.store.failing = True
        with pytest.raises(Unavailable):
            await one.decide()
        one.store.failing = False
        await one.velocity.settle_all()
        (refused,) = await one.velocity.pending(TENANT)
        # Another process looks twice, which it does once a minute.
        other = Process(one.store, server.url)
        await other.start()
        await other.memory.sweep()
        assert await other.answers(await other.decide()) == [2]
        await other.memory.sweep()
        await other.until_like_the_log()
        assert refused not in await other.velocity.pending(TENANT)
        await other.stop()


async def test_a_write_that_was_given_up_and_took_place_all_the_same_is_counted(tmp_path, server):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        one.store.failing, one.store.late = True, asyncio.Event()
        with pytest.raises(Unavailable):
            await one.decide()
        one.store.failing = False
        await until(lambda: not one.memory.astray)
        assert await other.answers(await other.decide()) == [1]
        one.store.late.set()
        await asyncio.gather(*one.store.writing)
        await one.memory.look_for_stored()
        await other.until_like_the_log()
        assert (await other.answers(await other.decide()))[0] >= 4
        # It is in doubt no more.
        assert one.memory._doubts.batches(TENANT, time.monotonic()) == []


async def test_a_memory_is_not_exchanged_later_for_the_events_that_this_process_failed_to_store(
    tmp_path, server, monkeypatch
):
    monkeypatch.setattr(shared_sync, "_PENDING_S", 10.0)
    async with processes(tmp_path, server.url, 1) as (one,):
        await one.decide()
        one.store.failing = True
        with pytest.raises(Unavailable):
            await one.decide()
        one.store.failing = False
        began_s = time.monotonic()
        await until(lambda: not one.memory.astray)
        assert time.monotonic() - began_s < 8


async def test_a_filling_for_which_redis_has_no_room_leaves_nothing_and_is_tried_ever_more_seldom(
    tmp_path, server
):
    async with processes(tmp_path, server.url) as (one, other):
        for third in range(3):
            bodies = [{**LOGIN, "ip": f"203.0.{third}.{fourth}"} for fourth in range(200)]
            await asyncio.gather(*map(one.decide, bodies))
        await one.velocity.settle_all()
        await one.memory.sweep()
        before = await one.line.call(b"DBSIZE")
        tried_s: list[float] = []
        abandoned: list[str] = []
        for process in (one, other):
            give_little_room(process, tried_s, abandoned)
        one.memory.follow_astray(TENANT)
        await until(lambda: len(abandoned) >= 4)
        pauses_s = [later_s - earlier_s for earlier_s, later_s in pairwise(tried_s)]
        assert all(pause_s >= shared_sync.PAUSE_S * 2**place for place, pause_s in enumerate(pauses_s))
        # What says which memory was coming, and the lease that stands for the pause.
        async with asyncio.timeout(20):
            while await one.line.call(b"DBSIZE") > before + 3:  # noqa: ASYNC110 - Redis is asked
                await asyncio.sleep(0.02)
        for process in (one, other):
            del process.velocity.install, process.velocity.abandon
        await until(lambda: not one.memory.astray)
        assert await one.answers(await one.decide({**LOGIN, "ip": "203.0.2.7"})) == [1]


#: A third of what a memory of 600 addresses takes.
ROOM_BYTES = 40_000


def give_little_room(process: Process, tried_s: list[float], abandoned: list[str]) -> None:
    """Have Redis take some of the keys of a coming memory, and no more until it is abandoned.

    Then there is room again: without any, the lease of the next filling could not be had, which is another
    fault. Notes when a memory was begun, and which were abandoned.
    """
    velocity, line = process.velocity, process.line
    install, abandon = velocity.install, velocity.abandon

    async def allow(most_bytes: int) -> None:
        await line.call(b"CONFIG", b"SET", b"maxmemory", b"%d" % most_bytes)

    async def begin(*args: Any) -> None:
        tried_s.append(time.monotonic())
        await install(*args)
        used = re.search(rb"used_memory:(\d+)", await line.call(b"INFO", b"memory"))
        assert used is not None
        await allow(int(used[1]) + ROOM_BYTES)

    async def end(coming: str) -> int:
        count = await abandon(coming)
        await allow(0)
        abandoned.append(coming)
        return count

    velocity.install, velocity.abandon = begin, end  # type: ignore[method-assign]
