"""The command line of AML: how a tenant's officers work, and its rule sets."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec

from vettance.aml import sql
from vettance.aml.case import Settings
from vettance.aml.features import aml_schema
from vettance.aml.jurisdiction import Jurisdictions
from vettance.aml.screening.cli import set_screening
from vettance.aml.trial import Trial
from vettance.commands import data_option, fail, json_option, open_store, settings_of, show
from vettance.db.engine import Clash, Store
from vettance.rules.compiler import Compiled
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import RuleSetRefused, admit, read_ruleset
from vettance.state.memory import MemoryVelocity
from vettance.tenants.cli import find_tenant
from vettance.tenants.sql import note_change

_tenant_option = click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose.")
_file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_SWITCH = click.Choice(["on", "off"])


@click.group()
def aml() -> None:
    """Set how officers work; check, push and pull AML rules."""


aml.add_command(set_screening)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _run(data: str | None, tenant_id: str, work: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    async def whole() -> Any:
        async with open_store(data) as (store, _):
            await find_tenant(store, tenant_id)
            return await work(store)

    return asyncio.run(whole())


@aml.command("set")
@_tenant_option
@click.option("--four-eyes", type=_SWITCH, help="Whether closing a case needs two officers.")
@json_option
@data_option
def set_settings(tenant_id: str, four_eyes: str | None, as_json: bool, data: str | None) -> None:
    """Change how a tenant's officers work; a running server follows within seconds.

    Example: vettance aml set --tenant ten_0190… --four-eyes on
    """
    if four_eyes is None:
        fail("nothing to change; name --four-eyes")

    async def work(store: Store) -> Settings:
        known = sql.settings_of(await store.read(sql.select_settings(tenant_id)))
        changed = msgspec.structs.replace(known, four_eyes=four_eyes == "on")
        await store.write(
            sql.save_settings(tenant_id, changed),
            note_change(sql.AREA, tenant_id, "settings", _now_ms()),
        )
        return changed

    changed: Settings = _run(data, tenant_id, work)
    text = f"Closing a case needs {'two officers' if changed.four_eyes else 'one officer'}."
    show({"tenantId": tenant_id, "fourEyes": changed.four_eyes}, text, as_json=as_json)


def _admitted(file: Path, data: str | None) -> tuple[str, Compiled]:
    """Pass a rule set through the gate; any fault ends the command."""
    settings = settings_of(data)
    countries = Jurisdictions(settings.aml_call_for_action, settings.aml_high_risk, settings.aml_sanctioned)
    trial = Trial(MemoryVelocity())
    try:
        document = file.read_text("utf-8")
        return document, admit(read_ruleset(document), aml_schema(countries), trial.parse, trial.maker())
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read as UTF-8 text: {error}")
    except RuleSetRefused as refused:
        fail(f"{file} is refused.\n{refused}")


@aml.command("check")
@_file_argument
@json_option
@data_option
def check_file(file: Path, as_json: bool, data: str | None) -> None:
    """Pass FILE through the gate that saving passes: shape, language, types, cost, and its own tests.

    Example: vettance aml check aml-rules.yaml
    """
    _, compiled = _admitted(file, data)
    found = {"rules": len(compiled.rule_ids), "cost": compiled.cost}
    show(found, f"{file} is good: {found['rules']} rules, cost {found['cost']}.", as_json=as_json)


@aml.command("push")
@_file_argument
@_tenant_option
@click.option("--note", default="", help="What changed.")
@json_option
@data_option
def push_file(file: Path, tenant_id: str, note: str, as_json: bool, data: str | None) -> None:
    """Save FILE as a tenant's new AML rules; a running server follows within seconds.

    Example: vettance aml push aml-rules.yaml --tenant ten_0190…
    """
    document, _ = _admitted(file, data)

    async def work(store: Store) -> int:
        newest = await store.read(sql.select_ruleset(tenant_id))
        version: int = newest[0][0] + 1 if newest else 1
        try:
            await store.write(
                sql.insert_ruleset(tenant_id, version, document, note, _now_ms()),
                note_change(sql.AREA, tenant_id, str(version), _now_ms()),
            )
        except Clash:
            fail("somebody else pushed a version at the same moment; pull, compare, and push again")
        return version

    version: int = _run(data, tenant_id, work)
    show({"tenantId": tenant_id, "version": version}, f"Version {version} is in force.", as_json=as_json)


@aml.command("pull")
@_tenant_option
@data_option
def pull_file(tenant_id: str, data: str | None) -> None:
    """Write the AML rules in force; those of the default pack when the tenant has none of its own yet.

    Example: vettance aml pull --tenant ten_0190… > aml-rules.yaml
    """

    async def work(store: Store) -> str:
        rows = await store.read(sql.select_ruleset(tenant_id))
        return str(rows[0][1]) if rows else load_pack_text("aml")

    click.echo(_run(data, tenant_id, work), nl=False)
