"""Models: which serves, what each was made from and measured by, and the steps that steer them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vettance.audit.act import describe
from vettance.console.page import ADMINS, ConsolePage, PageAnswer, View, Visit
from vettance.console.rule_place import RULE_READERS
from vettance.console.svg_charts import Curve, curve_chart, share_mark
from vettance.console.words import Words
from vettance.db.engine import Row
from vettance.errors import Conflict, NotFound, Unprocessable
from vettance.learning.alert_answers import alert_model_out
from vettance.learning.alert_sql import select_alert_models
from vettance.learning.change_alert_models import find_alert_setting
from vettance.learning.change_models import find_setting, request_training, roll_back
from vettance.learning.drift import WARNED_MIN, MeasuredDrift
from vettance.learning.drift_sql import select_drifts
from vettance.learning.measure_effect import ModelEffect, effect_of
from vettance.learning.model_change import ChangeState, ModelChange, ProposedChange, change_of
from vettance.learning.model_change_sql import select_changes
from vettance.learning.steer_models import ModelSteering
from vettance.learning.watch_drift import drift_of
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel, select_model
from vettance.rules.ruleset import RuleSet

PATH: Final = "/console/models"
_GAINS_SHOWN: Final = 15
_DRIFT_SHOWN: Final = 10
_DRIFT_ROWS: Final = 2_000
_WEEKS_SHOWN: Final = 12
_VERSION_DIGITS: Final = 9
_CHANGES_SHOWN: Final = 30
_MODES: Final = (
    ("off", Words("Off: no model, no features")),
    ("shadow", Words("Shadow: recorded, without effect")),
    ("active", Words("Active: raises scores")),
)


async def models(visit: Visit) -> PageAnswer:
    """GET /console/models."""
    page = await visit.ask("GET", "/api/v1/models", {"limit": 50})
    setting = await find_setting(visit.parts.store, visit.tenant.id)
    alert_setting = await find_alert_setting(visit.parts.store, visit.tenant.id)
    alert_rows = await visit.parts.store.read(select_alert_models(visit.tenant.id))
    may_steer = visit.may(*ADMINS)
    changes = await visit.parts.store.read(select_changes(visit.tenant.id, _CHANGES_SHOWN))
    values = {
        "alert_setting": alert_setting,
        "alert_rows": [alert_model_out(alert_setting, *row) for row in alert_rows],
        "changes": [_shown_change(visit, change_of(row), may_steer=may_steer) for row in changes],
        "drift": _weeks(await visit.parts.store.read(select_drifts(visit.tenant.id, 1))),
        "needs_approval": visit.tenant.rule_approval,
        "rows": page["data"],
        "setting": setting,
        "modes": _MODES,
        "may_steer": may_steer,
        "trained_at": setting.trained_at_ms or None,
    }
    return View("models.html", values, title=Words("Models"))


def _shown_change(visit: Visit, one: ProposedChange, *, may_steer: bool) -> dict[str, Any]:
    """Return a change for the page, with the steps that the visitor may take."""
    is_open = one.state is ChangeState.PROPOSED
    is_own = one.author == visit.signed.user_id and visit.tenant.rule_approval
    return {
        "id": one.id,
        "words": one.change.words,
        "state": one.state.value,
        "note": one.broken_glass or one.note,
        "author": one.author,
        "decided_by": one.decided_by,
        "created_at": one.created_at_ms,
        "may_approve": is_open and may_steer and not is_own,
        "may_reject": is_open and may_steer,
    }


async def model(visit: Visit) -> PageAnswer:
    """GET /console/models/{version}."""
    one = await visit.ask("GET", f"/api/v1/models/{visit.path['version']}")
    card = one["card"]
    curve = [(point["recall"], point["precision"]) for point in card["precisionRecall"]]
    bins = [(row["predicted"], row["true"]) for row in card["calibration"]]
    gains = card["gain"][:_GAINS_SHOWN]
    most = max((row["gain"] for row in gains), default=0) or 1
    is_champion = one["state"] == "champion"
    drift = await _drift(visit, one["version"]) if is_champion else None
    weeks = await visit.parts.store.read(select_drifts(visit.tenant.id, _WEEKS_SHOWN)) if is_champion else ()
    values = {
        "effect": await _effect(visit, one["version"]) if is_champion else None,
        "one": one,
        "card": card,
        "curve": curve_chart(
            [Curve("now", curve)], "Precision over recall on the newest frauds", ("recall", "precision")
        ),
        "calibration": curve_chart(
            [Curve("before", [(0.0, 0.0), (1.0, 1.0)]), Curve("now", bins)],
            "What was true over what was predicted; the pale line is where both agree",
            ("predicted", "true"),
        ),
        "gains": [
            (row["feature"], row["gain"], share_mark(row["gain"] / most))
            for row in card["gain"][:_GAINS_SHOWN]
        ],
        "drift": drift,
        "drifted": drift.values[:_DRIFT_SHOWN] if drift is not None else (),
        "weeks": _weeks(weeks),
        "may_steer": visit.may(*ADMINS),
    }
    return View("model.html", values, title=f"Model {one['version']}")


async def _drift(visit: Visit, version: int) -> MeasuredDrift | None:
    store, tenant = visit.parts.store, visit.tenant.id
    rows = await store.read(select_model(tenant, version))
    return await drift_of(store, tenant, StoredModel(*rows[0]), visit.now_ms, _DRIFT_ROWS) if rows else None


async def _effect(visit: Visit, version: int) -> ModelEffect | None:
    """Return what a version changes over the newest decisions; None where it has scored none of them."""
    store, tenant, known = visit.parts.store, visit.tenant.id, dict[int, RuleSet]()

    async def ruleset_of(number: int) -> RuleSet:
        if number not in known:
            known[number] = (await visit.parts.explainer.rules_of(tenant, number)).ruleset
        return known[number]

    found = await effect_of(store, await find_setting(store, tenant), version, ruleset_of)
    return found if found.rows else None


def _weeks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the weekly measurements for the page, newest first."""
    return [
        {
            "at": measured_at_ms,
            "version": version,
            "rows": count,
            "probability": dict(msgspec.json.decode(values)).get("probability"),
            "largest": largest,
            "is_warned": largest >= WARNED_MIN,
        }
        for measured_at_ms, version, count, largest, values in rows
    ]


async def steer(visit: Visit) -> PageAnswer:
    """POST /console/models/setting: what the model may do."""
    mode, may_block = visit.form.get("mode"), "may_block" in visit.form
    if mode not in {word for word, _ in _MODES}:
        raise Unprocessable("There is no such mode.", {"mode": "is off, shadow or active"})
    return await _change(visit, ModelChange(mode=ModelMode(mode), may_block=may_block), PATH)


async def _change(visit: Visit, wanted: ModelChange, to: str) -> PageAnswer:
    """Change something at once, or propose it where it needs approval."""
    before = await find_setting(visit.parts.store, visit.tenant.id)
    after = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    _describe(before, **{name: value for name, value in after.items() if value is not None})
    found = await _steps(visit).change(wanted)
    if found.proposed is None:
        return visit.redirect(to, notice="model-set")
    return visit.redirect(PATH, notice="model-proposed")


def _steps(visit: Visit) -> ModelSteering:
    return ModelSteering(
        visit.parts.acts, visit.tenant.id, visit.signed.user_id, visit.parts.ids, lambda: visit.now_ms
    )


async def decide(visit: Visit) -> PageAnswer:
    """POST /console/models/changes/{change}/{step}: approve or reject a change."""
    change, step = visit.path["change"], visit.path["step"]
    if step not in ("approve", "reject"):
        raise NotFound
    one = await _steps(visit).find(change)
    before = await find_setting(visit.parts.store, visit.tenant.id)
    after = msgspec.to_builtins(one.change)
    _describe(before, **(after if step == "approve" else {}))
    describe(subject=change)
    if step == "approve":
        await _steps(visit).approve(change)
        return visit.redirect(PATH, notice="model-set")
    await _steps(visit).reject(change)
    return visit.redirect(PATH, notice="rules-rejected")


async def train(visit: Visit) -> PageAnswer:
    """POST /console/models/train."""
    await request_training(visit.parts.acts, visit.tenant.id)
    return visit.redirect(PATH)


async def take_back(visit: Visit) -> PageAnswer:
    """POST /console/models/rollback."""
    before = await find_setting(visit.parts.store, visit.tenant.id)
    if before.champion is None:
        raise Conflict("No model is in service.", "no_model")
    _describe(before, champion=before.previous)
    base = visit.form.get("base")
    over = int(base) if base.isascii() and base.isdigit() and len(base) <= _VERSION_DIGITS else None
    await roll_back(visit.parts.acts, visit.tenant.id, visit.now_ms, over)
    return visit.redirect(PATH, notice="model-set")


async def put_in_service(visit: Visit) -> PageAnswer:
    """POST /console/models/{version}/promote."""
    version = visit.path["version"]
    if not (version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS):
        raise NotFound
    return await _change(visit, ModelChange(champion=int(version)), f"{PATH}/{version}")


def _describe(before: ModelSetting, **after: Any) -> None:
    """Have the audit log say what was changed."""
    known = msgspec.to_builtins(before)
    describe(before={name: known[name] for name in after}, after=after)


PAGES: Final = (
    ConsolePage("GET", PATH, RULE_READERS, models),
    ConsolePage("GET", f"{PATH}/{{version}}", RULE_READERS, model),
    ConsolePage("POST", f"{PATH}/setting", ADMINS, steer),
    ConsolePage("POST", f"{PATH}/train", ADMINS, train),
    ConsolePage("POST", f"{PATH}/rollback", ADMINS, take_back),
    ConsolePage("POST", f"{PATH}/changes/{{change}}/{{step}}", ADMINS, decide),
    ConsolePage("POST", f"{PATH}/{{version}}/promote", ADMINS, put_in_service),
)
