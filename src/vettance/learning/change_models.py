"""The steps that change a tenant's models: each in one commit, seen by every process within seconds."""

from typing import Any

import msgspec

from vettance.db.engine import Store
from vettance.errors import Conflict, NotFound
from vettance.models import sql
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel
from vettance.rules.sql import DECIDING
from vettance.tenants.sql import note_change


async def find_setting(store: Store, tenant: str) -> ModelSetting:
    """Return how a tenant's models are used; what holds from the start where nothing was set."""
    rows = await store.read(sql.select_setting(tenant))
    return sql.setting_of(rows[0]) if rows else ModelSetting(tenant)


async def save_features(store: Store, tenant: str, document: str, now_ms: int) -> None:
    """Have the features of a document be recorded from now on; the model before them ends to serve."""
    setting = await find_setting(store, tenant)
    changed = msgspec.structs.replace(setting, features=document, champion=None, previous=None)
    await store.write(
        sql.save_setting(changed),
        note_change(sql.AREA, tenant, "features", now_ms),
        note_change(DECIDING.area, tenant, "features", now_ms),
    )


async def save_failure(store: Store, setting: ModelSetting, failure: str) -> None:
    """Note why a training gave no model."""
    changed = msgspec.structs.replace(setting, wanted=False, failure=failure)
    await store.write(sql.save_setting(changed))


async def enter_model(store: Store, setting: ModelSetting, made: dict[str, Any], now_ms: int) -> int:
    """Store a trained model, and put it in service where it is better; returns its version."""
    tenant = setting.tenant
    rows = await store.read(sql.select_models(tenant))
    version = rows[0][0] + 1 if rows else 1
    card = msgspec.json.encode({"version": version, **made["card"]}).decode()
    setting = msgspec.structs.replace(setting, failure=None)
    if made["isBetter"]:
        setting = msgspec.structs.replace(setting, champion=version, previous=setting.champion)
    await store.write(
        sql.insert_model(
            tenant, StoredModel(version, made["digest"], setting.features, made["body"], card, now_ms)
        ),
        sql.save_setting(setting),
        sql.forget_older(tenant, version - sql.KEPT + 1, setting.champion, setting.previous),
        note_change(sql.AREA, tenant, str(version), now_ms),
    )
    return version


async def request_training(store: Store, tenant: str) -> ModelSetting:
    """Ask for a training; the process that leads begins it within seconds."""
    setting = msgspec.structs.replace(await find_setting(store, tenant), wanted=True)
    await store.write(sql.save_setting(setting))
    return setting


async def promote(store: Store, tenant: str, version: int, now_ms: int) -> ModelSetting:
    """Put a version in service, whatever was measured of it. Raises `NotFound`, or `Conflict`."""
    rows = await store.read(sql.select_model(tenant, version))
    if not rows:
        raise NotFound
    setting = await find_setting(store, tenant)
    if StoredModel(*rows[0]).features != setting.features:
        raise Conflict("This model was made from other features than those in use.", "other_features")
    previous = setting.previous if setting.champion == version else setting.champion
    return await _save(store, setting, now_ms, champion=version, previous=previous)


async def roll_back(store: Store, tenant: str, now_ms: int) -> ModelSetting:
    """Put back in service what served before the champion: a model, or the rules alone."""
    setting = await find_setting(store, tenant)
    if setting.champion is None:
        raise Conflict("No model is in service.", "no_model")
    return await _save(store, setting, now_ms, champion=setting.previous, previous=None)


async def set_mode(
    store: Store, tenant: str, now_ms: int, *, mode: ModelMode | None = None, may_block: bool | None = None
) -> ModelSetting:
    """Set what the model may do. `off` keeps the champion."""
    setting = await find_setting(store, tenant)
    changes: dict[str, Any] = {}
    if mode is not None:
        changes["mode"] = mode
    if may_block is not None:
        changes["may_block"] = may_block
    return await _save(store, setting, now_ms, **changes)


async def _save(store: Store, setting: ModelSetting, now_ms: int, **changes: Any) -> ModelSetting:
    changed = msgspec.structs.replace(setting, **changes)
    statements = [sql.save_setting(changed), note_change(sql.AREA, setting.tenant, "setting", now_ms)]
    if ModelMode.OFF in (setting.mode, changed.mode) and setting.mode is not changed.mode:
        # With the mode off, features are computed no more.
        statements.append(note_change(DECIDING.area, setting.tenant, "features", now_ms))
    await store.write(*statements)
    return changed
