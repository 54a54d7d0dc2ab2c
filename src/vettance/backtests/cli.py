"""The command that tries AML rules on past events; it belongs to the group `vettance aml`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vettance.aml.cli import aml
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
from vettance.history.remote_backtest_cli import (
    expect_option,
    met_line,
    met_out,
    read_expectations,
    remote_backtest,
    wait_option,
)
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.rules.rule_file import file_argument
from vettance.wire.payload import JSON, encode

if TYPE_CHECKING:
    from vettance.backtests.aml_backtest import AmlBacktest, TriedEvent
    from vettance.db.engine import Store
    from vettance.history.backtest_result import Expectation

__all__ = ["aml"]


@aml.command("backtest")
@file_argument
@tenant_or_server
@from_option
@to_option
@expect_option("true.alerted >= 0.95")
@wait_option
@output_option("A file for the events that would alert, or not any more, as JSON lines.")
@force_option
@json_option
@data_option
def backtest_aml(
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
    """Watch a tenant's past AML events by FILE, and show which alerts would differ; nothing is changed.

    Without --from and --to, all events that are kept. --expect holds a share of all events, of those whose
    alerts turned out true or of those whose alerts turned out false to a bound: alerted, or clear.

    Example: vettance aml backtest aml-rules.yaml --tenant ten_0190… --expect 'true.alerted >= 0.95'
    """
    from vettance.backtests.aml_backtest_result import AML_WORDS

    keep_existing(out, force=force)
    expectations = read_expectations(expected, AML_WORDS)
    if server is not None:
        remote_backtest(
            *(server, file, (from_ms, to_ms), expectations),
            waits=waits,
            as_json=as_json,
            path="/aml/backtests",
            show_result=_show,
        )
        return
    _try_here(file, tenant_id, (from_ms, to_ms), expectations, out, as_json=as_json, data=data)


def _try_here(
    file: Path,
    tenant_id: str,
    span: tuple[int | None, int | None],
    expectations: list[Expectation],
    out: Path | None,
    *,
    as_json: bool,
    data: str | None,
) -> None:
    from vettance.aml.aml_rule_context import aml_context
    from vettance.backtests.aml_backtest import AmlBacktest
    from vettance.backtests.aml_backtest_result import aml_backtest_result
    from vettance.backtests.aml_backtest_sql import count_events
    from vettance.backtests.backtest_job import END_MS, SAMPLES
    from vettance.decisions.active_rulesets import active_rules
    from vettance.history.backtest_result import meet
    from vettance.rules.rule_file import admit_file
    from vettance.velocity.memory.memory_velocity import MemoryVelocity

    admitted = admit_file(file, aml_context(settings_of(data).jurisdictions, MemoryVelocity()), is_trial=True)
    active = active_rules(0, "", admitted.ruleset, admitted.compiled)
    samples: list[TriedEvent] = []

    async def work(store: Store) -> AmlBacktest:
        run = AmlBacktest(store, tenant_id, active, MemoryVelocity)
        total = (await store.read(count_events(tenant_id)))[0][0] if span[0] is None else None
        with ExitStack() as stack:
            flips = stack.enter_context(whole_file(out)) if out else None

            def keep(tried: TriedEvent) -> None:
                if tried.is_flip and len(samples) < SAMPLES:
                    samples.append(tried)
                if tried.is_flip and flips is not None:
                    flips.write(_line_of(tried))

            advance = stack.enter_context(progress("Watching", total))
            await run.run((span[0] or 0, END_MS if span[1] is None else span[1]), keep, advance)
        return run

    result = aml_backtest_result(run_for_tenant(data, tenant_id, work), samples)
    met = meet(expectations, result["decisions"])
    if as_json:
        show({**result, "failedTests": admitted.missed_out, "expectations": met_out(met)}, "", as_json=True)
    else:
        _show(result)
        for one in met:
            click.echo(met_line(one))
    if not all(one.is_met for one in met):
        raise SystemExit(1)


def _show(result: JSON) -> None:
    """Say what a backtest found."""
    if not result["events"]:
        click.echo("There are no events of this time.")
        return
    changed = result["flips"]["count"]
    total = counted(result["events"], "event")
    click.echo(f"{total} watched anew, {changed or 'none'} of them with another end.")
    events: list[dict[str, Any]] = [
        {"events": "all" if name == "all" else f"with {name} alerts", "when": when, **answers}
        for name, sides in result["decisions"].items()
        for when, answers in sides.items()
        if sum(answers.values())
    ]
    show_table("Events", events, as_json=False)
    alerts = [{"when": when, **ends} for when, ends in result["alerts"].items()]
    show_table("Alerts", alerts, as_json=False)
    fired = [one for one in result["rules"] if one["fired"] or one["failed"] or one["before"]["raised"]]
    fired.sort(key=lambda one: (-one["fired"], one["ruleId"]))
    table = [
        {
            "rule": one["ruleId"],
            "mode": one["mode"],
            "fired": one["fired"],
            "alone": one["alone"],
            "alerts before": one["before"]["raised"],
            "after": one["after"]["raised"],
            "true": one["after"]["trueMatches"],
            "false": one["after"]["falsePositives"],
            "failed": one["failed"],
        }
        for one in fired
    ]
    show_table("Rules that fired, and the alerts they raised", table, as_json=False)


def _line_of(tried: TriedEvent) -> bytes:
    from vettance.backtests.aml_backtest_result import aml_flip_out

    return encode(aml_flip_out(tried)) + b"\n"
