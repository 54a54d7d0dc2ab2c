"""The memory between events: live equals replay through restarts, snapshots, new rules, failed writes."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite import SqliteStore, store_path
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.features import fraud_schema
from vettance.decisions.velocity_rebuild import VelocityRebuilder
from vettance.errors import Unavailable
from vettance.events.event import EventSource, read_taken_event
from vettance.ids import IdSource
from vettance.rules.ruleset import compile_document
from vettance.rules.sql import DECIDING
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.sync.snapshot_store import SnapshotStore
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots
from vettance.wire.payload import encode

TENANT = "ten_" + "1" * 32
OTHER = "ten_" + "2" * 32


def document(*questions: str) -> str:
    rules = "".join(
        f"  - {{id: rule-{number}, name: Rule, score: 0, reason: R, explanation: E, mode: shadow, "
        f"when: '{text} >= 0'}}\n"
        for number, text in enumerate(questions)
    )
    return f"name: test\nrules:\n{rules}"


COUNTING = document('count(by=ip, within="1h")', 'distinct(ip, by=customer.external_id, within="24h")')
SUMMING = document('count(by=ip, within="1h")', 'sum(metadata.amount, by=customer.external_id, within="24h")')


class FailingStore:
    """A real store whose writes can be made to fail, as a full disk makes them."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.failing = False

    async def read(self, statement: Statement) -> list[Row]:
        return await self._store.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        if self.failing:
            raise StoreDown("the disk is full")
        return await self._store.write(*statements)

    async def migrate(self) -> int:
        return await self._store.migrate()

    async def close(self) -> None:
        await self._store.close()


class House:
    """An evaluator with what keeps its memory, on a real store."""

    def __init__(self, store: FailingStore, data: Path) -> None:
        self.store = store
        self.velocity = MemoryVelocity()
        self.ids = IdSource()
        self.evaluator = Evaluator(store, self.velocity, self.ids)
        schema = fraud_schema()
        cache = RuleCache(lambda text: compile_document(text, schema))
        self.preserver = VelocitySnapshots(
            store, self.velocity, self.evaluator, SnapshotStore(data / "memory")
        )
        self.rebuilder = VelocityRebuilder(
            store, self.velocity, self.evaluator, cache, self.preserver.restore
        )

    async def push(self, version: int, text: str, tenant: str = TENANT) -> None:
        await self.store.write(DECIDING.insert(tenant, version, text, "", 0))

    async def decide(self, body: dict[str, Any], tenant: str = TENANT) -> str:
        sent = encode(body)
        event = read_taken_event(body, time.time_ns() // 1_000_000)
        done = await self.evaluator.evaluate(
            tenant, event, sent, EventSource.EVENTS, "r", time.perf_counter_ns()
        )
        return done.id

    async def record(self, event_id: str) -> DecisionRecordData:
        rows = await self.store.read(Statement("SELECT record FROM decision WHERE id = ?", (event_id,)))
        return msgspec.json.decode(rows[0][0], type=DecisionRecordData)

    async def answers(self, event_id: str) -> list[Any]:
        return list((await self.record(event_id)).answers)

    async def grow_older(self, days: int) -> None:
        """Have all events of the log be received so many days earlier."""
        await self.store.write(
            Statement("UPDATE event SET received_at_ms = received_at_ms - ?", (days * 86_400_000,))
        )


@asynccontextmanager
async def house(data: Path) -> AsyncIterator[House]:
    store = await SqliteStore.open(store_path(data), writer="thread")
    try:
        await store.migrate()
        if not await store.read(tenants_sql.select_tenant(TENANT)):
            await store.write(
                tenants_sql.insert_tenant(Tenant(id=TENANT, name="One"), 0),
                tenants_sql.insert_tenant(Tenant(id=OTHER, name="Two"), 0),
                DECIDING.insert(TENANT, 1, COUNTING, "", 0),
                DECIDING.insert(OTHER, 1, COUNTING, "", 0),
            )
        made = House(FailingStore(store), data)
        await made.rebuilder.start()
        yield made
    finally:
        await store.close()


def some_event(chance: random.Random) -> dict[str, Any]:
    return {
        "eventName": "payment",
        "ip": f"10.0.0.{chance.randrange(5)}",
        "customer": {"externalId": f"c{chance.randrange(4)}"},
        "metadata": {"amount": chance.randrange(100)},
        "occurredAt": time.time() - chance.randrange(7200),
    }


PROBE = {
    "eventName": "payment",
    "ip": "10.0.0.1",
    "customer": {"externalId": "c1"},
    "metadata": {"amount": 1},
}


@pytest.mark.parametrize("snapshot", ["never", "at the end", "half way"])
async def test_after_a_restart_the_memory_is_what_it_was(tmp_path: Path, snapshot: str) -> None:
    chance = random.Random(5)
    async with house(tmp_path) as first:
        for number in range(300):
            await first.decide(some_event(chance), TENANT if number % 3 else OTHER)
            if snapshot == "half way" and number == 150:
                await first.preserver.save(TENANT, rest_s=0)
        if snapshot == "at the end":
            await first.preserver.save_all()
        expected = await first.answers(await first.decide(PROBE))
    async with house(tmp_path) as second:
        # The probe itself is in the log by now: one more of its address, and no new address of the customer.
        again = await second.answers(await second.decide(PROBE))
    assert again[0] == expected[0] + 1
    assert again[1] in (expected[1], expected[1] + 1)


async def test_a_damaged_snapshot_is_set_aside_for_the_log(tmp_path: Path) -> None:
    async with house(tmp_path) as first:
        for _ in range(20):
            await first.decide(PROBE)
        await first.preserver.save_all()
    for file in (tmp_path / "memory").iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    async with house(tmp_path) as second:
        assert (await second.answers(await second.decide(PROBE)))[0] == 20


async def leave_a_snapshot_ahead_of_five_events(folder: Path) -> None:
    async with house(folder) as first:
        for _ in range(10):
            await first.decide(PROBE)
        await first.preserver.save_all()
        await first.store.write(
            Statement("DELETE FROM decision"), Statement("DELETE FROM event WHERE seq > 5")
        )


async def test_a_snapshot_that_is_ahead_of_the_log_is_not_used(tmp_path: Path) -> None:
    await leave_a_snapshot_ahead_of_five_events(tmp_path)
    async with house(tmp_path) as second:
        assert (await second.answers(await second.decide(PROBE)))[0] == 5


async def test_a_snapshot_of_another_log_does_not_stand_in_the_way_of_those_that_follow(
    tmp_path: Path,
) -> None:
    await leave_a_snapshot_ahead_of_five_events(tmp_path)
    async with house(tmp_path) as second:
        await second.decide(PROBE)
        await second.preserver.save_all()
    async with house(tmp_path) as third:
        assert await third.rebuilder.start() == 0
        assert (await third.answers(await third.decide(PROBE)))[0] == 6


async def test_new_rules_know_the_past_and_miss_no_event_while_they_come_into_force(tmp_path: Path) -> None:
    async with house(tmp_path) as one:
        for _ in range(400):
            await one.decide(PROBE)
        decided = 400

        async def traffic() -> int:
            count = 0
            while not done.is_set():
                await asyncio.gather(*(one.decide(PROBE) for _ in range(8)))
                count += 8
            return count

        done = asyncio.Event()
        running = asyncio.create_task(traffic())
        await asyncio.sleep(0.02)
        await one.push(2, SUMMING)
        await one.rebuilder.reload(TENANT)
        await asyncio.sleep(0.02)
        done.set()
        decided += await running
        answers = await one.answers(await one.decide(PROBE))
    assert decided > 400
    assert answers == [decided, float(decided)]


async def test_an_event_of_a_new_tenant_waits_for_its_rules(tmp_path: Path) -> None:
    async with house(tmp_path) as one:
        active = one.evaluator.rules.pop(TENANT)
        deciding = asyncio.create_task(one.decide(PROBE))
        await asyncio.sleep(0.1)
        assert not deciding.done()
        one.evaluator.rules[TENANT] = active
        await asyncio.wait_for(deciding, 30)


async def test_an_event_that_the_store_did_not_take_does_not_count(tmp_path: Path) -> None:
    async with house(tmp_path) as one:
        for _ in range(5):
            await one.decide(PROBE)
        one.store.failing = True
        for _ in range(3):
            with pytest.raises(Unavailable):
                await one.decide(PROBE)
        one.store.failing = False
        assert one.evaluator.astray == {TENANT}
        await one.rebuilder.reload(TENANT)
        assert one.evaluator.astray == set()
        assert (await one.answers(await one.decide(PROBE)))[0] == 5


async def test_the_k_th_of_many_simultaneous_events_sees_all_before_it(tmp_path: Path) -> None:
    async with house(tmp_path) as one:
        ids = await asyncio.gather(*(one.decide(PROBE) for _ in range(100)))
        counts = [(await one.answers(event_id))[0] for event_id in ids]
    assert sorted(counts) == list(range(100))


def probe_of(days_ago: float) -> dict[str, Any]:
    return {**PROBE, "occurredAt": time.time() - days_ago * 86_400}


@pytest.mark.parametrize("by", ["a restart", "new rules", "an outdated snapshot"])
async def test_a_late_event_is_never_answered_zero_as_exact_where_the_log_was_not_read(
    tmp_path: Path, by: str
) -> None:
    async with house(tmp_path) as first:
        if by == "an outdated snapshot":
            await first.decide(probe_of(100.01))
            await first.preserver.save_all()
        for _ in range(5):
            await first.decide(PROBE)
        await first.grow_older(100)
    async with house(tmp_path) as second:
        if by == "new rules":
            await second.push(2, SUMMING)
            await second.rebuilder.reload(TENANT)
        late = await second.record(await second.decide(probe_of(99.99)))
        assert late.inexact == 0b11
        # Nothing is left out that was received in the last 92 days, and windows of live events begin there.
        for days_ago in (1.5, 0):
            live = await second.record(await second.decide(probe_of(days_ago)))
            assert live.inexact == 0
        await second.preserver.save_all()
    async with house(tmp_path) as third:
        assert (await third.record(await third.decide(probe_of(99.99)))).inexact == 0b11


async def test_a_late_event_is_exact_where_the_log_holds_nothing_older_than_was_read(tmp_path: Path) -> None:
    async with house(tmp_path) as first:
        for _ in range(5):
            await first.decide(PROBE)
        await first.grow_older(85)
    async with house(tmp_path) as second:
        late = await second.record(await second.decide(probe_of(84.99)))
        assert (late.answers[0], late.inexact) == (5, 0)
