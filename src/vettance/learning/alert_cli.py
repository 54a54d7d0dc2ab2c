"""The commands about the models that order AML alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from vettance.commands import data_option, fail, json_option, show
from vettance.learning.alert_answers import alert_model_out, alert_setting_out
from vettance.learning.steering_cli import work_on
from vettance.learning.training_cli import request, show_card, show_models
from vettance.rules.version_cli import VERSION, tenant_option, version_argument

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from vettance.db.engine import Store
    from vettance.learning.alert_sql import AlertModelSetting


@click.group("alerts")
def alerts() -> None:
    """Train, look at and steer the models that order AML alerts.

    Once officers have confirmed 50 alerts, a model gives each open one a priority. It hides none and closes
    none.

    Example: vettance model alerts list --tenant ten_0190…
    """


def _said_of(setting: AlertModelSetting) -> str:
    if not setting.is_on:
        return "Alerts have no priority: the order is off."
    if setting.champion is None:
        return "Alerts have no priority: no model is in service."
    return f"Model {setting.champion} orders the alerts."


@alerts.command("train")
@tenant_option
@click.option("--wait", is_flag=True, help="Wait until it is trained; exit code 1 when that fails.")
@json_option
@data_option
def train(tenant_id: str, wait: bool, as_json: bool, data: str | None) -> None:
    """Ask for a training; the running server does it in a process of its own.

    Example: vettance model alerts train --tenant ten_0190… --wait
    """
    from vettance.learning.change_alert_models import change_alert_setting, find_alert_setting

    def ask(store: Store) -> Awaitable[Any]:
        return change_alert_setting(
            store, tenant_id, lambda known: msgspec.structs.replace(known, wanted=True)
        )

    setting = request(data, tenant_id, ask, find_alert_setting, wait=wait)
    asked = "A training is asked for; `vettance model alerts list` shows when it is done."
    show(alert_setting_out(setting), _said_of(setting) if wait else asked, as_json=as_json)


@alerts.command("list")
@tenant_option
@json_option
@data_option
def list_alert_models(tenant_id: str, as_json: bool, data: str | None) -> None:
    """List the models that order a tenant's alerts, newest first.

    Example: vettance model alerts list --tenant ten_0190… --json
    """
    from vettance.learning.alert_sql import select_alert_models
    from vettance.learning.change_alert_models import find_alert_setting

    async def work(store: Store) -> tuple[AlertModelSetting, list[Any]]:
        return await find_alert_setting(store, tenant_id), await store.read(select_alert_models(tenant_id))

    setting, rows = work_on(data, tenant_id, work)
    found = [alert_model_out(setting, *row) for row in rows]
    show_models(found, _said_of(setting), failure=setting.failure, as_json=as_json)


@alerts.command("card")
@click.argument("version", type=VERSION, required=False)
@tenant_option
@json_option
@data_option
def card(version: int | None, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show the card of a model (the one in service): what it was made from, and what was measured.

    Example: vettance model alerts card --tenant ten_0190…
    """
    from vettance.learning.alert_sql import select_alert_models
    from vettance.learning.change_alert_models import find_alert_setting

    async def work(store: Store) -> dict[str, Any]:
        setting = await find_alert_setting(store, tenant_id)
        wanted = setting.champion if version is None else version
        rows = [row for row in await store.read(select_alert_models(tenant_id)) if row[0] == wanted]
        if not rows:
            fail("no model is in service" if version is None else f"the tenant has no model {version}")
        return {**alert_model_out(setting, *rows[0]), "card": msgspec.json.decode(rows[0][1])}

    found = work_on(data, tenant_id, work)
    members = found["card"]
    words = (
        f"made from {members['rows']:,} closed alerts, of which "
        f"{members['frauds']:,} were confirmed.\nAverage precision on the newest {members['comparedFrauds']} "
        f"confirmed ones: {members['averagePrecision']:.3f}; the order before had "
        f"{members['averagePrecisionBefore']:.3f}."
    )
    show_card(found, words, "Values that tell most", as_json=as_json)


@alerts.command("promote")
@version_argument
@tenant_option
@json_option
@data_option
def promote(version: int, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Have model VERSION order the alerts, whatever was measured of it.

    Example: vettance model alerts promote 3 --tenant ten_0190…
    """
    from vettance.learning.change_alert_models import promote_alert_model

    setting = work_on(data, tenant_id, lambda store: promote_alert_model(store, tenant_id, version))
    show(alert_setting_out(setting), _said_of(setting), as_json=as_json)


@alerts.command("rollback")
@tenant_option
@json_option
@data_option
def roll_back(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Have what did so before order the alerts: the model before, or none.

    Example: vettance model alerts rollback --tenant ten_0190…
    """
    from vettance.learning.change_alert_models import roll_back_alert_model

    setting = work_on(data, tenant_id, lambda store: roll_back_alert_model(store, tenant_id))
    show(alert_setting_out(setting), _said_of(setting), as_json=as_json)


@alerts.command("set")
@click.argument("word", metavar="on|off", type=click.Choice(["on", "off"]))
@tenant_option
@json_option
@data_option
def set_order(word: str, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Set whether alerts get a priority; `off` takes it from those that are open, and keeps the models.

    Example: vettance model alerts set off --tenant ten_0190…
    """
    from vettance.learning.change_alert_models import change_alert_setting

    setting = work_on(
        data,
        tenant_id,
        lambda store: change_alert_setting(
            store, tenant_id, lambda known: msgspec.structs.replace(known, is_on=word == "on")
        ),
    )
    show(alert_setting_out(setting), _said_of(setting), as_json=as_json)
