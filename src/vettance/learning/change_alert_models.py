"""The steps that change how a tenant's alerts are ordered: each in one commit, in effect within seconds."""

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from vettance.db.engine import Clash, Lost, Store
from vettance.errors import Conflict, NotFound
from vettance.learning import alert_sql
from vettance.learning.alert_sql import AlertModelSetting
from vettance.learning.change_models import TRIES, changed_meanwhile

Change = Callable[[AlertModelSetting], AlertModelSetting]


async def find_alert_setting(store: Store, tenant: str) -> AlertModelSetting:
    """Return how a tenant's alerts are ordered; what holds from the start where nothing was set."""
    rows = await store.read(alert_sql.select_alert_setting(tenant))
    return alert_sql.alert_setting_of(rows[0]) if rows else AlertModelSetting(tenant)


async def change_alert_setting(store: Store, tenant: str, change: Change) -> AlertModelSetting:
    """Change how a tenant's alerts are ordered. Raises `Conflict` where others go on changing it."""
    for _ in range(TRIES):
        known = await find_alert_setting(store, tenant)
        after = change(known)
        if after == known:
            return known
        with contextlib.suppress(Clash, Lost):
            await store.write(*alert_sql.demand_alert_setting(known), alert_sql.save_alert_setting(after))
            return after
    raise changed_meanwhile()


async def promote_alert_model(store: Store, tenant: str, version: int) -> AlertModelSetting:
    """Have a version order the alerts. Raises `NotFound`."""
    if not await store.read(alert_sql.select_alert_model(tenant, version)):
        raise NotFound
    return await change_alert_setting(store, tenant, lambda known: _with_champion(known, version))


async def roll_back_alert_model(store: Store, tenant: str) -> AlertModelSetting:
    """Have what did so before order the alerts: a model, or none. Raises `Conflict`."""

    def change(known: AlertModelSetting) -> AlertModelSetting:
        if known.champion is None:
            raise Conflict("No model is in service.", "no_model")
        return msgspec.structs.replace(known, champion=known.previous, previous=None)

    return await change_alert_setting(store, tenant, change)


def _with_champion(known: AlertModelSetting, version: int) -> AlertModelSetting:
    if known.champion == version:
        return known
    return msgspec.structs.replace(known, champion=version, previous=known.champion)


def after_alert_training(
    known: AlertModelSetting,
    setting: AlertModelSetting,
    trained_matches: int,
    now_ms: int,
    failure: str | None = None,
) -> AlertModelSetting:
    """Note a training that began with `setting`. One that was asked for meanwhile is still to be done."""
    return msgspec.structs.replace(
        known,
        wanted=known.wanted and not setting.wanted,
        failure=failure,
        trained_matches=trained_matches,
        trained_at_ms=now_ms,
    )


async def enter_alert_model(
    store: Store, setting: AlertModelSetting, made: dict[str, Any], trained_matches: int, now_ms: int
) -> int:
    """Store a trained model, have it order the alerts where it is better, and return its version.

    `setting` is as it was when the training began.
    """
    tenant = setting.tenant
    for _ in range(TRIES):
        rows = await store.read(alert_sql.select_alert_models(tenant))
        version = rows[0][0] + 1 if rows else 1
        known = await find_alert_setting(store, tenant)
        after = after_alert_training(known, setting, trained_matches, now_ms)
        if made["isBetter"]:
            after = _with_champion(after, version)
        members = {"version": version, **made["card"]}
        card = msgspec.json.encode(members).decode()
        oldest = version - alert_sql.KEPT + 1
        with contextlib.suppress(Clash, Lost):
            await store.write(
                *alert_sql.demand_alert_setting(known),
                alert_sql.insert_alert_model(tenant, version, made["digest"], made["body"], card, now_ms),
                alert_sql.save_alert_setting(after),
                alert_sql.forget_older_alert_models(tenant, oldest, after.champion, after.previous),
            )
            return version
    raise changed_meanwhile()
