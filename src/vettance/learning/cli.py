"""The commands about models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from vettance import clock
from vettance.commands import counted, data_option, fail, json_option, show, show_table
from vettance.learning.alert_cli import alerts
from vettance.learning.drift import WARNED_MIN, WEIGHED_ROWS_MIN
from vettance.learning.feature_cli import features
from vettance.learning.steering_cli import add_steering_commands, described, said_of, work_on
from vettance.learning.training_cli import request, show_card, show_models
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.rules.version_cli import VERSION, tenant_option
from vettance.wire.payload import encode, timestamp

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.models.sql import ModelSetting

_PATH = "/models"
_NONE_SERVES = "no model is in service"
_WEEKS_SHOWN = 26
_SHOWN = 12


@click.group("model")
def model() -> None:
    """Train, look at and steer the models of a tenant.

    A tenant that labels gets a model of its own, in shadow: it is recorded with each decision and changes
    none. Training needs the extra: pip install 'vettance[learning]'.

    Example: vettance model list --tenant ten_0190…
    """


@model.command("train")
@tenant_option
@click.option("--wait", is_flag=True, help="Wait until it is trained; exit code 1 when that fails.")
@json_option
@data_option
def train(tenant_id: str, wait: bool, as_json: bool, data: str | None) -> None:
    """Ask for a training; the running server does it in a process of its own.

    Example: vettance model train --tenant ten_0190… --wait
    """
    from vettance.learning.change_models import find_setting, request_training

    setting = request(
        data, tenant_id, lambda store: request_training(store, tenant_id), find_setting, wait=wait
    )
    said = (
        said_of(setting) if wait else "A training is asked for; `vettance model list` shows when it is done."
    )
    show(described(setting), said, as_json=as_json)


@model.command("list")
@tenant_or_server
@json_option
@data_option
def list_models(tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
    """List the models of a tenant, newest first.

    Example: vettance model list --tenant ten_0190… --json
    """
    if server is not None:
        answers = server.every(_PATH)
        words = "".join(
            f"In service: model {one['version']}, mode {one['mode']}." for one in _serving(answers)
        )
        show_models(
            [_row_of(one) for one in answers], words or "In service: the rules alone.", as_json=as_json
        )
        return
    from vettance.learning.answers import model_answer
    from vettance.learning.change_models import find_setting
    from vettance.models.sql import select_models

    async def work(store: Store) -> tuple[ModelSetting, list[Any]]:
        return await find_setting(store, tenant_id), await store.read(select_models(tenant_id))

    setting, rows = work_on(data, tenant_id, work)
    found = [_row_of(_plain(model_answer(setting, *row, whole=False))) for row in rows]
    show_models(found, said_of(setting), failure=setting.failure, as_json=as_json)


def _plain(answer: msgspec.Struct) -> dict[str, Any]:
    """Return an answer as a service gives it."""
    found: dict[str, Any] = msgspec.json.decode(encode(answer))
    return found


def _serving(answers: list[Any]) -> list[Any]:
    return [one for one in answers if one["state"] == "champion"]


def _row_of(answer: dict[str, Any]) -> dict[str, Any]:
    card = answer["card"]
    return {
        **{name: answer[name] for name in ("version", "state", "createdAt")},
        **{name: card.get(name) for name in ("rows", "frauds", "averagePrecision")},
        "before": card.get("averagePrecisionBefore"),
    }


@model.command("show")
@tenant_option
@json_option
@data_option
def show_setting(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show which model serves a tenant, and what it may do.

    Example: vettance model show --tenant ten_0190…
    """
    from vettance.learning.change_models import find_setting

    setting = work_on(data, tenant_id, lambda store: find_setting(store, tenant_id))
    show(described(setting), said_of(setting), as_json=as_json)


@model.command("card")
@click.argument("version", type=VERSION, required=False)
@tenant_or_server
@json_option
@data_option
def card(
    version: int | None, tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None
) -> None:
    """Show the card of a model (the one in service): what it was made from, and what was measured.

    Example: vettance model card 3 --tenant ten_0190…
    """
    from vettance.learning.answers import model_answer

    async def work(store: Store) -> Any:
        setting, stored = await _find(store, tenant_id, version)
        return model_answer(setting, stored.version, stored.card, stored.created_at_ms, whole=True)

    if server is not None:
        if version is None and not (serving := _serving(server.every(_PATH))):
            fail(_NONE_SERVES)
        found = server.get(f"{_PATH}/{serving[0]['version'] if version is None else version}")
    else:
        found = _plain(work_on(data, tenant_id, work))
    members = found["card"]
    words = (
        f"made from {members['rows']:,} rows and "
        f"{members['frauds']:,} frauds of {members['from']} to {members['to']}.\n"
        f"Average precision on the newest {members['comparedFrauds']} frauds: "
        f"{members['averagePrecision']:.3f}; what served before had {members['averagePrecisionBefore']:.3f}."
    )
    show_card(found, words, "Features that tell most", as_json=as_json)


async def _find(store: Store, tenant: str, version: int | None) -> Any:
    from vettance.learning.change_models import find_setting
    from vettance.models.sql import StoredModel, select_model

    setting = await find_setting(store, tenant)
    wanted = setting.champion if version is None else version
    rows = await store.read(select_model(tenant, wanted)) if wanted is not None else []
    if not rows:
        fail(_NONE_SERVES if version is None else f"the tenant has no model {version}")
    return setting, StoredModel(*rows[0])


@model.command("drift")
@tenant_option
@click.option("--weekly", is_flag=True, help="What was measured week by week, newest first.")
@json_option
@data_option
def drift(tenant_id: str, weekly: bool, as_json: bool, data: str | None) -> None:
    """Show how far the newest events are from those that the model was trained on.

    The population stability index of the probability and of each feature; from 0.2 on, look. The server
    measures it once a week, too.

    Example: vettance model drift --tenant ten_0190…
    """
    from vettance.learning.drift_sql import select_drifts
    from vettance.learning.watch_drift import drift_of

    if weekly:
        kept = work_on(data, tenant_id, lambda store: store.read(select_drifts(tenant_id, _WEEKS_SHOWN)))
        show_table("Weeks", [_week(*row) for row in kept], as_json=as_json)
        return

    async def work(store: Store) -> Any:
        _, stored = await _find(store, tenant_id, None)
        return await drift_of(store, tenant_id, stored, clock.now_ms())

    found = work_on(data, tenant_id, work)
    warned = {one.name for one in found.warned}
    rows = [{"name": one.name, "psi": one.psi, "warning": one.name in warned} for one in found.values]
    show_table("Drift", rows if as_json else rows[:_SHOWN], as_json=as_json)
    if warned and not as_json:
        click.echo(f"{counted(len(warned), 'value')} moved by 0.2 or more over {found.rows:,} decisions.")
    elif not found.is_enough and not as_json:
        click.echo(
            f"Model {found.version} scored {found.rows:,} of the newest decisions; "
            f"nothing is warned of below {WEIGHED_ROWS_MIN}."
        )


def _week(measured_at_ms: int, version: int, rows: int, largest: float, values: str) -> dict[str, Any]:
    known = dict(msgspec.json.decode(values))
    return {
        "measuredAt": timestamp(measured_at_ms),
        "version": version,
        "rows": rows,
        "probability": known.get("probability"),
        "largest": largest,
        "warned": [name for name, psi in known.items() if psi >= WARNED_MIN],
    }


add_steering_commands(model)
model.add_command(alerts)
model.add_command(features)
