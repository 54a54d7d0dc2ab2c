"""Models: which serves, what each was made from and measured by, and the steps that steer them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vettance.audit.act import describe
from vettance.console.page import ADMINS, ConsolePage, PageAnswer, View, Visit
from vettance.console.rules_page import RULE_READERS
from vettance.console.svg_charts import Curve, curve_chart, share_mark
from vettance.errors import Conflict, NotFound, Unprocessable
from vettance.learning.change_models import find_setting, promote, request_training, roll_back, set_mode
from vettance.learning.drift import DriftedValue
from vettance.learning.watch_drift import drift_of
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel, select_model

PATH: Final = "/console/models"
_GAINS_SHOWN: Final = 15
_DRIFT_SHOWN: Final = 10
_DRIFT_ROWS: Final = 2_000
_VERSION_DIGITS: Final = 9
_MODES: Final = (
    ("off", "Off: no model, no features"),
    ("shadow", "Shadow: recorded, without effect"),
    ("active", "Active: raises scores"),
)


async def models(visit: Visit) -> PageAnswer:
    """GET /console/models."""
    page = await visit.ask("GET", "/api/v1/models", {"limit": 50})
    setting = await find_setting(visit.parts.store, visit.tenant.id)
    values = {
        "rows": page["data"],
        "setting": setting,
        "modes": _MODES,
        "may_steer": visit.may(*ADMINS),
        "trained_at": setting.trained_at_ms or None,
    }
    return View("models.html", values, title="Models")


async def model(visit: Visit) -> PageAnswer:
    """GET /console/models/{version}."""
    one = await visit.ask("GET", f"/api/v1/models/{visit.path['version']}")
    card = one["card"]
    curve = [(point["recall"], point["precision"]) for point in card["precisionRecall"]]
    bins = [(row["predicted"], row["true"]) for row in card["calibration"]]
    gains = card["gain"][:_GAINS_SHOWN]
    most = max((row["gain"] for row in gains), default=0) or 1
    values = {
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
        "drift": await _drift(visit, one["version"]) if one["state"] == "champion" else [],
        "may_steer": visit.may(*ADMINS),
    }
    return View("model.html", values, title=f"Model {one['version']}")


async def _drift(visit: Visit, version: int) -> Sequence[DriftedValue]:
    store, tenant = visit.parts.store, visit.tenant.id
    rows = await store.read(select_model(tenant, version))
    found = await drift_of(store, tenant, StoredModel(*rows[0]), _DRIFT_ROWS) if rows else []
    return found[:_DRIFT_SHOWN]


async def steer(visit: Visit) -> PageAnswer:
    """POST /console/models/setting: what the model may do."""
    mode, may_block = visit.form.get("mode"), "may_block" in visit.form
    if mode not in {word for word, _ in _MODES}:
        raise Unprocessable("There is no such mode.", {"mode": "is off, shadow or active"})
    before = await find_setting(visit.parts.store, visit.tenant.id)
    _describe(before, mode=mode, may_block=may_block)
    await set_mode(visit.parts.acts, visit.tenant.id, visit.now_ms, mode=ModelMode(mode), may_block=may_block)
    return visit.redirect(PATH, notice="model-set")


async def train(visit: Visit) -> PageAnswer:
    """POST /console/models/train."""
    await request_training(visit.parts.acts, visit.tenant.id)
    return visit.redirect(PATH, notice="model-training")


async def take_back(visit: Visit) -> PageAnswer:
    """POST /console/models/rollback."""
    before = await find_setting(visit.parts.store, visit.tenant.id)
    if before.champion is None:
        raise Conflict("No model is in service.", "no_model")
    _describe(before, champion=before.previous)
    await roll_back(visit.parts.acts, visit.tenant.id, visit.now_ms)
    return visit.redirect(PATH, notice="model-set")


async def put_in_service(visit: Visit) -> PageAnswer:
    """POST /console/models/{version}/promote."""
    version = visit.path["version"]
    if not (version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS):
        raise NotFound
    before = await find_setting(visit.parts.store, visit.tenant.id)
    _describe(before, champion=int(version))
    await promote(visit.parts.acts, visit.tenant.id, int(version), visit.now_ms)
    return visit.redirect(f"{PATH}/{version}", notice="model-set")


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
    ConsolePage("POST", f"{PATH}/{{version}}/promote", ADMINS, put_in_service),
)
