"""The commands about models."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from vettance import clock
from vettance.commands import data_option, fail, json_option, run_for_tenant, show, show_table
from vettance.errors import Refusal
from vettance.rules.version_cli import tenant_option
from vettance.wire.payload import encode, timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vettance.db.engine import Store
    from vettance.models.sql import ModelSetting

_WAIT_S = 1_800.0
_LOOK_S = 0.5
_DRIFT_ROWS = 5_000
_SHOWN = 12


@click.group("model")
def model() -> None:
    """Train, look at and steer the models of a tenant.

    A tenant that labels gets a model of its own, in shadow: it is recorded with each decision and changes
    none. Training needs the extra: pip install 'vettance[learning]'.

    Example: vettance model list --tenant ten_0190…
    """


def _work(data: str | None, tenant: str, step: Callable[[Store], Awaitable[Any]]) -> Any:
    """Do something with the store; what is refused ends the command with its reason."""

    async def work(store: Store) -> Any:
        try:
            return await step(store)
        except Refusal as refusal:
            fail(str(refusal) or "there is no such model")

    return run_for_tenant(data, tenant, work)


def _described(setting: ModelSetting) -> dict[str, Any]:
    return {
        "tenantId": setting.tenant,
        "mode": setting.mode.value,
        "mayBlock": setting.may_block,
        "champion": setting.champion,
        "previous": setting.previous,
        "trainedAt": timestamp(setting.trained_at_ms) if setting.trained_at_ms else None,
        "failure": setting.failure,
    }


def _said(setting: ModelSetting) -> str:
    champion = "the rules alone" if setting.champion is None else f"model {setting.champion}"
    blocks = "may block" if setting.may_block else "may not block"
    return f"In service: {champion}, mode {setting.mode.value}, it {blocks}."


def _show_setting(setting: ModelSetting, *, as_json: bool) -> None:
    show(_described(setting), _said(setting), as_json=as_json)


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

    async def work(store: Store) -> ModelSetting:
        await request_training(store, tenant_id)
        until_s = time.monotonic() + _WAIT_S
        while True:
            setting = await find_setting(store, tenant_id)
            if not wait or not setting.wanted or time.monotonic() > until_s:
                return setting
            await asyncio.sleep(_LOOK_S)

    setting = _work(data, tenant_id, work)
    if wait and (setting.failure is not None or setting.wanted):
        fail(setting.failure or "no server trained within half an hour; does one run?")
    said = _said(setting) if wait else "A training is asked for; `vettance model list` shows when it is done."
    show(_described(setting), said, as_json=as_json)


@model.command("list")
@tenant_option
@json_option
@data_option
def list_models(tenant_id: str, as_json: bool, data: str | None) -> None:
    """List the models of a tenant, newest first.

    Example: vettance model list --tenant ten_0190… --json
    """
    from vettance.learning.change_models import find_setting
    from vettance.models.sql import select_models

    async def work(store: Store) -> tuple[ModelSetting, list[Any]]:
        return await find_setting(store, tenant_id), await store.read(select_models(tenant_id))

    setting, rows = _work(data, tenant_id, work)
    found = [_row(setting, *row) for row in rows]
    if as_json:
        show(found, "", as_json=True)
        return
    click.echo(_said(setting))
    if setting.failure is not None:
        click.echo(f"The last training gave no model: {setting.failure}.")
    show_table("Models", found, as_json=False)


def _row(setting: ModelSetting, version: int, card: str, created_at_ms: int) -> dict[str, Any]:
    members = msgspec.json.decode(card)
    return {
        "version": version,
        "state": "champion" if version == setting.champion else "challenger",
        "createdAt": timestamp(created_at_ms),
        "rows": members.get("rows"),
        "frauds": members.get("frauds"),
        "averagePrecision": members.get("averagePrecision"),
        "before": members.get("averagePrecisionBefore"),
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

    setting = _work(data, tenant_id, lambda store: find_setting(store, tenant_id))
    _show_setting(setting, as_json=as_json)


@model.command("card")
@click.argument("version", type=click.IntRange(min=1), required=False)
@tenant_option
@json_option
@data_option
def card(version: int | None, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show the card of a model (the one in service): what it was made from, and what was measured.

    Example: vettance model card 3 --tenant ten_0190…
    """
    from vettance.learning.answers import model_answer

    async def work(store: Store) -> Any:
        setting, stored = await _find(store, tenant_id, version)
        return model_answer(setting, stored.version, stored.card, stored.created_at_ms, whole=True)

    found = msgspec.json.decode(encode(_work(data, tenant_id, work)))
    if as_json:
        show(found, "", as_json=True)
        return
    members = found["card"]
    click.echo(
        f"Model {found['version']} ({found['state']}), made from {members['rows']:,} rows and "
        f"{members['frauds']:,} frauds of {members['from']} to {members['to']}.\n"
        f"Average precision on the newest {members['comparedFrauds']} frauds: "
        f"{members['averagePrecision']:.3f}; what served before had {members['averagePrecisionBefore']:.3f}."
    )
    show_table("Calibration", members["calibration"], as_json=False)
    show_table("Features that tell most", members["gain"][:_SHOWN], as_json=False)


async def _find(store: Store, tenant: str, version: int | None) -> Any:
    from vettance.learning.change_models import find_setting
    from vettance.models.sql import StoredModel, select_model

    setting = await find_setting(store, tenant)
    wanted = setting.champion if version is None else version
    rows = await store.read(select_model(tenant, wanted)) if wanted is not None else []
    if not rows:
        fail("no model is in service" if version is None else f"the tenant has no model {version}")
    return setting, StoredModel(*rows[0])


@model.command("promote")
@click.argument("version", type=click.IntRange(min=1))
@tenant_option
@json_option
@data_option
def promote_model(version: int, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Put model VERSION in service, whatever was measured of it; servers follow within seconds.

    Example: vettance model promote 3 --tenant ten_0190…
    """
    from vettance.learning.change_models import promote

    setting = _work(data, tenant_id, lambda store: promote(store, tenant_id, version, clock.now_ms()))
    _show_setting(setting, as_json=as_json)


@model.command("rollback")
@tenant_option
@json_option
@data_option
def roll_back_model(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Put back in service what served before: the model before, or the rules alone.

    Example: vettance model rollback --tenant ten_0190…
    """
    from vettance.learning.change_models import roll_back

    setting = _work(data, tenant_id, lambda store: roll_back(store, tenant_id, clock.now_ms()))
    _show_setting(setting, as_json=as_json)


def _set(
    tenant_id: str, mode: str | None, may_block: bool | None, *, as_json: bool, data: str | None
) -> None:
    from vettance.learning.change_models import set_mode
    from vettance.models.serving_model import ModelMode

    wanted = ModelMode(mode) if mode is not None else None
    setting = _work(
        data,
        tenant_id,
        lambda store: set_mode(store, tenant_id, clock.now_ms(), mode=wanted, may_block=may_block),
    )
    _show_setting(setting, as_json=as_json)


@model.command("off")
@tenant_option
@json_option
@data_option
def turn_off(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Take the model out of service; the champion is kept for later.

    Example: vettance model off --tenant ten_0190…
    """
    _set(tenant_id, "off", None, as_json=as_json, data=data)


@model.command("mode")
@click.argument("mode", type=click.Choice(["off", "shadow", "active"]))
@tenant_option
@json_option
@data_option
def mode_model(mode: str, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Set what the model may do: nothing, be recorded, or raise scores.

    Example: vettance model mode active --tenant ten_0190…
    """
    _set(tenant_id, mode, None, as_json=as_json, data=data)


@model.command("set")
@tenant_option
@click.option("--mode", type=click.Choice(["off", "shadow", "active"]), help="What the model may do.")
@click.option("--may-block", type=click.Choice(["on", "off"]), help="Whether its score alone may deny.")
@json_option
@data_option
def set_model(
    tenant_id: str, mode: str | None, may_block: str | None, as_json: bool, data: str | None
) -> None:
    """Set what the model may do, and whether its score alone may deny.

    Example: vettance model set --tenant ten_0190… --mode active --may-block on
    """
    if mode is None and may_block is None:
        fail("nothing to change; give --mode or --may-block")
    _set(tenant_id, mode, None if may_block is None else may_block == "on", as_json=as_json, data=data)


@model.command("drift")
@tenant_option
@json_option
@data_option
def drift(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show how far the newest events are from those that the model was trained on.

    The population stability index of the probability and of each feature; from 0.2 on, look.

    Example: vettance model drift --tenant ten_0190…
    """
    from vettance.learning.watch_drift import drift_of

    async def work(store: Store) -> Any:
        _, stored = await _find(store, tenant_id, None)
        return await drift_of(store, tenant_id, stored, _DRIFT_ROWS)

    found = _work(data, tenant_id, work)
    rows = [{"name": one.name, "psi": one.psi, "warning": one.is_warned} for one in found]
    show_table("Drift", rows if as_json else rows[:_SHOWN], as_json=as_json)
