"""Imported history is decided as of its own time, whatever was live, whatever is interrupted in between."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.velocity.oracle import Oracle, agree
from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite import SqliteStore, store_path
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.features import fraud_schema
from vettance.decisions.velocity_rebuild import VelocityRebuilder
from vettance.events.event import EventSource, read_event
from vettance.exchange import sql as exchange_sql
from vettance.exchange.import_rows import FraudKind
from vettance.exchange.sql import FRAUD
from vettance.exchange.worker import Importer
from vettance.history.backtest import Backtest
from vettance.ids import IdSource
from vettance.jobs.sql import insert_imported
from vettance.learning.keep_learning import ModelKeeper
from vettance.rules.ruleset import compile_document
from vettance.rules.sql import DECIDING
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.sync.snapshot_store import SnapshotStore
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots
from vettance.wire.payload import encode

TENANT = "ten_" + "1" * 32
DAY = 86_400
NOW = int(time.time())
QUESTIONS = (
    'count(by=ip, within="1h")',
    'count(by=ip, within="90d")',
    'distinct(ip, by=customer.external_id, within="30d")',
    'sum(metadata.amount, by=customer.external_id, within="90d")',
    'last_seen(by=customer.external_id, within="90d")',
    'first_seen(by=ip, within="90d")',
    'seen(ip, by=customer.external_id, within="60d")',
)
DOCUMENT = "name: test\nrules:\n" + "".join(
    f"  - {{id: rule-{number}, name: Rule, score: 40, reason: R{number}, explanation: E, "
    f"when: '{text} {'' if text.startswith('seen') else '>= 2'}'}}\n"
    for number, text in enumerate(QUESTIONS)
)
Body = dict[str, Any]


class FailingStore:
    """A real store that refuses every write after so many of history, as one whose disk is full."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.batches_left = math.inf

    async def read(self, statement: Statement) -> list[Row]:
        return await self._store.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        if any("'completed'" in statement.sql for statement in statements):
            self.batches_left -= 1
        if self.batches_left < 0:
            raise StoreDown("the disk is full")
        return await self._store.write(*statements)


class House:
    """What decides live and imported events, on a real store."""

    def __init__(self, store: FailingStore, data: Path) -> None:
        self.store = store
        self.velocity = MemoryVelocity(now_ms=lambda: int(time.time() * 1000))
        ids = self.ids = IdSource()
        self.evaluator = Evaluator(store, self.velocity, ids)
        schema = fraud_schema()
        cache = RuleCache(lambda text: compile_document(text, schema))
        preserver = VelocitySnapshots(store, self.velocity, self.evaluator, SnapshotStore(data / "memory"))
        self.rebuilder = VelocityRebuilder(store, self.velocity, self.evaluator, cache, preserver.restore)
        keeper = ModelKeeper(store, data)  # It never runs here.
        kind = FraudKind(store, self.evaluator, ids, MemoryVelocity, keeper)
        self.importer = Importer(store, {FRAUD: kind}, batch=3)

    async def live(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            sent = encode(body)
            event = read_event(body, sent, int(time.time() * 1000))
            await self.evaluator.evaluate(
                TENANT, event, sent, EventSource.EVENTS, "r", time.perf_counter_ns()
            )

    async def queue(self, import_id: str, bodies: Sequence[Body]) -> None:
        now_ms = int(time.time() * 1000)
        statements = [exchange_sql.begin_import(TENANT, import_id, "fraud", now_ms)]
        for body in bodies:
            job_id = self.ids.make("job")
            moment = int(body["occurredAt"] * 1000)
            statements.append(insert_imported(TENANT, job_id, import_id, now_ms, moment, encode(body), None))
        await self.store.write(*statements, exchange_sql.release_import(TENANT, import_id))

    async def records(self, source: str = "import") -> dict[int, DecisionRecordData]:
        """By the number of the event: what was recorded about its decision."""
        rows = await self.store.read(
            Statement(
                "SELECT event.sent, decision.record FROM event JOIN decision ON decision.id = event.id "
                "WHERE event.source = ? ORDER BY event.seq",
                (source,),
            )
        )
        return {
            msgspec.json.decode(sent)["metadata"]["number"]: msgspec.json.decode(
                record, type=DecisionRecordData
            )
            for sent, record in rows
        }


@asynccontextmanager
async def house(data: Path) -> AsyncIterator[House]:
    store = await SqliteStore.open(store_path(data), writer="thread")
    try:
        await store.migrate()
        if not await store.read(tenants_sql.select_tenant(TENANT)):
            await store.write(
                tenants_sql.insert_tenant(Tenant(id=TENANT, name="One"), 0),
                DECIDING.insert(TENANT, 1, DOCUMENT, "", 0),
            )
        made = House(FailingStore(store), data)
        await made.rebuilder.start()
        yield made
    finally:
        await store.close()


def answers_of(records: dict[int, DecisionRecordData], numbers: Sequence[int]) -> list[Any]:
    return [(number, records[number].answers, records[number].fired) for number in numbers]


@st.composite
def streams(draw: st.DrawFn) -> list[Body]:
    """Events over up to 300 days, at moments of their own, in the order of their time."""
    days = draw(st.lists(st.integers(1, 300 * 24), min_size=1, max_size=24, unique=True))
    return [
        {
            "eventName": "payment",
            "ip": f"10.0.0.{draw(st.integers(0, 2))}",
            "customer": {"externalId": f"c{draw(st.integers(0, 2))}"},
            "metadata": {"amount": draw(st.integers(0, 9)), "number": number},
            "occurredAt": NOW - hours * 3600,
        }
        for number, hours in enumerate(sorted(days, reverse=True))
    ]


async def decided(
    live: list[Body], imported: list[Body], stops: Sequence[int] = ()
) -> dict[int, DecisionRecordData]:
    """Decide some events live, then import others; the import is cut off after so many batches each time."""
    with TemporaryDirectory() as folder:
        async with house(Path(folder)) as one:
            await one.live(live)
            await one.queue("imp_1", imported)
        for stop in stops:
            async with house(Path(folder)) as one:
                one.store.batches_left = stop
                await one.importer.drain()
        async with house(Path(folder)) as one:
            await one.importer.drain()
            return await one.records()


@pytest.mark.slow
@settings(max_examples=25)
@given(streams(), st.data())
def test_the_imported_part_of_any_split_is_decided_as_if_all_were_imported(
    stream: list[Body], data: st.DataObject
) -> None:
    is_live = data.draw(st.lists(st.booleans(), min_size=len(stream), max_size=len(stream)))
    imported = [body for body, live in zip(stream, is_live, strict=True) if not live]
    shuffled = data.draw(st.permutations(imported))
    whole = asyncio.run(decided([], stream))
    split = asyncio.run(decided([body for body, live in zip(stream, is_live, strict=True) if live], shuffled))
    numbers = [body["metadata"]["number"] for body in imported]
    assert sorted(split) == sorted(numbers)
    assert answers_of(split, numbers) == answers_of(whole, numbers)
    assert not any(record.inexact for record in whole.values())


@pytest.mark.slow
@settings(max_examples=15)
@given(streams())
def test_history_is_answered_as_a_naive_memory_answers_it(stream: list[Body]) -> None:
    found = asyncio.run(decided([], stream))
    compiled = compile_document(DOCUMENT, fraud_schema())[1]
    oracle = Oracle(compiled.plan)
    for body in stream:
        event = read_event(dict(body), encode(body), NOW * 1000)
        number = body["metadata"]["number"]
        expected = oracle.observe(
            TENANT, str(number), event.occurred_at_ms, compiled.observe(compiled.facts(event))
        )
        assert all(map(agree, found[number].answers, expected)), number


@pytest.mark.slow
@settings(max_examples=15)
@given(streams(), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_an_import_that_is_interrupted_goes_on_with_the_same_answers(
    stream: list[Body], stops: list[int]
) -> None:
    numbers = [body["metadata"]["number"] for body in stream]
    live, imported = stream[::3], [body for place, body in enumerate(stream) if place % 3]
    numbers = [body["metadata"]["number"] for body in imported]
    straight = asyncio.run(decided(live, imported))
    assert answers_of(asyncio.run(decided(live, imported, stops)), numbers) == answers_of(straight, numbers)


def some_stream(count: int, hours: int = 7) -> list[Body]:
    return [
        {
            "eventName": "payment",
            "ip": f"10.0.0.{number % 3}",
            "customer": {"externalId": f"c{number % 4}"},
            "metadata": {"amount": number % 7, "number": number},
            "occurredAt": NOW - (count - number) * hours * 3600,
        }
        for number in range(count)
    ]


async def test_a_backtest_decides_imports_as_they_were_decided(tmp_path: Path) -> None:
    stream = some_stream(600)
    async with house(tmp_path) as one:
        await one.live(stream[::4])
        await one.queue("imp_1", stream[1::4])
        await one.importer.drain()
        await one.live([{**stream[-1], "occurredAt": NOW}])
        await one.queue("imp_2", stream[2::4])
        await one.importer.drain()
        for since, by_records in itertools.product((0, (NOW - 60 * DAY) * 1000), (False, True)):
            changes: list[Any] = []
            rules = one.evaluator.rules[TENANT]
            backtest = Backtest(one.store, TENANT, rules, MemoryVelocity, by_records=by_records)
            await backtest.run((since, 2**62), changes.append, lambda _count: None)
            assert changes == []
            assert sum(backtest.counts.values()) > 100
            hits = sum(hits.fired for hits in backtest.hits)
        records = [*(await one.records("import")).values(), *(await one.records("events")).values()]
        assert hits <= sum(len(record.fired) for record in records)


async def test_live_events_see_imported_ones_as_far_as_their_windows_reach_and_a_restart_changes_nothing(
    tmp_path: Path,
) -> None:
    probe = {"eventName": "payment", "ip": "10.0.0.1", "customer": {"externalId": "c1"}}
    stream = some_stream(400, hours=12)  # 200 days
    async with house(tmp_path) as one:
        await one.live([{**probe, "metadata": {"number": -1}}])
        await one.queue("imp_1", stream)
        await one.importer.drain()
        await one.live([{**probe, "metadata": {"number": -2}}])
        found = (await one.records("events"))[-2].answers
        near = [body for body in stream if body["occurredAt"] > NOW - 90 * DAY]
        mine = [body for body in near if body["customer"]["externalId"] == "c1"]
        assert found[1] == 1 + sum(body["ip"] == "10.0.0.1" for body in near)
        assert found[3] == sum(body["metadata"]["amount"] for body in mine)
    async with house(tmp_path) as one:
        await one.live([{**probe, "metadata": {"number": -3}}])
        again = (await one.records("events"))[-3].answers
        assert (again[1], again[2], again[3]) == (found[1] + 1, found[2], found[3])


async def test_an_event_that_cannot_be_decided_holds_up_no_other(tmp_path: Path) -> None:
    stream = some_stream(8)
    async with house(tmp_path) as one:
        await one.queue("imp_1", stream)
        await one.store.write(
            Statement("UPDATE job SET sent = ? WHERE seq = (SELECT MIN(seq) + 3 FROM job)", (b"{",)),
            Statement("UPDATE job SET sent = ? WHERE seq = (SELECT MIN(seq) + 5 FROM job)", (b"{}",)),
        )
        await one.importer.drain()
        assert sorted(await one.records()) == [0, 1, 2, 4, 6, 7]
        states = await one.store.read(Statement("SELECT state FROM job ORDER BY seq"))
        assert [state for (state,) in states] == [
            "failed" if number in (3, 5) else "completed" for number in range(8)
        ]
        assert await one.store.read(Statement("SELECT state FROM import_run")) == [("decided",)]


async def test_an_import_waits_until_its_file_is_read(tmp_path: Path) -> None:
    async with house(tmp_path) as one:
        now_ms = int(time.time() * 1000)
        body = some_stream(1)[0]
        await one.store.write(
            exchange_sql.begin_import(TENANT, "imp_1", "fraud", now_ms),
            insert_imported(TENANT, "job_1", "imp_1", now_ms, now_ms, encode(body), None),
        )
        await one.importer.drain()
        assert await one.records() == {}
        await one.store.write(exchange_sql.release_import(TENANT, "imp_1"))
        await one.importer.drain()
        assert sorted(await one.records()) == [0]


@pytest.mark.parametrize("hours", [1, 24 * 100])
async def test_what_is_live_meanwhile_neither_waits_nor_changes_what_is_imported(
    tmp_path: Path, hours: int
) -> None:
    stream = some_stream(60, hours=20)
    alone = await decided([], stream)
    async with house(tmp_path) as one:
        await one.queue("imp_1", stream)
        importing = asyncio.create_task(one.importer.drain())
        late = {**stream[0], "metadata": {"number": -1}, "occurredAt": NOW - hours * 3600}
        count = 0
        begun = Statement("SELECT 1 FROM import_run WHERE base IS NOT NULL")
        while not await one.store.read(begun):  # noqa: ASYNC110 - only the store tells
            await asyncio.sleep(0)
        while not importing.done():
            await one.live([{**late, "metadata": {"number": -1 - count}}])
            count += 1
        await importing
        numbers = [body["metadata"]["number"] for body in stream]
        assert count > 1
        assert answers_of(await one.records(), numbers) == answers_of(alone, numbers)
