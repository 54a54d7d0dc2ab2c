"""The command that has rules, a threshold or scores suggested, added to those of fraud rules."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vettance.commands import (
    counted,
    data_option,
    fail,
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
from vettance.history.cli import END_MS, rules
from vettance.option_types import Decimal
from vettance.rules.remote_rules import RemoteRules, tenant_or_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vettance.db.engine import Store
    from vettance.suggestions.suggestion_order import SuggestionOrder
    from vettance.wire.payload import JSON

__all__ = ["rules"]

_FIRST_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_UNDER_WAY: Final = ("queued", "running")


@rules.command("suggest")
@tenant_or_server
@click.option("--threshold", "rule_id", metavar="RULE", help="Draw the curve of a rule's number instead.")
@click.option("--weights", is_flag=True, help="Fit the scores of the rules in force instead.")
@click.option(
    "--precision",
    type=Decimal(0, 1, min_open=True),
    metavar="P",
    help="With --threshold: the number that reaches this precision.",
)
@click.option(
    "--load",
    type=Decimal(0),
    metavar="N",
    help="With --threshold: the number that keeps all reviews within so many a day.",
)
@from_option
@to_option
@output_option("A file for the draft: the rules in force with what is suggested.")
@force_option
@json_option
@data_option
def suggest_rules(
    tenant_id: str,
    server: RemoteRules | None,
    rule_id: str | None,
    weights: bool,
    precision: float | None,
    load: float | None,
    from_ms: int | None,
    to_ms: int | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Suggest new rules from labels, or a threshold of a rule, or scores; nothing is changed.

    New rules come as a draft, in shadow, each measured on a later time that was not looked at to find it. It
    needs fifty events labelled as fraud. Without --from and --to, all events that are kept.

    Example: vettance rules suggest --tenant ten_0190… --output draft.yaml
    """
    from vettance.suggestions.suggestion_order import SuggestionOrder

    if rule_id is not None and weights:
        raise click.UsageError("give one of --threshold and --weights")
    if rule_id is None and (precision is not None or load is not None):
        raise click.UsageError("--precision and --load belong to --threshold")
    if precision is not None and load is not None:
        raise click.UsageError("give one of --precision and --load")
    if rule_id is not None and out is not None:
        raise click.UsageError("--threshold makes no draft; leave out --output")
    keep_existing(out, force=force)
    if server is not None:
        kind = "threshold" if rule_id is not None else "weights" if weights else "rules"
        span = {"from": from_ms and from_ms / 1000, "to": to_ms and to_ms / 1000}
        asked = {"kind": kind, "ruleId": rule_id, "precision": precision, "load": load, **span}
        found = _remote(server, {name: value for name, value in asked.items() if value is not None})
    else:
        order = SuggestionOrder(
            "threshold" if rule_id is not None else "weights" if weights else "rules",
            from_ms or 0,
            END_MS if to_ms is None else to_ms,
            rule_id,
            precision,
            load,
        )
        scales = settings_of(data).jurisdictions.scales
        found = run_for_tenant(data, tenant_id, lambda store: _local(store, tenant_id, order, scales))
    draft = found.get("draft")
    if out is not None and draft is not None:
        with whole_file(out) as file:
            file.write(draft.encode())
    if as_json:
        show(found, "", as_json=True)
        return
    _SHOWN[found["kind"]](found)
    if out is not None:
        click.echo(f"The draft is in {out}." if draft is not None else "There is no draft: nothing changes.")


def _read_share(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Read `1%` or `0.01`."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise click.BadParameter("must be a share above 0 and below 1, such as 1% or 0.01")
    return share


@rules.command("calibrate")
@tenant_or_server
@click.option(
    "--hold",
    "hold",
    required=True,
    metavar="SHARE",
    callback=_read_share,
    help="The share of ordinary events to hold, such as 1% or 0.01.",
)
@from_option
@to_option
@output_option("A file for the proposal: the rules in force with other numbers.")
@force_option
@json_option
@data_option
def calibrate(
    tenant_id: str,
    server: RemoteRules | None,
    hold: float,
    from_ms: int | None,
    to_ms: int | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Propose numbers by which the rules hold a share of a tenant's own traffic; nothing is changed.

    Decides the events anew, says what each rule holds of them, and which numbers would meet the share in all.
    Events labelled as fraud are not ordinary. Without --from and --to, all events that are kept.

    Example: vettance rules calibrate --tenant ten_0190… --hold 1% --from 2026-01-01 --output calibrated.yaml
    """
    from vettance.suggestions.suggestion_order import SuggestionOrder

    keep_existing(out, force=force)
    if server is not None:
        span = {"from": from_ms and from_ms / 1000, "to": to_ms and to_ms / 1000}
        asked = {"kind": "calibration", "hold": hold, **span}
        found = _remote(server, {name: value for name, value in asked.items() if value is not None})
    else:
        end_ms = END_MS if to_ms is None else to_ms
        order = SuggestionOrder("calibration", from_ms or 0, end_ms, hold=hold)
        scales = settings_of(data).jurisdictions.scales
        found = run_for_tenant(data, tenant_id, lambda store: _local(store, tenant_id, order, scales))
    draft = found["draft"]
    if out is not None and draft is not None:
        with whole_file(out) as file:
            file.write(draft.encode())
    if as_json:
        show(found, "", as_json=True)
        return
    _show_calibration(found)
    if out is not None:
        click.echo(f"The proposal is in {out}." if draft is not None else "There is none: nothing changes.")


async def _local(store: Store, tenant_id: str, order: SuggestionOrder, scales: Mapping[str, float]) -> JSON:
    from vettance.suggestions.suggest import NoSuggestion, suggest

    reached = 0.0
    with progress("Looking", 100, only_reads=True) as advance:

        def say(share: float) -> None:
            nonlocal reached
            advance((share - reached) * 100)
            reached = share

        try:
            return await suggest(store, tenant_id, order, say, scales)
        except NoSuggestion as reason:
            fail(str(reason), **reason.details)


def _remote(server: RemoteRules, body: JSON) -> JSON:
    """Order a suggestion and wait for its end. An interrupt cancels it."""
    suggestion_id = server.post("/rules/suggestions", body)["suggestionId"]
    path = f"/rules/suggestions/{suggestion_id}"
    pause_s, reached = _FIRST_PAUSE_S, 0.0
    try:
        with progress("Looking", 100, only_reads=True) as advance:
            while True:
                job: JSON = server.get(path)
                advance((job["progress"] - reached) * 100)
                reached = job["progress"]
                if job["state"] not in _UNDER_WAY:
                    break
                time.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _PAUSE_S_MAX)
    except KeyboardInterrupt:
        server.delete(path)
        raise
    if job["state"] != "completed":
        fail(job["error"] or f"{suggestion_id} is {job['state']}", state=job["state"])
    result: JSON = job["result"]
    return result


def _show_rules(found: JSON) -> None:
    learned, measured = found["learned"], found["measured"]
    click.echo(
        f"Learned from {counted(learned['frauds'], 'fraud')} of {learned['from']} to {learned['to']}."
        f"\nMeasured on {counted(measured['frauds'], 'fraud')} of {measured['from']} to {measured['to']}, "
        f"{measured['approvedFrauds']} of which were approved."
    )
    if not found["suggestions"]:
        click.echo("No rule was found that is right more often than not.")
    for number, one in enumerate(found["suggestions"], 1):
        adds = one["adds"]
        click.echo(f"\n{number}. {one['rule']['when']}")
        click.echo(
            f"   precision {_percent(one['precision'])}, recall {_percent(one['recall'])}; "
            f"{one['hitsPerDay']} hits a day; stops {counted(adds['fraud'], 'fraud')} more "
            f"and {counted(adds['notFraud'], 'event')} that {'is' if adds['notFraud'] == 1 else 'are'} none"
        )


def _show_threshold(found: JSON) -> None:
    names = ("value", "hitsPerDay", "fraud", "legit", "presumedLegit", "reviewsPerDay")
    for one in found["comparisons"]:
        rows: list[dict[str, Any]] = [
            {
                **{name: point[name] for name in names},
                "precision": _percent(point["precision"]),
                "recall": _percent(point["recall"]),
            }
            for point in one["points"]
        ]
        show_table(
            f"{one['expression']} {one['sign']} {one['current']:g}, and with other numbers",
            rows,
            as_json=False,
        )
        if one["suggested"] is not None:
            click.echo(f"Suggested: {one['sign']} {one['suggested']['value']:g}")
            click.echo(f"  when: {one['suggested']['when']}")


def _show_weights(found: JSON) -> None:
    changed = [one for one in found["rules"] if one["score"] != one["suggested"]]
    if not changed:
        click.echo("The scores are as the labels say.")
        return
    show_table("Scores", changed, as_json=False)
    rows: list[dict[str, Any]] = [
        {"events": "all" if name == "all" else f"labelled {name}", "when": when, **answers}
        for name, sides in found["decisions"].items()
        for when, answers in sides.items()
    ]
    show_table("Decisions of the later time", rows, as_json=False)
    click.echo(f"{counted(found['changed']['all'], 'decision')} would be another.")


def _show_calibration(found: JSON) -> None:
    before, after, review = found["held"]["before"], found["held"]["after"], found["review"]
    click.echo(
        f"Of {counted(found['events'], 'event')} of {found['from']} to {found['to']}, the rules hold "
        f"{before:.2%} of the ordinary ones; proposed are {after:.2%}, asked for {found['hold']:.2%}."
    )
    frauds = found["frauds"]
    if frauds["events"]:
        click.echo(
            f"Of {counted(frauds['events'], 'labelled fraud')} {frauds['before']} are held, "
            f"and {frauds['after']} by the proposal."
        )
    held = [one for one in found["rules"] if one["held"] or _is_moved(one)]
    held.sort(key=lambda one: (-one["held"], one["ruleId"]))
    rows: list[dict[str, Any]] = [
        {
            "rule": one["ruleId"],
            **{name: f"{one[name]:.3%}" for name in ("fired", "held", "alone")},
            "alone then": f"{one['aloneAfter']:.3%}",
            "number": "–"
            if one["number"] is None
            else f"{one['number']['sign']} {one['number']['current']:g}",
            "proposed": f"{one['number']['sign']} {one['number']['suggested']:g}" if _is_moved(one) else "",
        }
        for one in held
    ]
    if rows:
        show_table("Rules that hold ordinary events", rows, as_json=False)
    if review["suggested"] != review["current"]:
        click.echo(f"Reviewed from a score of {review['suggested']} on instead of {review['current']}.")
    if not found["reached"]:
        click.echo("No number of the rules and no score brings it down to what is asked for.")
    elif found["draft"] is None:
        click.echo("The rules hold what is asked for.")


def _is_moved(one: JSON) -> bool:
    number = one["number"]
    return number is not None and number["suggested"] != number["current"]


_SHOWN: Final = {"rules": _show_rules, "threshold": _show_threshold, "weights": _show_weights}


def _percent(share: JSON | None) -> str:
    if share is None:
        return "–"
    return f"{share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
