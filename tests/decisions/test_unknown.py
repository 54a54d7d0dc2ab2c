"""A part of an event that cannot be computed: the decision is made without it, and says so."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from vettance.db.sqlite import SqliteStore, store_path
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.velocity_rebuild import VelocityRebuilder
from vettance.events.event import Event, EventSource, read_event
from vettance.history.api import HistoryDoors
from vettance.history.decision_search import DecisionFinder
from vettance.history.entity_links import EntityLinker
from vettance.history.explain import Explainer
from vettance.history.statistics import DecisionCounter
from vettance.ids import IdSource
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Field, Schema, Type
from vettance.rules.sql import DECIDING
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.sync.snapshot_store import SnapshotStore
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots
from vettance.web.routing import NO_KEY, Call
from vettance.wire.payload import decode, encode

TENANT = "ten_" + "1" * 32
DOCUMENT = """
name: test
rules:
  - {id: amount, name: Amount, score: 60, reason: A, explanation: E, when: 'amount > 5'}
  - {id: odd, name: Odd, score: 60, reason: B, explanation: E, when: 'odd > 1'}
  - {id: no-odd, name: No odd, score: 5, reason: C, explanation: E, when: 'missing(odd)'}
  - {id: often, name: Often, score: 1, reason: D, explanation: E, when: 'sum(odd, by=ip, within="1h") > 2'}
"""


def read_odd(event: Event) -> Any:
    """A field with a bug: it cannot be read of an event that says so."""
    return 1 / event.metadata["odd"]


SCHEMA = Schema(
    [
        Field("amount", Type.NUMBER, lambda event: event.metadata.get("amount"), ""),
        Field("odd", Type.NUMBER, read_odd, ""),
        Field("ip", Type.TEXT, lambda event: event.ip, "", "ip"),
    ]
)


class House:
    """Everything that decides and explains, on a real store, by rules that read a field with a bug."""

    def __init__(self, store: SqliteStore, data: Path) -> None:
        velocity = MemoryVelocity()
        self.evaluator = Evaluator(store, velocity, IdSource())
        cache = RuleCache(lambda document: compile_document(document, SCHEMA))
        preserver = VelocitySnapshots(store, velocity, self.evaluator, SnapshotStore(data / "memory"))
        self.rebuilder = VelocityRebuilder(store, velocity, self.evaluator, cache, preserver.restore)
        finder = DecisionFinder(store)
        explainer = Explainer(
            store, self.evaluator, cache, EntityLinker(store, finder), ConditionReader(SCHEMA)
        )
        self.doors = HistoryDoors(finder, DecisionCounter(store, finder), explainer)

    async def decide(self, **metadata: float) -> Any:
        """Decide an event and return its record as the API answers it."""
        body = {"eventName": "x", "ip": "1.2.3.4", "metadata": metadata}
        sent, now_ms = encode(body), time.time_ns() // 1_000_000
        event = read_event(body, sent, now_ms)
        done = await self.evaluator.evaluate(
            TENANT, event, sent, EventSource.EVENTS, "r", time.perf_counter_ns()
        )
        call = Call("r", {"id": done.id}, b"", {}, b"", now_ms, Tenant(id=TENANT, name="One"), NO_KEY)
        return decode(encode((await self.doors.decision(call)).payload))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(store_path(tmp_path), writer="thread")
    await store.migrate()
    await store.write(
        tenants_sql.insert_tenant(Tenant(id=TENANT, name="One"), 0),
        DECIDING.insert(TENANT, 1, DOCUMENT, "", 0),
    )
    yield store
    await store.close()


async def test_what_cannot_be_computed_counts_as_missing_and_is_recorded(
    store: SqliteStore, tmp_path: Path
) -> None:
    house = House(store, tmp_path)
    await house.rebuilder.start()
    whole = await house.decide(amount=9, odd=0.5)
    part = await house.decide(amount=9, odd=0)
    assert "unknown" not in whole["outputs"]
    assert part["outputs"]["unknown"] == [{"name": "odd", "error": "ZeroDivisionError: division by zero"}]
    assert part["inputs"]["features"]["odd"] is None
    fired = [[rule["ruleId"] for rule in one["outputs"]["rules"] if rule["matched"]] for one in (whole, part)]
    assert fired == [["amount", "odd"], ["amount", "no-odd"]]


async def test_a_restart_remembers_it_as_it_was(store: SqliteStore, tmp_path: Path) -> None:
    house = House(store, tmp_path)
    await house.rebuilder.start()
    for odd in (0.5, 0, 0.5):
        await house.decide(amount=1, odd=odd)
    house = House(store, tmp_path)
    assert await house.rebuilder.start() == 3
    record = await house.decide(amount=1, odd=0.5)
    assert record["inputs"]["features"]['sum(odd, by=ip, within="1h")'] == 4.0
