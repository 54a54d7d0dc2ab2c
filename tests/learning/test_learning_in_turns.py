"""What learning does for one tenant keeps no other waiting: alerts are ordered anew in pieces, models are
trained while the others are watched."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vettance.db.engine import Store, everyone
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.tables import AML_ALERT, EVENT
from vettance.learning import alert_sql, keep_alert_order, keep_learning
from vettance.learning.alert_sql import AlertModelSetting
from vettance.learning.change_models import find_setting
from vettance.learning.keep_alert_order import AlertOrderKeeper
from vettance.learning.keep_learning import ModelKeeper
from vettance.models.sql import ModelSetting, save_setting, select_features

_ALERT = (
    "INSERT INTO aml_alert (id, tenant, case_id, customer, origin, typology, rule_id, severity, summary, "
    "figures, state, events, created_at_ms, last_at_ms, priority) "
    "VALUES (?, ?, 'cas_1', 'c', 'event', 't', 'r', 'HIGH', 's', '{}', 'OPEN', 1, 1, 1, 500)"
)

_EVENT = (
    "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
    "VALUES (?, ?, 'events', 1, 1, ?)"
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    migrate(store_path(tmp_path))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as opened:
        yield opened


async def known_priorities(store: Store, tenant: str) -> int:
    text = "SELECT COUNT(*) FROM aml_alert WHERE tenant = ? AND priority = 500"
    return int((await store.read(everyone(AML_ALERT, text, (tenant,))))[0][0])


async def features_of(store: Store, tenant: str) -> str:
    return str((await store.read(select_features(tenant)))[0][0])


async def test_a_tenant_with_many_open_alerts_keeps_no_other_from_its_order(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_alert_order, "_ROWS", 3)
    piece = 3 * keep_alert_order._PIECES_MAX
    for tenant, count in (("ten_a", 2 * piece + 1), ("ten_b", 1)):
        for number in range(count):
            await store.write(everyone(AML_ALERT, _ALERT, (f"alr_{tenant}_{number:04}", tenant)))
        # The model that ordered them was taken back: none has a priority any more.
        await store.write(alert_sql.save_alert_setting(AlertModelSetting(tenant, ordered_by=1)))
    keeper = AlertOrderKeeper(store, tmp_path)
    await keeper.order_all()
    assert await known_priorities(store, "ten_b") == 0
    assert await known_priorities(store, "ten_a") == piece + 1
    await keeper.order_all()
    assert await known_priorities(store, "ten_a") == 1
    await keeper.order_all()
    assert await known_priorities(store, "ten_a") == 0
    settings = [
        alert_sql.alert_setting_of(row) for row in await store.read(alert_sql.select_alert_settings())
    ]
    assert [one.ordered_by for one in settings] == [0, 0]


async def test_another_version_in_service_begins_the_order_anew(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_alert_order, "_ROWS", 1)
    for number in range(2 * keep_alert_order._PIECES_MAX):
        await store.write(everyone(AML_ALERT, _ALERT, (f"alr_{number:04}", "ten_a")))
    keeper = AlertOrderKeeper(store, tmp_path)
    keeper._anew["ten_a"] = 7, "alr_9999"  # As far as another version had come.
    await store.write(alert_sql.save_alert_setting(AlertModelSetting("ten_a", ordered_by=1)))
    await keeper.order_all()
    assert await known_priorities(store, "ten_a") == keep_alert_order._PIECES_MAX


async def test_a_training_of_one_tenant_keeps_no_other_from_being_watched(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that trains never ends; the features of the tenant after it are found meanwhile."""
    begun = asyncio.Event()

    async def never_ending(*_: object) -> dict[str, object]:
        begun.set()
        return await asyncio.Future()

    monkeypatch.setattr(keep_learning, "can_train", lambda: True)
    monkeypatch.setattr(keep_learning, "run_training", never_ending)
    await store.write(save_setting(ModelSetting("ten_a", features="features: []", wanted=True)))
    running = asyncio.create_task(ModelKeeper(store, tmp_path).run())
    try:
        await asyncio.wait_for(begun.wait(), 10)
        body = b'{"customer": {"externalId": "c"}}'
        await store.write(everyone(EVENT, _EVENT, ("evt_1", "ten_b", body)))
        await store.write(save_setting(ModelSetting("ten_b")))
        async with asyncio.timeout(10):
            while not await features_of(store, "ten_b"):  # noqa: ASYNC110 - short and bounded
                await asyncio.sleep(0.05)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_training_that_was_asked_for_without_any_events_is_answered(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_learning, "can_train", lambda: True)
    await store.write(save_setting(ModelSetting("ten_a", wanted=True)))
    await ModelKeeper(store, tmp_path).look()
    found = await find_setting(store, "ten_a")
    assert (found.wanted, found.failure) == (False, "the tenant has no events yet")
