"""The commands that steer models: put in service, taken back, what they may do, and who agreed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from vettance import clock
from vettance.commands import data_option, fail, json_option, run_for_tenant, show, show_table
from vettance.errors import NotFound, Refusal
from vettance.ids import IdSource
from vettance.rules.version_cli import (
    break_glass_option,
    by_option,
    note_option,
    tenant_option,
    version_argument,
)
from vettance.wire.payload import timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vettance.db.engine import Store
    from vettance.learning.model_change import ModelChange
    from vettance.learning.steer_models import ModelSteering, SteeredModels
    from vettance.models.sql import ModelSetting

_CHANGES_SHOWN = 100

_change_argument = click.argument("change_id", metavar="CHANGE")


def work_on(data: str | None, tenant: str, step: Callable[[Store], Awaitable[Any]]) -> Any:
    """Do something with the store; what is refused ends the command with its reason."""

    async def work(store: Store) -> Any:
        try:
            return await step(store)
        except NotFound:
            fail("there is no such model or change; `vettance model list` and `changes` show them")
        except Refusal as refusal:
            fail(str(refusal))

    return run_for_tenant(data, tenant, work)


def described(setting: ModelSetting) -> dict[str, Any]:
    """Write how models are used, for scripts."""
    from vettance.models.serving_model import ModelMode

    return {
        "tenantId": setting.tenant,
        "mode": setting.mode.value,
        "mayBlock": setting.may_block,
        "recordsFeatures": bool(setting.features) and setting.mode is not ModelMode.OFF,
        "champion": setting.champion,
        "previous": setting.previous,
        "trainedAt": timestamp(setting.trained_at_ms) if setting.trained_at_ms else None,
        "failure": setting.failure,
    }


def said_of(setting: ModelSetting) -> str:
    """Write the same for people."""
    champion = "the rules alone" if setting.champion is None else f"model {setting.champion}"
    blocks = "may block" if setting.may_block else "may not block"
    return f"In service: {champion}, mode {setting.mode.value}, it {blocks}."


def add_steering_commands(group: click.Group) -> None:
    """Add the commands to the group."""
    for command in (promote, roll_back, turn_off, set_mode, set_model, list_changes, approve, reject):
        group.add_command(command)


def _steer(tenant: str, actor: str, data: str | None, step: Callable[[ModelSteering], Awaitable[Any]]) -> Any:
    from vettance.learning.steer_models import ModelSteering

    return work_on(data, tenant, lambda store: step(ModelSteering(store, tenant, actor, IdSource())))


def _change(
    wanted: ModelChange,
    tenant: str,
    actor: str,
    note: str,
    break_glass: str | None,
    *,
    as_json: bool,
    data: str | None,
) -> None:
    found = _steer(tenant, actor, data, lambda steps: steps.change(wanted, note, break_glass))
    _show(found, as_json=as_json)


def _show(found: SteeredModels, *, as_json: bool) -> None:
    from vettance.learning.model_change import change_out

    said, proposed = said_of(found.setting), None
    if found.proposed is not None:
        proposed = change_out(found.proposed)
        said = (
            f"Proposed: {found.proposed.change.words}. Another person or key approves it: "
            f"vettance model approve {found.proposed.id} --tenant {found.setting.tenant}\n{said}"
        )
    show({**described(found.setting), "proposed": proposed}, said, as_json=as_json)


@click.command("promote")
@version_argument
@tenant_option
@note_option
@break_glass_option
@by_option
@json_option
@data_option
def promote(
    version: int,
    tenant_id: str,
    note: str,
    break_glass: str | None,
    actor: str,
    as_json: bool,
    data: str | None,
) -> None:
    """Put model VERSION in service, whatever was measured of it; servers follow within seconds.

    Where the tenant's rules need approval it is proposed, and another person or key approves it.

    Example: vettance model promote 3 --tenant ten_0190…
    """
    from vettance.learning.model_change import ModelChange

    wanted = ModelChange(champion=version)
    _change(wanted, tenant_id, actor, note, break_glass, as_json=as_json, data=data)


@click.command("rollback")
@tenant_option
@json_option
@data_option
def roll_back(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Put back in service what served before: the model before, or the rules alone. Nobody has to approve it.

    Example: vettance model rollback --tenant ten_0190…
    """
    from vettance.learning.change_models import roll_back as put_back

    setting = work_on(data, tenant_id, lambda store: put_back(store, tenant_id, clock.now_ms()))
    show(described(setting), said_of(setting), as_json=as_json)


@click.command("off")
@tenant_option
@by_option
@json_option
@data_option
def turn_off(tenant_id: str, actor: str, as_json: bool, data: str | None) -> None:
    """Take the model out of service; the champion is kept for later.

    Example: vettance model off --tenant ten_0190…
    """
    from vettance.learning.model_change import ModelChange
    from vettance.models.serving_model import ModelMode

    wanted = ModelChange(mode=ModelMode.OFF)
    _change(wanted, tenant_id, actor, "", None, as_json=as_json, data=data)


@click.command("mode")
@click.argument("mode", type=click.Choice(["off", "shadow", "active"]))
@tenant_option
@note_option
@break_glass_option
@by_option
@json_option
@data_option
def set_mode(
    mode: str,
    tenant_id: str,
    note: str,
    break_glass: str | None,
    actor: str,
    as_json: bool,
    data: str | None,
) -> None:
    """Set what the model may do: nothing, be recorded, or raise scores.

    Where the tenant's rules need approval, another person or key approves `active`.

    Example: vettance model mode active --tenant ten_0190…
    """
    from vettance.learning.model_change import ModelChange
    from vettance.models.serving_model import ModelMode

    wanted = ModelChange(mode=ModelMode(mode))
    _change(wanted, tenant_id, actor, note, break_glass, as_json=as_json, data=data)


@click.command("set")
@tenant_option
@click.option("--mode", type=click.Choice(["off", "shadow", "active"]), help="What the model may do.")
@click.option("--may-block", type=click.Choice(["on", "off"]), help="Whether its score alone may deny.")
@note_option
@break_glass_option
@by_option
@json_option
@data_option
def set_model(
    tenant_id: str,
    mode: str | None,
    may_block: str | None,
    note: str,
    break_glass: str | None,
    actor: str,
    as_json: bool,
    data: str | None,
) -> None:
    """Set what the model may do, and whether its score alone may deny.

    Where the tenant's rules need approval, another person or key approves what gives it more to say.

    Example: vettance model set --tenant ten_0190… --mode active --may-block on
    """
    from vettance.learning.model_change import ModelChange
    from vettance.models.serving_model import ModelMode

    if mode is None and may_block is None:
        fail("nothing to change; give --mode or --may-block")
    wanted = ModelChange(
        mode=None if mode is None else ModelMode(mode),
        may_block=None if may_block is None else may_block == "on",
    )
    _change(wanted, tenant_id, actor, note, break_glass, as_json=as_json, data=data)


@click.command("changes")
@tenant_option
@json_option
@data_option
def list_changes(tenant_id: str, as_json: bool, data: str | None) -> None:
    """List the changes that needed approval, newest first: what waits, and who decided.

    Example: vettance model changes --tenant ten_0190…
    """
    from vettance.learning.model_change import change_of, change_out
    from vettance.learning.model_change_sql import select_changes

    rows = work_on(data, tenant_id, lambda store: store.read(select_changes(tenant_id, _CHANGES_SHOWN)))
    show_table("Changes", [change_out(change_of(row)) for row in rows], as_json=as_json)


@click.command("approve")
@_change_argument
@tenant_option
@by_option
@json_option
@data_option
def approve(change_id: str, tenant_id: str, actor: str, as_json: bool, data: str | None) -> None:
    """Approve a CHANGE that somebody else proposed, which puts it in effect.

    Example: vettance model approve mch_0190… --tenant ten_0190… --by ana
    """
    _show(_steer(tenant_id, actor, data, lambda steps: steps.approve(change_id)), as_json=as_json)


@click.command("reject")
@_change_argument
@tenant_option
@by_option
@json_option
@data_option
def reject(change_id: str, tenant_id: str, actor: str, as_json: bool, data: str | None) -> None:
    """Reject a CHANGE that nobody has decided on, for good.

    Example: vettance model reject mch_0190… --tenant ten_0190… --by ana
    """
    from vettance.learning.model_change import change_out

    one = _steer(tenant_id, actor, data, lambda steps: steps.reject(change_id))
    show(change_out(one), f"Rejected: {one.change.words}.", as_json=as_json)
