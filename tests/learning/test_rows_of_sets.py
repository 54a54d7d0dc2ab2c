"""What training reads of the log: by which feature sets, how much a hold-out counts, and when labels end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.live import ENGINE
from vettance.clock import DAY_MS
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome
from vettance.decisions.sql import insert_decision
from vettance.events.event import Category, Event, EventSource
from vettance.events.sql import insert_event
from vettance.feedback.find_maturity import find_label_timing
from vettance.feedback.label_change import LabelChange
from vettance.feedback.label_sql import insert_label
from vettance.learning.change_features import FeatureSteps
from vettance.learning.training_process import collect
from vettance.models.feature_set import Feature, FeatureSet, set_of, write_feature_set
from vettance.rules.sql import DECIDING
from vettance.tenants.sql import insert_tenant, update_tenant
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_1", name="One")
NOW_MS = 1_800_000_000_000
RULES = """
name: explored
explore: {percent: 4, below: 100}
thresholds: {review: 40, block: 70}
rules:
  - {id: some, name: Some, explanation: Some, when: metadata.amount > 1, score: 50, reason: SOME}
  - {id: more, name: More, explanation: More, when: metadata.amount > 2, score: 40, reason: MORE}
"""


def one_of(name: str) -> Feature:
    return Feature(name, f"{name} + 0" if name == "weekday" else name, "time", name)


HOUR, DAY, LENGTH = one_of("hour"), one_of("weekday"), one_of("number(metadata.items)")
EARLY, MIDDLE, LATE = set_of([HOUR, DAY]), set_of([DAY, HOUR, LENGTH]), set_of([LENGTH, HOUR])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if ENGINE == "postgres":
        from tests.databases import lasting_database

        made = await PostgresStore.open(lasting_database())
    else:
        made = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await made.migrate()
    await made.write(
        insert_tenant(TENANT, 1), DECIDING.insert(TENANT.id, 1, RULES, "Explored", NOW_MS, RULES)
    )
    yield made
    await made.close()


async def put(store: Store, features: FeatureSet) -> None:
    await FeatureSteps(store, TENANT.id, "ana").put(
        "", write_feature_set(features.features), "Other features"
    )


async def decide(
    store: Store,
    event_id: str,
    features: FeatureSet,
    values: tuple[float | None, ...],
    *,
    fraud: bool | None = None,
    days_ago: float = 0,
    fired: list[int] | None = None,
) -> None:
    """Store a decision with the features of a set; where rules fired, it was held out of what they say."""
    decision = Decision(
        outcome=Outcome.ALLOW,
        score=0,
        level="low",
        reasons=(),
        actions=(),
        ruleset_version=1,
        rules_evaluated=2,
    )
    record = DecisionRecordData(
        ruleset_version=1,
        outcome=Outcome.ALLOW,
        score=0,
        level="low",
        facts=(),
        answers=(),
        inexact=0,
        fired=fired or [],
        failed=[],
        lists=[],
        request_id="r",
        processing_ms=1.0,
        held_out=bool(fired),
        features=values,
        feature_set=features.digest,
    )
    at_ms = NOW_MS - int(days_ago * DAY_MS)
    event = Event(name="pay", category=Category.TRANSACTION, received_at_ms=at_ms, occurred_at_ms=at_ms)
    writes = [
        insert_event(TENANT.id, event_id, EventSource.EVENTS, event, b"{}"),
        insert_decision(TENANT.id, event_id, event, decision, record, at_ms),
    ]
    if fraud is not None:
        change = LabelChange(f"{event_id}.0", event_id, fraud, 1, NOW_MS)
        writes.append(insert_label(TENANT.id, change, NOW_MS))
    await store.write(*writes)


async def test_too_few_frauds_of_the_newest_features_are_filled_up_from_the_sets_before(store: Store) -> None:
    await put(store, EARLY)
    await decide(store, "evt_early", EARLY, (3.0, 1.0), fraud=True)
    await put(store, MIDDLE)
    for number in range(3):
        await decide(store, f"evt_middle{number}", MIDDLE, (2.0, 4.0, None), fraud=number < 2)
    await put(store, LATE)
    await decide(store, "evt_late", LATE, (7.0, 5.0), fraud=True)

    enough, taken = await collect(store, TENANT.id, LATE, 1)
    assert [row.fraud for row in enough.rows()] == [True]
    assert taken.features == LATE

    # The set before has two more, and both features; in it they stand in other places.
    rows, taken = await collect(store, TENANT.id, LATE, 3)
    assert taken.features == LATE
    assert set(taken.places) == {LATE.digest, MIDDLE.digest}
    assert [row.fraud for row in rows.rows()] == [True, True, False, True]
    assert [memoryview(row.features).cast("d")[1] for row in rows.rows()] == [4.0, 4.0, 4.0, 5.0]

    # The first set lacks one of them: a model is made from what all of them have.
    rows, taken = await collect(store, TENANT.id, LATE, 4)
    assert [one.name for one in taken.features.features] == ["hour"]
    assert [memoryview(row.features).cast("d").tolist() for row in rows.rows()] == [
        [3.0],
        [4.0],
        [4.0],
        [4.0],
        [5.0],
    ]


async def test_a_set_that_has_nothing_in_common_is_not_taken(store: Store) -> None:
    only_day = set_of([DAY])
    await put(store, only_day)
    await decide(store, "evt_1", only_day, (1.0,), fraud=True)
    await put(store, LATE)
    await decide(store, "evt_2", LATE, (1.0, 2.0), fraud=True)
    rows, taken = await collect(store, TENANT.id, LATE, 50)
    assert taken.features == LATE
    assert len(rows.rows()) == 1


async def test_a_hold_out_counts_for_what_would_have_been_denied(store: Store) -> None:
    await put(store, EARLY)
    await decide(store, "evt_let", EARLY, (1.0, 1.0), fraud=False)
    await decide(store, "evt_reviewed", EARLY, (1.0, 1.0), fraud=True, fired=[0])
    await decide(store, "evt_denied", EARLY, (1.0, 1.0), fraud=True, fired=[0, 1])
    rows, _ = await collect(store, TENANT.id, EARLY, 1)
    # Four per cent were let through. The score is what the rules gave, not what it was lowered to.
    assert [(row.weight, row.points) for row in rows.rows()] == [(1, 0), (1, 50), (25, 90)]


async def test_without_a_label_an_event_counts_once_it_is_as_old_as_the_tenant_says(store: Store) -> None:
    await put(store, EARLY)
    for number in range(3):
        await decide(store, f"evt_labelled{number}", EARLY, (1.0, 1.0), fraud=number == 0, days_ago=3)
    for days in (13, 11, 1):
        await decide(store, f"evt_{days}", EARLY, (1.0, 1.0), days_ago=days)
    await decide(store, "evt_newest", EARLY, (1.0, 1.0))
    # Labels take three days here, so four times that are waited for.
    assert (await find_label_timing(store, TENANT.id)).mature_ms == NOW_MS - 12 * DAY_MS
    rows, _ = await collect(store, TENANT.id, EARLY, 1)
    assert (len(rows.rows()), rows.timing.maturity_ms) == (4, 12 * DAY_MS)
    await store.write(update_tenant(Tenant(id=TENANT.id, name="One", label_maturity=10)))
    assert (await find_label_timing(store, TENANT.id)).mature_ms == NOW_MS - 10 * DAY_MS
    rows, _ = await collect(store, TENANT.id, EARLY, 1)
    assert (len(rows.rows()), rows.timing.maturity_ms) == (5, 10 * DAY_MS)
