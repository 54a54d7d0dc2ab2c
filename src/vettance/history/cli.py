"""The command line of rule sets: check and test files, push and pull versions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vettance.commands import (
    counted,
    data_option,
    force_option,
    from_option,
    json_option,
    keep_existing,
    output_option,
    progress,
    run_for_tenant,
    settings_of,
    show,
    show_table,
    to_option,
    whole_file,
)
from vettance.db.engine import Store
from vettance.history.remote_backtest_cli import (
    expect_option,
    met_line,
    met_out,
    read_expectations,
    remote_backtest,
    wait_option,
)
from vettance.quality.cli import add_quality_command
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.rules.rule_file import file_argument
from vettance.rules.ruleset_cli import Versions
from vettance.rules.sql import DECIDING
from vettance.snoozes.cli import add_snooze_commands
from vettance.wire.payload import encode

if TYPE_CHECKING:
    from vettance.rules.gate import Context

if TYPE_CHECKING:
    from vettance.history.backtest import Backtest, ChangedDecision
    from vettance.history.backtest_result import MetExpectation
    from vettance.rules.rule import Rule
    from vettance.wire.payload import JSON

PACK = "fraud"
END_MS = 2**62  # Later than anything happens.


@click.group()
def rules() -> None:
    """Check, test, push, pull, list and compare rule sets.

    Example: vettance rules check rules.yaml
    """


def _context(data: str | None = None) -> Context:
    from vettance.decisions.features import fraud_schema
    from vettance.decisions.rule_context import fraud_context
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    return fraud_context(MemoryVelocity, fraud_schema(scales=settings_of(data).jurisdictions.scales))


@rules.command("backtest")
@file_argument
@tenant_or_server
@from_option
@to_option
@expect_option("fraud.caught >= 0.8")
@wait_option
@output_option("A file for the events that would be decided otherwise, as JSON lines.")
@force_option
@json_option
@data_option
def backtest_file(
    file: Path,
    tenant_id: str,
    server: RemoteRules | None,
    from_ms: int | None,
    to_ms: int | None,
    expected: tuple[str, ...],
    waits: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Decide a tenant's past events by FILE, and show what would have been different; nothing is changed.

    Without --from and --to, all events that are kept. --expect holds a share of all events, of those labelled
    fraud or of those labelled legit to a bound: caught (reviewed or denied), reviewed, denied, approved.

    Example: vettance rules backtest rules.yaml --tenant ten_0190… --from 2026-01-01 --output changed.ndjson
    """
    from vettance.decisions.active_rulesets import active_rules
    from vettance.history.backtest import Backtest
    from vettance.history.backtest_result import FRAUD_WORDS, decisions_out, meet
    from vettance.history.sql import count_after
    from vettance.rules.rule_file import admit_file
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    keep_existing(out, force=force)
    expectations = read_expectations(expected, FRAUD_WORDS)
    if server is not None:
        remote_backtest(server, file, (from_ms, to_ms), expectations, waits=waits, as_json=as_json)
        return
    context = _context(data)
    admitted = admit_file(file, context, is_trial=True)
    ruleset, compiled = admitted.ruleset, admitted.compiled
    active = active_rules(0, "", ruleset, compiled)

    async def work(store: Store) -> Backtest:
        run = Backtest(store, tenant_id, active, MemoryVelocity, schema=context.schema)
        total = (await store.read(count_after(tenant_id, 0)))[0][0] if from_ms is None else None
        span = from_ms or 0, END_MS if to_ms is None else to_ms
        with ExitStack() as stack:
            changes = stack.enter_context(whole_file(out)) if out else None
            advance = stack.enter_context(progress("Deciding", total, only_reads=True))
            await run.run(span, lambda change: changes and changes.write(_line_of(change)), advance)
        return run

    run = run_for_tenant(data, tenant_id, work)
    met = meet(expectations, decisions_out(run))
    _show(run, ruleset.running, met, admitted.missed_out, as_json=as_json)
    if not all(one.is_met for one in met):
        raise SystemExit(1)


def _show(
    run: Backtest,
    rules: Sequence[Rule],
    met: Sequence[MetExpectation],
    missed: Sequence[JSON],
    *,
    as_json: bool,
) -> None:
    """Say what a backtest found."""
    from vettance.decisions.decision import LOWERCASE, Outcome

    found = [
        {
            "rule": rule.id,
            "mode": rule.mode,
            "score": rule.score,
            **{name: getattr(hits, name) for name in ("fired", "fraud", "legit", "alone", "failed")},
        }
        for rule, hits in zip(rules, run.hits, strict=True)
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
        told = {"decisions": decisions, "rules": found, "failedTests": missed, "expectations": met_out(met)}
        show(told, "", as_json=True)
        return
    total = sum(run.counts.values())
    changed = sum(number for (_, was, now), number in run.counts.items() if was is not now)
    if not total:
        click.echo("There are no events of this time.")
        return
    click.echo(f"{counted(total, 'event')} decided anew, {changed or 'none'} of them otherwise.")
    show_table("Decisions", [row for row in decisions if row["count"]], as_json=False)
    fired = [row for row in found if row["fired"] or row["failed"]]
    show_table("Rules that fired, and on events labelled as what", fired, as_json=False)
    idle = len(found) - len(fired)
    click.echo(f"{counted(idle, 'running rule')} fired on nothing." if idle else "Every running rule fired.")
    for one in met:
        click.echo(met_line(one))


def _line_of(change: ChangedDecision) -> bytes:
    from vettance.history.backtest_result import flip_out

    return encode(flip_out(change)) + b"\n"


add_quality_command(rules)
add_snooze_commands(rules, DECIDING)
Versions(
    group=rules,
    noun="rule set",
    example="rules.yaml",
    pack=PACK,
    context=_context,
    path="",
    note="Lower the login limit",
    objection="It stops our best customers",
    kept=DECIDING,
    implied=False,
).add_commands()
