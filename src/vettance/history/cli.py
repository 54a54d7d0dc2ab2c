"""The command line of rule sets: check and test files, push and pull versions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

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
    show,
    show_table,
    to_option,
    whole_file,
)
from vettance.db.engine import Store
from vettance.rules.rule_file import file_argument
from vettance.rules.ruleset_cli import Versions, tenant_option
from vettance.rules.sql import DECIDING
from vettance.wire.payload import JSON, encode, timestamp

if TYPE_CHECKING:
    from vettance.rules.gate import Context

if TYPE_CHECKING:
    from vettance.history.backtest import Backtest, ChangedDecision

PACK = "fraud"
END_MS = 2**62  # Later than anything happens.


@click.group()
def rules() -> None:
    """Check, test, push, pull, list and compare rule sets.

    Example: vettance rules check rules.yaml
    """


def _parse(body: JSON, now_ms: int) -> Any:
    from vettance.events.event import read_event

    return read_event(body, encode(body), now_ms)


def _context(_data: str | None = None) -> Context:
    from vettance.decisions.features import fraud_schema
    from vettance.rules.gate import Context
    from vettance.rules.packs import default_pack
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    return Context(fraud_schema(), _parse, MemoryVelocity, default_pack(PACK))


@rules.command("backtest")
@file_argument
@tenant_option
@from_option
@to_option
@output_option("A file for the events that would be decided otherwise, as JSON lines.")
@force_option
@json_option
@data_option
def backtest_file(
    file: Path,
    tenant_id: str,
    from_ms: int | None,
    to_ms: int | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Decide a tenant's past events by FILE, and show what would have been different; nothing is changed.

    Without --from and --to, all events that are kept.

    Example: vettance rules backtest rules.yaml --tenant ten_0190… --from 2026-01-01 --output changed.ndjson
    """
    from vettance.decisions.active_rulesets import ActiveRules
    from vettance.decisions.decision import LOWERCASE, Outcome, decide
    from vettance.history.backtest import Backtest
    from vettance.history.sql import count_after
    from vettance.rules.rule_file import admit_file
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    keep_existing(out, force=force)
    admitted = admit_file(file, _context())
    ruleset, compiled = admitted.ruleset, admitted.compiled
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


def _line_of(change: ChangedDecision) -> bytes:
    from vettance.decisions.decision import LOWERCASE

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


Versions(rules, "rule set", "rules.yaml", PACK, _context, DECIDING, implied=False).add_commands()
