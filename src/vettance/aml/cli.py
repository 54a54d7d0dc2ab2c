"""The command line of AML: how a tenant's officers work, and its rule sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from vettance import clock
from vettance.aml import sql
from vettance.aml.quality.cli import add_aml_quality_command
from vettance.aml.screening.cli import set_screening
from vettance.aml.settings.sql import save_officers
from vettance.commands import (
    data_option,
    json_option,
    run_for_tenant,
    settings_of,
    show,
)
from vettance.db.engine import Store
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.rules.ruleset_cli import Versions
from vettance.snoozes.cli import add_snooze_commands
from vettance.tenants.sql import note_change

if TYPE_CHECKING:
    from vettance.aml.case import OfficerSettings
    from vettance.rules.gate import Context

_SWITCH = click.Choice(["on", "off"])


@click.group()
def aml() -> None:
    """Set how officers work; check, push, pull, list and compare AML rules.

    Example: vettance aml set --tenant ten_0190… --four-eyes on
    """


aml.add_command(set_screening)


@aml.command("set")
@tenant_or_server
@click.option("--four-eyes", type=_SWITCH, help="Whether closing a case needs two officers.")
@click.option(
    "--inline-screening", type=_SWITCH, help="Whether names in AML events are compared with the watchlists."
)
@json_option
@data_option
def set_settings(
    tenant_id: str,
    server: RemoteRules | None,
    four_eyes: str | None,
    inline_screening: str | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Show or change how AML works for a tenant; a running server follows within seconds.

    Example: vettance aml set --tenant ten_0190… --four-eyes on --inline-screening on
    """
    given = {"four_eyes": four_eyes, "inline_screening": inline_screening}
    new = {name: value == "on" for name, value in given.items() if value is not None}

    async def work(store: Store) -> OfficerSettings:
        known = sql.settings_of(await store.read(sql.select_settings(tenant_id)))
        changed = msgspec.structs.replace(known, **new)
        if not new:
            return known
        await store.write(
            save_officers(tenant_id, changed),
            note_change(sql.AREA, tenant_id, "settings", clock.now_ms()),
        )
        return changed

    if server is not None:
        changes = {"fourEyes": new.get("four_eyes"), "inlineScreening": new.get("inline_screening")}
        answer = server.change("/aml/settings", changes)
        found = {name: answer[name] for name in ("fourEyes", "inlineScreening")}
    else:
        changed = run_for_tenant(data, tenant_id, work)
        found = {
            "tenantId": tenant_id,
            "fourEyes": changed.four_eyes,
            "inlineScreening": changed.inline_screening,
        }
    text = (
        f"Closing a case needs {'two officers' if found['fourEyes'] else 'one officer'}; "
        f"names in events are {'' if found['inlineScreening'] else 'not '}screened."
    )
    show(found, text, as_json=as_json)


def _context(data: str | None) -> Context:
    from vettance.aml.aml_rule_context import aml_context
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    settings = settings_of(data)
    return aml_context(settings.jurisdictions, MemoryVelocity())


add_aml_quality_command(aml)
add_snooze_commands(aml, sql.RULE_SETS)
Versions(
    group=aml,
    noun="AML rules",
    example="aml-rules.yaml",
    pack=sql.RULE_SETS.pack,
    context=_context,
    path="/aml",
    note="Lower the limit for cash",
    objection="It raises an alert for every salary",
    kept=sql.RULE_SETS,
    implied=True,
).add_commands()
