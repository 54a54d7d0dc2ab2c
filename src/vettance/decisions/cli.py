"""The command line of rule sets: check and test files, push and pull versions."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from vettance.commands import (
    compare_options,
    data_option,
    fail,
    json_option,
    open_store,
    show,
    show_table,
    write_document,
)
from vettance.db.engine import Clash, Store
from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.rules import sql
from vettance.rules.compiler import Compiled
from vettance.rules.packs import load_pack_text, pack_names
from vettance.rules.ruleset import RuleSet, RuleSetRefused, admit, compile_ruleset, diff, read_ruleset
from vettance.rules.trial import try_rule
from vettance.state.memory import MemoryVelocity
from vettance.tenants.cli import find_tenant
from vettance.tenants.sql import note_change
from vettance.wire import BODY_BYTES_MAX, JSON, timestamp

tenant_option = click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose rules.")
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def rules() -> None:
    """Check, test, push, pull, list and compare rule sets.

    Example: vettance rules check rules.yaml
    """


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read as UTF-8 text: {error}")


def _admit(document: str, name: str) -> tuple[RuleSet, Compiled]:
    """Pass a document through the one gate; every fault is shown, and any ends the command."""
    try:
        ruleset = read_ruleset(document)
        return ruleset, admit(ruleset, fraud_schema(), _parse, MemoryVelocity)
    except RuleSetRefused as refused:
        fail(f"{name} is refused.\n{refused}")


def _parse(body: JSON, now_ms: int) -> Any:
    return read_event(body, BODY_BYTES_MAX, now_ms)


def _run(data: str | None, work: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    async def whole() -> Any:
        async with open_store(data) as (store, _):
            return await work(store)

    return asyncio.run(whole())


@rules.command("check")
@file_argument
@json_option
def check_file(file: Path, as_json: bool) -> None:
    """Pass FILE through the gate that saving passes: shape, language, types, cost, and its own tests.

    Example: vettance rules check rules.yaml
    """
    ruleset, compiled = _admit(_read(file), str(file))
    plan = compiled.plan
    found = {
        "name": ruleset.name,
        "rules": len(ruleset.rules),
        "running": len(ruleset.running),
        "tests": sum(len(rule.tests) for rule in ruleset.rules),
        "aggregates": len(plan.aggregates),
        "series": len(plan.series),
        "cost": compiled.cost,
    }
    text = (
        f"{file} is good: {found['rules']} rules ({found['running']} running), {found['tests']} tests "
        "passed, "
        f"{found['aggregates']} aggregates over {found['series']} series, cost {found['cost']}."
    )
    show(found, text, as_json=as_json)


@rules.command("test")
@file_argument
@click.option("--rule", "rule_id", metavar="ID", help="Only the tests of this rule.")
@json_option
def test_file(file: Path, rule_id: str | None, as_json: bool) -> None:
    """Run the tests that the rules of FILE bring along, and show each.

    Example: vettance rules test rules.yaml --rule card-testing
    """
    try:
        ruleset = read_ruleset(_read(file))
        compiled = compile_ruleset(ruleset, fraud_schema())
    except RuleSetRefused as refused:
        fail(f"{file} is refused.\n{refused}")
    rows = []
    for index, rule in enumerate(ruleset.running):
        if rule_id not in (None, rule.id):
            continue
        for test in rule.tests:
            fault = try_rule(compiled, index, test, _parse, MemoryVelocity())
            rows.append({"rule": rule.id, "test": test.name, "passed": fault is None, "fault": fault})
    if rule_id is not None and not rows:
        fail(f"{file} has no running rule {rule_id} with tests")
    show_table("Rule tests", rows, as_json=as_json)
    if not all(row["passed"] for row in rows):
        raise SystemExit(1)


@rules.command("push")
@file_argument
@tenant_option
@click.option("--note", default="", help="What changed, for the list of versions.")
@json_option
@data_option
def push_file(file: Path, tenant_id: str, note: str, as_json: bool, data: str | None) -> None:
    """Save FILE as a tenant's new version and put it into force; a running server follows within seconds.

    Example: vettance rules push rules.yaml --tenant ten_0190… --note "Lower the login limit"
    """
    document = _read(file)
    _admit(document, str(file))

    async def work(store: Store) -> int:
        await find_tenant(store, tenant_id)
        newest = await store.read(sql.select_newest_of(tenant_id))
        version = newest[0][0] + 1 if newest else 1
        now_ms = time.time_ns() // 1_000_000
        try:
            await store.write(
                sql.insert_version(tenant_id, version, document, note, now_ms),
                note_change(sql.AREA, tenant_id, str(version), now_ms),
            )
        except Clash:
            fail("somebody else pushed a version at the same moment; pull, compare, and push again")
        return version

    version: int = _run(data, work)
    show({"tenantId": tenant_id, "version": version}, f"Version {version} is in force.", as_json=as_json)


@rules.command("pull")
@tenant_option
@click.option("--version", type=click.IntRange(1), help="Which version; the one in force when left out.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output."
)
@json_option
@data_option
def pull_file(
    tenant_id: str, version: int | None, output: Path | None, as_json: bool, data: str | None
) -> None:
    """Write a tenant's rule set as it was pushed.

    Example: vettance rules pull --tenant ten_0190… --output rules.yaml
    """
    found, document = _run(data, lambda store: _stored(store, tenant_id, version))
    write_document(document, {"tenantId": tenant_id, "version": found}, output, as_json=as_json)


async def _stored(store: Store, tenant_id: str, version: int | None) -> tuple[int, str]:
    """Return a version of a tenant's rules, the one in force without a number: (its number, its text)."""
    await find_tenant(store, tenant_id)
    if version is None:
        rows = await store.read(sql.select_newest_of(tenant_id))
        found = [(row[0], row[1]) for row in rows]
    else:
        rows = await store.read(sql.select_version(tenant_id, version))
        found = [(version, row[0]) for row in rows]
    if not found:
        fail("there is no such version; `vettance rules list` shows them")
    return found[0]


async def _document(store: Store, tenant_id: str, version: int | None) -> str:
    return (await _stored(store, tenant_id, version))[1]


@rules.command("diff")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@tenant_option
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
    """Show what FILE (or version --to) changes against a tenant's rule set.

    Example: vettance rules diff rules.yaml --tenant ten_0190…
    """
    if (file is None) == (to_version is None):
        fail("name a FILE or --to, and not both")

    async def work(store: Store) -> tuple[str, str]:
        old = await _document(store, tenant_id, version)
        return old, _read(file) if file is not None else await _document(store, tenant_id, to_version)

    old, new = _run(data, work)
    try:
        changes = diff(read_ruleset(old), read_ruleset(new))
    except RuleSetRefused as refused:
        fail(f"{file or 'A stored version'} is refused.\n{refused}")
    show_table("Changes", [change._asdict() for change in changes], as_json=as_json)


@rules.command("list")
@tenant_option
@json_option
@data_option
def list_versions(tenant_id: str, as_json: bool, data: str | None) -> None:
    """List the versions of a tenant's rule set, newest first; the first is in force.

    Example: vettance rules list --tenant ten_0190…
    """

    async def work(store: Store) -> Any:
        await find_tenant(store, tenant_id)
        return await store.read(sql.select_versions(tenant_id))

    rows = [
        {"version": row[0], "digest": row[1][:12], "note": row[2], "createdAt": timestamp(row[3])}
        for row in _run(data, work)
    ]
    show_table("Versions", rows, as_json=as_json)


@rules.command("pack")
@click.argument("name", default="fraud")
@json_option
def show_pack(name: str, as_json: bool) -> None:
    """Write a pack that comes with the service, to start a rule set of your own from.

    Example: vettance rules pack fraud > rules.yaml
    """
    if name not in pack_names():
        fail(f"there is no pack {name}; there are {', '.join(pack_names())}")
    write_document(load_pack_text(name), {"pack": name}, None, as_json=as_json)
