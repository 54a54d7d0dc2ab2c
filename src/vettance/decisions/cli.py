"""The command line of rule sets: check and test files, push and pull versions."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from vettance.commands import (
    data_option,
    fail,
    json_option,
    progress,
    read_time,
    run_for_tenant,
    show,
    show_table,
    whole_file,
    write_document,
)
from vettance.db.engine import Store
from vettance.decisions.active import ActiveRules
from vettance.decisions.backtest import Backtest, Change
from vettance.decisions.decision import LOWERCASE, Outcome, decide
from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.history.sql import count_after
from vettance.rules.compiler import Compiled
from vettance.rules.packs import load_pack_text, pack_names
from vettance.rules.ruleset import RuleSet, RuleSetRefused, admit, compile_ruleset, read_ruleset
from vettance.rules.sql import DECIDING
from vettance.rules.trial import try_rule
from vettance.state.memory import MemoryVelocity
from vettance.versions import Versions, file_argument, read_rules, tenant_option
from vettance.wire import JSON, encode, timestamp

END_MS = 2**62  # Later than anything happens.


@click.group()
def rules() -> None:
    """Check, test, push, pull, list and compare rule sets.

    Example: vettance rules check rules.yaml
    """


def _admit(document: str, name: str) -> tuple[RuleSet, Compiled]:
    """Pass a document through the one gate; every fault is shown, and any ends the command."""
    try:
        ruleset = read_ruleset(document)
        return ruleset, admit(ruleset, fraud_schema(), _parse, MemoryVelocity)
    except RuleSetRefused as refused:
        fail(f"{name} is refused.\n{refused}")


def _parse(body: JSON, now_ms: int) -> Any:
    return read_event(body, encode(body), now_ms)


@rules.command("check")
@file_argument
@json_option
def check_file(file: Path, as_json: bool) -> None:
    """Pass FILE through the gate that saving passes: shape, language, types, cost, and its own tests.

    Example: vettance rules check rules.yaml
    """
    ruleset, compiled = _admit(read_rules(file), str(file))
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
        ruleset = read_ruleset(read_rules(file))
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


@rules.command("backtest")
@file_argument
@tenant_option
@click.option("--from", "from_ms", callback=read_time, metavar="TIME", help="The first moment, inclusive.")
@click.option("--to", "to_ms", callback=read_time, metavar="TIME", help="The last moment, exclusive.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file for the events that would be decided otherwise, as JSON lines.",
)
@json_option
@data_option
def backtest_file(
    file: Path,
    tenant_id: str,
    from_ms: int | None,
    to_ms: int | None,
    out: Path | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Decide a tenant's past events by FILE, and show what would have been different; nothing is changed.

    Without --from and --to, all events that are kept.

    Example: vettance rules backtest rules.yaml --tenant ten_0190… --from 2026-01-01 --out changed.ndjson
    """
    ruleset, compiled = _admit(read_rules(file), str(file))
    active = ActiveRules(0, "", ruleset, compiled, decide(ruleset, 0, (), ()))

    async def work(store: Store) -> Backtest:
        run = Backtest(store, tenant_id, active, MemoryVelocity)
        total = (await store.read(count_after(tenant_id, 0)))[0][0] if from_ms is None else None
        span = from_ms or 0, END_MS if to_ms is None else to_ms
        with ExitStack() as stack:
            changes = stack.enter_context(whole_file(out)) if out else None
            advance = stack.enter_context(progress("Deciding", total))
            await run.run(span, lambda change: changes and changes.write(_line_of(change)), advance)
        return run

    run = run_for_tenant(data, tenant_id, work)
    found = [
        {"rule": rule.id, "mode": rule.mode, "score": rule.score, **msgspec.structs.asdict(hits)}
        for rule, hits in zip(ruleset.running, run.hits, strict=True)
    ]
    found.sort(key=lambda row: (-row["fired"], row["rule"]))
    decisions = [
        {
            "events": f"labelled {name}" if name else "all",
            "was": LOWERCASE[was],
            "count": run.count(fraud, was),
            **{f"now {LOWERCASE[now]}": run.count(fraud, was, now) for now in Outcome},
        }
        for name, fraud in (("", None), ("fraud", True), ("legit", False))
        for was in Outcome
    ]
    if as_json:
        show({"decisions": decisions, "rules": found}, "", as_json=True)
        return
    show_table("Decisions", [row for row in decisions if row["count"]], as_json=False)
    fired = [row for row in found if row["fired"] or row["failed"]]
    show_table("Rules that fired, and on events labelled as what", fired, as_json=False)
    click.echo(f"{len(found) - len(fired)} running rules fired on nothing.")


def _line_of(change: Change) -> bytes:
    return (
        encode(
            {
                "id": change.id,
                "occurredAt": timestamp(change.occurred_at_ms),
                "label": None if change.fraud is None else "fraud" if change.fraud else "legit",
                "was": LOWERCASE[change.was],
                "now": LOWERCASE[change.now.outcome],
                "scoreWas": change.score,
                "scoreNow": change.now.score,
                "reasonCodesNow": [reason.code for reason in change.now.reasons],
            }
        )
        + b"\n"
    )


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


Versions(
    rules, DECIDING, "rule set", "rules.yaml", lambda document, name, _data: _admit(document, name)
).add_commands()
