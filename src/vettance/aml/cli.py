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
    VERSION,
    compare_options,
    data_option,
    fail,
    json_option,
    run_for_tenant,
    settings_of,
    show,
    show_table,
    write_document,
)
from vettance.db.engine import Clash, Store
from vettance.rules.compiler import Compiled
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import RuleSetRefused, admit, diff, read_ruleset
from vettance.state.memory import MemoryVelocity
from vettance.tenants.sql import note_change
from vettance.wire import timestamp

_tenant_option = click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose.")
_file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_SWITCH = click.Choice(["on", "off"])


@click.group()
def aml() -> None:
    """Set how officers work; check, push, pull, list and compare AML rules.

    Example: vettance aml set --tenant ten_0190… --four-eyes on
    """


aml.add_command(set_screening)


@aml.command("set")
@_tenant_option
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


def _admitted(file: Path, data: str | None) -> tuple[str, Compiled]:
    """Pass a rule set through the gate; any fault ends the command."""
    settings = settings_of(data)
    countries = Jurisdictions(settings.aml_call_for_action, settings.aml_high_risk, settings.aml_sanctioned)
    trial, document = Trial(MemoryVelocity()), _read(file)
    try:
        return document, admit(read_ruleset(document), aml_schema(countries), trial.parse, trial.maker())
    except RuleSetRefused as refused:
        fail(f"{file} is refused.\n{refused}")


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read as UTF-8 text: {error}")


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
                sql.insert_ruleset(tenant_id, version, document, note, clock.now_ms()),
                note_change(sql.AREA, tenant_id, str(version), clock.now_ms()),
            )
        except Clash:
            fail("somebody else pushed a version at the same moment; pull, compare, and push again")
        return version

    version = run_for_tenant(data, tenant_id, work)
    show({"tenantId": tenant_id, "version": version}, f"Version {version} is in force.", as_json=as_json)


@aml.command("pull")
@_tenant_option
@click.option("--version", type=VERSION, help="Which version; the one in force when left out.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output."
)
@json_option
@data_option
def pull_file(
    tenant_id: str, version: int | None, output: Path | None, as_json: bool, data: str | None
) -> None:
    """Write the AML rules in force; those of the default pack when the tenant has none of its own yet.

    With --json, the version of the default pack is null.

    Example: vettance aml pull --tenant ten_0190… --output aml-rules.yaml
    """
    found, document = run_for_tenant(data, tenant_id, lambda store: _stored(store, tenant_id, version))
    write_document(document, {"tenantId": tenant_id, "version": found}, output, as_json=as_json)


async def _stored(store: Store, tenant_id: str, version: int | None) -> tuple[int | None, str]:
    """Return a version of a tenant's rules, those in force without a number: (its number, its text)."""
    if version is None:
        rows = await store.read(sql.select_ruleset(tenant_id))
        return (rows[0][0], rows[0][1]) if rows else (None, load_pack_text(PACK))
    rows = await store.read(sql.select_ruleset_version(tenant_id, version))
    if not rows:
        fail("there is no such version; `vettance aml list` shows them")
    return version, rows[0][0]


async def _document(store: Store, tenant_id: str, version: int | None) -> str:
    return (await _stored(store, tenant_id, version))[1]


@aml.command("list")
@_tenant_option
@json_option
@data_option
def list_versions(tenant_id: str, as_json: bool, data: str | None) -> None:
    """List the versions of a tenant's AML rules, newest first; the first is in force.

    Example: vettance aml list --tenant ten_0190…
    """
    found = run_for_tenant(data, tenant_id, lambda store: store.read(sql.select_ruleset_versions(tenant_id)))
    rows = [
        {"version": row[0], "digest": row[1][:12], "note": row[2], "createdAt": timestamp(row[3])}
        for row in found
    ]
    show_table("Versions", rows, as_json=as_json)


@aml.command("diff")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@_tenant_option
@compare_options
@json_option
@data_option
def diff_file(
    file: Path | None,
    tenant_id: str,
    version: int | None,
    to_version: int | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Show what FILE (or version --to) changes against a tenant's AML rules.

    Example: vettance aml diff aml-rules.yaml --tenant ten_0190…
    """
    if (file is None) == (to_version is None):
        fail("name a FILE or --to, and not both")

    async def work(store: Store) -> tuple[str, str]:
        old = await _document(store, tenant_id, version)
        return old, _read(file) if file is not None else await _document(store, tenant_id, to_version)

    old, new = run_for_tenant(data, tenant_id, work)
    try:
        changes = diff(read_ruleset(old), read_ruleset(new))
    except RuleSetRefused as refused:
        fail(f"{file or 'A stored version'} is refused.\n{refused}")
    show_table("Changes", [change._asdict() for change in changes], as_json=as_json)
