"""The command line of AML: how a tenant's officers work, and its rule sets."""

from pathlib import Path

import click
import msgspec

from vettance import clock
from vettance.aml import sql
from vettance.aml.case import Settings
from vettance.aml.features import aml_schema
from vettance.aml.jurisdiction import Jurisdictions
from vettance.aml.rebuild import PACK
from vettance.aml.screening.cli import set_screening
from vettance.aml.trial import Trial
from vettance.commands import (
    data_option,
    fail,
    json_option,
    run_for_tenant,
    settings_of,
    show,
)
from vettance.db.engine import Store
from vettance.rules.compiler import Compiled
from vettance.rules.ruleset import RuleSetRefused, admit, read_ruleset
from vettance.state.memory import MemoryVelocity
from vettance.tenants.sql import note_change
from vettance.versions import Versions, file_argument, read_rules, tenant_option

_SWITCH = click.Choice(["on", "off"])


@click.group()
def aml() -> None:
    """Set how officers work; check, push, pull, list and compare AML rules.

    Example: vettance aml set --tenant ten_0190… --four-eyes on
    """


aml.add_command(set_screening)


@aml.command("set")
@tenant_option
@click.option("--four-eyes", type=_SWITCH, help="Whether closing a case needs two officers.")
@click.option(
    "--inline-screening", type=_SWITCH, help="Whether names in AML events are compared with the watchlists."
)
@json_option
@data_option
def set_settings(
    tenant_id: str, four_eyes: str | None, inline_screening: str | None, as_json: bool, data: str | None
) -> None:
    """Show or change how AML works for a tenant; a running server follows within seconds.

    Example: vettance aml set --tenant ten_0190… --four-eyes on --inline-screening on
    """
    wanted = {"four_eyes": four_eyes, "inline_screening": inline_screening}
    new = {name: value == "on" for name, value in wanted.items() if value is not None}

    async def work(store: Store) -> Settings:
        known = sql.settings_of(await store.read(sql.select_settings(tenant_id)))
        changed = msgspec.structs.replace(known, **new)
        if not new:
            return known
        await store.write(
            sql.save_settings(tenant_id, changed),
            note_change(sql.AREA, tenant_id, "settings", clock.now_ms()),
        )
        return changed

    changed = run_for_tenant(data, tenant_id, work)
    text = (
        f"Closing a case needs {'two officers' if changed.four_eyes else 'one officer'}; "
        f"names in events are {'' if changed.inline_screening else 'not '}screened."
    )
    found = {
        "tenantId": tenant_id,
        "fourEyes": changed.four_eyes,
        "inlineScreening": changed.inline_screening,
    }
    show(found, text, as_json=as_json)


def _admit(document: str, name: str, data: str | None) -> Compiled:
    """Pass a document through the gate; every fault is shown, and any ends the command."""
    settings = settings_of(data)
    countries = Jurisdictions(settings.aml_call_for_action, settings.aml_high_risk, settings.aml_sanctioned)
    trial = Trial(MemoryVelocity())
    try:
        return admit(read_ruleset(document), aml_schema(countries), trial.parse, trial.maker())
    except RuleSetRefused as refused:
        fail(f"{name} is refused.\n{refused}")


@aml.command("check")
@file_argument
@json_option
@data_option
def check_file(file: Path, as_json: bool, data: str | None) -> None:
    """Pass FILE through the gate that saving passes: shape, language, types, cost, and its own tests.

    Example: vettance aml check aml-rules.yaml
    """
    compiled = _admit(read_rules(file), str(file), data)
    found = {"rules": len(compiled.rule_ids), "cost": compiled.cost}
    show(found, f"{file} is good: {found['rules']} rules, cost {found['cost']}.", as_json=as_json)


Versions(aml, sql.RULE_SETS, "AML rules", "aml-rules.yaml", _admit, PACK).add_commands()
