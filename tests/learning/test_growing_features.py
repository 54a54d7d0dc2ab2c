"""Features of a young tenant: found with the first label, and again as its events come in."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import steering
from vettance.db.engine import Store, everyone
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.tables import EVENT
from vettance.learning import grow_features
from vettance.learning.change_features import FeatureSteps, find_in_force
from vettance.learning.grow_features import FeatureGrowth
from vettance.models.feature_set import Feature, write_feature_set

TENANT = "ten_1"
SECOND_MS = 1_000
_INSERT = (
    "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
    "VALUES (?, ?, 'events', 1, 1, ?)"
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    migrate(store_path(tmp_path))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as opened:
        yield opened


async def pay(store: Store, first: int, end: int, member: str = "terminalId") -> None:
    """Store payments of terminals that come back, each third one of the same."""
    for number in range(first, end):
        body = b'{"customer": {"externalId": "c%d"}, "metadata": {"amount": 5, "%s": "t%d"}}' % (
            number % 20,
            member.encode(),
            number % 15,
        )
        await store.write(everyone(EVENT, _INSERT, (f"evt_{number}", TENANT, body)))


async def names(store: Store) -> set[str]:
    found = await find_in_force(store, TENANT)
    assert found is not None
    return {one.name for one in found.features.features}


class _Clock:
    """Says what time it is, a second later each time it is asked to go on."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def now_ms() -> _Clock:
    return _Clock()


async def test_features_are_added_as_the_events_of_a_young_tenant_double(
    store: Store, now_ms: _Clock
) -> None:
    await pay(store, 0, 7)
    growth = FeatureGrowth(store, now_ms)
    assert await growth.begin(TENANT)
    first = await names(store)
    assert "terminalId_frauds_30d" not in first
    await pay(store, 7, 13)
    now_ms.now_ms += 2 * SECOND_MS
    await growth.look(TENANT)
    assert await names(store) == first
    await pay(store, 13, 400)
    # Nothing has doubled at the last look, so the next one waits longer.
    now_ms.now_ms += 3 * SECOND_MS
    await growth.look(TENANT)
    assert await names(store) > first
    assert "terminalId_frauds_30d" in await names(store)


async def test_a_label_has_the_events_counted_at_once(store: Store, now_ms: _Clock) -> None:
    await pay(store, 0, 7)
    growth = FeatureGrowth(store, now_ms)
    await growth.begin(TENANT)
    await pay(store, 7, 100)
    await growth.look(TENANT)
    assert "terminalId_frauds_30d" not in await names(store)
    growth.look_soon(TENANT)
    await growth.look(TENANT)
    assert "terminalId_frauds_30d" in await names(store)


async def test_a_clock_that_was_set_back_keeps_nobody_from_being_looked_at(
    store: Store, now_ms: _Clock
) -> None:
    await pay(store, 0, 7)
    growth = FeatureGrowth(store, now_ms)
    await growth.begin(TENANT)
    await pay(store, 7, 100)
    now_ms.now_ms -= 3_600 * SECOND_MS
    await growth.look(TENANT)
    assert "terminalId_frauds_30d" in await names(store)


async def test_the_looks_end_once_a_tenant_is_not_young_any_more(
    store: Store, now_ms: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grow_features, "EVENTS_LOOKED_THROUGH", 60)
    await pay(store, 0, 60)
    growth = FeatureGrowth(store, now_ms)
    await growth.begin(TENANT)
    before = await names(store)
    await pay(store, 60, 200, "merchantId")
    now_ms.now_ms += 100 * SECOND_MS
    await growth.look(TENANT)
    # Nor does another process that begins to watch look; a training does.
    await FeatureGrowth(store, now_ms).look(TENANT)
    assert await names(store) == before
    await growth.grow(TENANT)
    assert "merchantId_frauds_30d" in await names(store)
    assert before < await names(store)


async def test_a_set_that_somebody_has_put_stays_as_it_is(store: Store, now_ms: _Clock) -> None:
    await pay(store, 0, 7)
    growth = FeatureGrowth(store, now_ms)
    await growth.begin(TENANT)
    own = write_feature_set([Feature("hour", "hour", "time", "hour")])
    await FeatureSteps(store, TENANT, "ana", now_ms).put("hour: hour\n", own, "Only the hour", over=1)
    await pay(store, 7, 400)
    await growth.grow(TENANT)
    assert await names(store) == {"hour"}


async def test_a_tenant_without_events_has_no_features(store: Store, now_ms: _Clock) -> None:
    assert not await FeatureGrowth(store, now_ms).begin(TENANT)
    assert await find_in_force(store, TENANT) is None


def test_a_tenant_that_labels_its_first_events_gets_the_features_of_the_later_ones(service: Service) -> None:
    caller = steering(Caller(service, *service.new_tenant("Early")))

    def decided(number: int) -> str:
        metadata = {"amount": 5 + number % 7, "currency": "EUR", "terminalId": f"t{number % 15}"}
        body = {
            "eventName": "payment.authorized",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": f"c{number % 20}"},
            "metadata": metadata,
        }
        answer = caller.post("/api/v1/decisions/evaluate", body)
        return str(answer.json["correlationIds"]["eventId"])

    def has(name: str) -> Callable[[], bool]:
        def is_there() -> bool:
            shown = caller.get("/api/v1/models/features")
            return shown.status == 200 and name in {one["name"] for one in shown.json["features"]}

        return is_there

    events = [decided(number) for number in range(7)]
    assert caller.post(f"/api/v1/feedback/event/{events[0]}", {"label": "FRAUD"}).status == 201
    service.wait_for(has("customer_frauds_30d"), seconds=20)
    assert not has("terminalId_frauds_30d")()
    for number in range(7, 400):
        decided(number)
    service.wait_for(has("terminalId_frauds_30d"), seconds=30)
    versions = caller.get("/api/v1/models/features/versions").json["data"]
    assert {one["author"] for one in versions} == {"vettance"}
    assert all(change["kind"] == "added" for change in versions[0]["changes"])
