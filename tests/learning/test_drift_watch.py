"""The weekly measurement of drift: when it is due, what it keeps, and who is told."""

import math
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tests.live import ENGINE
from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome
from vettance.decisions.sql import insert_decision
from vettance.events.event import Category, Event, EventSource
from vettance.events.sql import insert_event
from vettance.ids import IdSource
from vettance.learning.drift_sql import (
    count_drifts,
    count_models,
    select_drifting,
    select_drifts,
    select_untrained,
)
from vettance.learning.measure_effect import effect_of
from vettance.learning.sql import select_newest_labels
from vettance.learning.training_rows import NEEDED, TooFewLabels
from vettance.learning.watch_drift import DriftWatcher, drift_of
from vettance.models.feature_set import Feature, read_feature_set, write_feature_set
from vettance.models.model_score import ModelResult
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel, insert_model, save_setting
from vettance.ops.doctor.check import DoctorContext, DoctorLevel
from vettance.ops.doctor.model_checks import check_models
from vettance.rules.ruleset import RuleSet
from vettance.settings.settings import read_settings
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant

TENANT = "ten_1"
NOW_MS = 1_800_000_000_000
FEATURES = write_feature_set([Feature("hour", "hour", "time", "hour")])
QUARTERS = {"bounds": [0.25, 0.5, 0.75], "shares": [0.25, 0.25, 0.25, 0.25], "unknown": 0.0}
CARD = msgspec.json.encode({"distribution": {"probability": QUARTERS, "hour": QUARTERS}}).decode()


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
        insert_tenant(Tenant(id=TENANT, name="One"), 1),
        save_setting(ModelSetting(TENANT, features=FEATURES, champion=2)),
        *(insert_model(TENANT, StoredModel(n, "d", FEATURES, "{}", CARD, NOW_MS), 0.1 * n) for n in (1, 2)),
    )
    yield made
    await made.close()


async def decide(store: Store, count: int, version: int, hour: float | None = None) -> None:
    """Store decisions by a version whose values are spread as in training, but for `hour` where given."""
    ids, digest = IdSource(), read_feature_set(FEATURES).digest
    decision = Decision(
        outcome=Outcome.ALLOW,
        score=0,
        level="LOW",
        reasons=(),
        actions=(),
        ruleset_version=1,
        rules_evaluated=0,
    )
    writes = []
    for number in range(count):
        share = (number % 100 + 0.5) / 100
        record = DecisionRecordData(
            ruleset_version=1,
            outcome=Outcome.ALLOW,
            score=0,
            level="LOW",
            facts=(),
            answers=(),
            inexact=0,
            fired=[],
            failed=[],
            lists=[],
            request_id="r",
            processing_ms=1.0,
            features=(share if hour is None else hour,),
            feature_set=digest,
            model=ModelResult(version, ModelMode.SHADOW, may_block=False, log_odds=_log_odds(share)),
        )
        event = Event(
            name="login", category=Category.AUTHENTICATION, received_at_ms=NOW_MS, occurred_at_ms=NOW_MS
        )
        event_id = ids.make("evt", NOW_MS)
        writes.append(insert_event(TENANT, event_id, EventSource.EVENTS, event, b"{}"))
        writes.append(insert_decision(TENANT, event_id, event, decision, record, NOW_MS))
    await store.write(*writes)


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))


async def kept(store: Store) -> list[tuple[int, int, int]]:
    return [tuple(row[:3]) for row in await store.read(select_drifts(TENANT, 10))]


async def test_a_model_is_measured_once_it_has_decided_enough_and_every_week(store: Store) -> None:
    watcher = DriftWatcher(store)
    await decide(store, 300, 1)
    await decide(store, 400, 2)
    assert await watcher.look(TENANT, 2, NOW_MS) is None  # The first one's decisions do not count.
    await decide(store, 100, 2)
    assert await watcher.look(TENANT, 2, NOW_MS + HOUR_MS - 1) is None  # It looks once an hour.
    found = await watcher.look(TENANT, 2, NOW_MS + HOUR_MS)
    assert found is not None
    assert (found.rows, found.warned) == (500, [])
    assert found.largest < 0.01
    assert await watcher.look(TENANT, 2, NOW_MS + 7 * DAY_MS) is None
    assert await watcher.look(TENANT, 2, NOW_MS + 8 * DAY_MS) is not None
    assert await kept(store) == [(NOW_MS + 8 * DAY_MS, 2, 500), (NOW_MS + HOUR_MS, 2, 500)]
    await watcher.look(TENANT, 2, NOW_MS + 300 * DAY_MS)
    assert len(await kept(store)) == 1


async def test_what_moved_is_warned_of_everywhere(store: Store, tmp_path: Path) -> None:
    await decide(store, 600, 2, hour=0.9)
    found = await DriftWatcher(store).look(TENANT, 2, NOW_MS)
    assert found is not None
    assert [one.name for one in found.warned] == ["hour"]
    assert (await store.read(count_models()))[0][0] == 1
    assert (await store.read(count_models()))[0][2] == pytest.approx(0.2)
    largest, drifting = (await store.read(count_drifts()))[0]
    assert (largest, drifting) == (found.largest, 1)
    assert [row[0] for row in await store.read(select_drifting(10))] == [TENANT]
    if ENGINE != "postgres":
        settings = read_settings({}, data=str(tmp_path))
        patient = DoctorContext(settings=settings, host="127.0.0.1", port=0, environ={}, now_ms=NOW_MS)
        (finding,) = check_models(patient)
        assert finding.level is DoctorLevel.WARNING
        assert TENANT in finding.found
    # Another model in service has not been measured yet.
    await store.write(save_setting(ModelSetting(TENANT, features=FEATURES, champion=1)))
    assert await store.read(select_drifting(10)) == []


@pytest.mark.skipif(ENGINE == "postgres", reason="the doctor is asked about a file")
async def test_too_few_labels_are_no_fault_of_a_training(store: Store, tmp_path: Path) -> None:
    few = str(TooFewLabels(3, "labelled frauds were decided since features are kept", 50))
    for tenant, failure in (("ten_a", few), ("ten_b", "The training could not be done (MemoryError).")):
        await store.write(save_setting(ModelSetting(tenant, failure=failure)))
    assert [row[0] for row in await store.read(select_untrained(10, NEEDED))] == ["ten_b", "ten_a"]
    settings = read_settings({}, data=str(tmp_path))
    patient = DoctorContext(settings=settings, host="127.0.0.1", port=0, environ={}, now_ms=NOW_MS)
    failed, early = check_models(patient)
    assert (failed.level, early.level) == (DoctorLevel.WARNING, DoctorLevel.OK)
    assert (
        "ten_a has no newer model yet: 3 labelled frauds were decided since features are kept, 50 are needed"
        in early.found
    )


async def test_nothing_is_warned_of_over_few_decisions(store: Store) -> None:
    await decide(store, 120, 2, hour=0.9)
    model = StoredModel(2, "d", FEATURES, "{}", CARD, NOW_MS)
    found = await drift_of(store, TENANT, model, NOW_MS)
    assert (found.rows, found.warned) == (120, [])
    assert found.largest > 1
    assert (await drift_of(store, TENANT, model, NOW_MS, 50)).rows == 50


async def test_the_effect_is_what_the_model_would_change_over_the_rules_alone(store: Store) -> None:
    await decide(store, 200, 2)
    await decide(store, 100, 1)
    rows = await store.read(select_newest_labels(TENANT, 10))
    assert rows == []

    async def ruleset_of(_version: int) -> RuleSet:
        return RuleSet(name="None")

    setting = ModelSetting(TENANT, may_block=True)
    found = await effect_of(store, setting, 2, ruleset_of)
    # Probabilities are spread evenly: near .10 the score rounds to 60 (review), near .50 to 85 (block).
    assert (found.rows, found.load, found.changed) == (200, 0, found.to_review + found.to_deny)
    assert (found.to_review, found.to_deny) == (78, 102)
    assert found.changed_share == pytest.approx(0.9)
    shy = await effect_of(store, ModelSetting(TENANT), 2, ruleset_of)
    assert (shy.to_review, shy.to_deny) == (180, 0)
