"""The steps that change a tenant's models: each in one commit, seen by every process within seconds."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource
from vettance.learning import model_change_sql
from vettance.learning.model_change import ChangeState, ModelChange, ProposedChange
from vettance.models import sql
from vettance.models.feature_set import has_features
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel
from vettance.rules.sql import DECIDING
from vettance.rules.version import SERVICE
from vettance.tenants import sql as tenants_sql
from vettance.tenants.sql import note_change

#: Times that a step is tried again when somebody else changed what it depends on.
TRIES: Final = 5


async def find_setting(store: Store, tenant: str) -> ModelSetting:
    """Return how a tenant's models are used; what holds from the start where nothing was set."""
    rows = await store.read(sql.select_setting(tenant))
    return sql.setting_of(rows[0]) if rows else ModelSetting(tenant)


async def save_failure(store: Store, setting: ModelSetting, failure: str) -> None:
    """Note why a training gave no model, and when it was; what people have set meanwhile stays.

    `setting` is as it was when the training began, see `_after_training`.
    """
    await _change(store, setting.tenant, lambda known: _after_training(known, setting, failure))


def _after_training(known: ModelSetting, setting: ModelSetting, failure: str | None) -> ModelSetting:
    """Note a training that began with `setting`. One that was asked for meanwhile is still to be done."""
    return msgspec.structs.replace(
        known,
        wanted=known.wanted and not setting.wanted,
        failure=failure,
        trained_frauds=setting.trained_frauds,
        trained_at_ms=setting.trained_at_ms,
    )


async def _change(store: Store, tenant: str, change: Callable[[ModelSetting], ModelSetting]) -> ModelSetting:
    for _ in range(TRIES):
        known = await find_setting(store, tenant)
        changed = change(known)
        with contextlib.suppress(Lost):
            await store.write(*sql.demand_setting(known), sql.save_setting(changed))
            return changed
    raise changed_meanwhile()


async def enter_model(
    store: Store, setting: ModelSetting, made: dict[str, Any], ids: IdSource, now_ms: int
) -> int:
    """Store a trained model, and put it in service where it is better; returns its version.

    `setting` is as it was when the training began; its features are those that it was trained with, whatever
    is in force by now.

    Where the tenant's rules need approval, an active model is replaced only once somebody approves: until
    then the new one is proposed. What people have set since `setting` was read stays.
    """
    tenant = setting.tenant
    for _ in range(TRIES):
        rows = await store.read(sql.select_models(tenant))
        version = rows[0][0] + 1 if rows else 1
        known = await find_setting(store, tenant)
        after = _after_training(known, setting, failure=None)
        demand, needs_approval = await find_approval(store, tenant)
        proposed: list[Statement] = []
        if made["isBetter"] and known.mode is ModelMode.ACTIVE and needs_approval:
            proposed = _propose(tenant, version, ids, now_ms)
        elif made["isBetter"]:
            after = msgspec.structs.replace(after, champion=version, previous=known.champion)
        promoted = after.champion == version
        members = {"version": version, **made["card"], "promoted": promoted}
        card = msgspec.json.encode(members).decode()
        stored = StoredModel(version, made["digest"], setting.features, made["body"], card, now_ms)
        with contextlib.suppress(Clash, Lost):
            await store.write(
                demand,
                *sql.demand_setting(known),
                sql.insert_model(tenant, stored, members.get("averagePrecision")),
                sql.save_setting(after),
                *proposed,
                sql.forget_older(tenant, version - sql.KEPT + 1, after.champion, after.previous),
                note_change(sql.AREA, tenant, str(version), now_ms),
                *await recorded_anew(store, known, after, now_ms, {version: setting.features}),
            )
            return version
    raise changed_meanwhile()


def _propose(tenant: str, version: int, ids: IdSource, now_ms: int) -> list[Statement]:
    """Return what proposes a version in the name of the service, in place of what it proposed before."""
    one = ProposedChange(
        id=ids.make("mch", now_ms),
        change=ModelChange(champion=version),
        state=ChangeState.PROPOSED,
        note="It is not worse than the model in service on the newest frauds.",
        author=SERVICE,
        decided_by=None,
        broken_glass=None,
        created_at_ms=now_ms,
        decided_at_ms=None,
    )
    return [
        model_change_sql.reject_open_of(tenant, SERVICE, now_ms),
        model_change_sql.insert_change(tenant, one),
    ]


async def find_approval(store: Store, tenant: str) -> tuple[Statement, bool]:
    """Return what demands that a tenant's settings stay as they are, and whether rules need approval."""
    rows = await store.read(tenants_sql.select_tenant(tenant))
    if not rows:
        raise NotFound
    demand = tenants_sql.demand_settings(tenant, rows[0][-1])
    return demand, tenants_sql.tenant_of(rows[0]).rule_approval


async def request_training(store: Store, tenant: str) -> ModelSetting:
    """Ask for a training; the process that leads begins it within seconds."""
    return await _change(store, tenant, lambda known: msgspec.structs.replace(known, wanted=True))


async def roll_back(store: Store, tenant: str, now_ms: int, over: int | None = None) -> ModelSetting:
    """Put back in service what served before the champion: a model, or the rules alone.

    `over` is the champion that it is to take the place of. Raises `Conflict`, also when it is another.
    """
    for _ in range(TRIES):
        setting = await find_setting(store, tenant)
        if setting.champion is None:
            raise Conflict("No model is in service.", "no_model")
        if over is not None and setting.champion != over:
            raise changed_meanwhile()
        changed = msgspec.structs.replace(setting, champion=setting.previous, previous=None)
        with contextlib.suppress(Lost):
            await store.write(
                *sql.demand_setting(setting),
                *setting_statements(setting, changed, now_ms),
                *await recorded_anew(store, setting, changed, now_ms),
            )
            return changed
    raise changed_meanwhile()


async def recorded_anew(
    store: Store,
    before: ModelSetting,
    after: ModelSetting,
    now_ms: int,
    made: Mapping[int, str] | None = None,
) -> list[Statement]:
    """Return what has other features computed where the model in service changes and needs, or needed, more
    than the set in force has. `made` are the features of models that are stored with this.
    """
    if before.champion == after.champion:
        return []
    versions = [one for one in (before.champion, after.champion) if one is not None]
    texts = {**dict(await store.read(sql.select_features_of(after.tenant, versions))), **(made or {})}
    if all(has_features(after.features, texts[one]) for one in versions if one in texts):
        return []
    return [note_change(DECIDING.area, after.tenant, "features", now_ms)]


def setting_statements(before: ModelSetting, after: ModelSetting, now_ms: int) -> list[Statement]:
    """Return what stores a setting and has every process see it; none where nothing changes."""
    if after == before:
        return []
    statements = [sql.save_setting(after), note_change(sql.AREA, after.tenant, "setting", now_ms)]
    if ModelMode.OFF in (before.mode, after.mode) and before.mode is not after.mode:
        # With the mode off, features are computed no more.
        statements.append(note_change(DECIDING.area, after.tenant, "features", now_ms))
    return statements


def changed_meanwhile() -> Conflict:
    """Return the refusal of a step whose ground has moved too often."""
    return Conflict("Somebody else changed this model at the same moment. Look again.", "changed_meanwhile")
