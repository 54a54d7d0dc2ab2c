"""A backtest that a running service makes: ordered, watched to its end, and held to expectations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from vettance.commands import counted, fail, progress, show, show_table

if TYPE_CHECKING:
    from vettance.history.backtest_result import Expectation, MetExpectation
    from vettance.rules.remote_rules import RemoteRules
    from vettance.wire.payload import JSON

_FIRST_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_UNDER_WAY: Final = ("queued", "running")


def remote_backtest(
    server: RemoteRules,
    document: str,
    span: Mapping[str, float | None],
    expectations: Sequence[Expectation],
    *,
    waits: bool,
    as_json: bool,
    path: str = "/backtests",
    show_result: Callable[[JSON], None] | None = None,
) -> None:
    """Have a service decide past events by a document, and show what it found; `path` says of which kind.

    Ends with exit code 1 where an expectation is not met. An interrupt cancels the job.
    """
    from vettance.history.backtest_result import meet

    body = {"document": document, **{name: at for name, at in span.items() if at is not None}}
    backtest_id = server.post(path, body)["backtestId"]
    if not waits:
        show({"backtestId": backtest_id}, f"{backtest_id} is under way.", as_json=as_json)
        return
    try:
        job = _ended(server, f"{path}/{backtest_id}")
    except KeyboardInterrupt:
        server.delete(f"{path}/{backtest_id}")
        raise
    if job["state"] != "completed":
        fail(f"{backtest_id} is {job['state']}: {job['error'] or 'somebody ended it'}", state=job["state"])
    result = job["result"]
    met = meet(expectations, result["decisions"])
    if as_json:
        show({"backtestId": backtest_id, **result, "expectations": met_out(met)}, "", as_json=True)
    else:
        (show_result or _show)(result)
        for one in met:
            click.echo(met_line(one))
    if not all(one.is_met for one in met):
        raise SystemExit(1)


def _ended(server: RemoteRules, path: str) -> JSON:
    """Wait for the end of a backtest, with a bar on a terminal."""
    pause_s, reached = _FIRST_PAUSE_S, 0.0
    with progress("Deciding", 100) as advance:
        while True:
            job: JSON = server.get(path)
            advance((job["progress"] - reached) * 100)
            reached = job["progress"]
            if job["state"] not in _UNDER_WAY:
                return job
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _PAUSE_S_MAX)


def _show(result: JSON) -> None:
    if not result["events"]:
        click.echo("There are no events of this time.")
    else:
        changed = result["flips"]["count"]
        total = counted(result["events"], "event")
        click.echo(f"{total} decided anew, {changed or 'none'} of them otherwise.")
        rows: list[dict[str, Any]] = [
            {"events": "all" if name == "all" else f"labelled {name}", "when": when, **answers}
            for name, sides in result["decisions"].items()
            for when, answers in sides.items()
            if sum(answers.values())
        ]
        show_table("Decisions", rows, as_json=False)
        names = ("ruleId", "mode", "fired", "fraud", "legit", "alone", "failed")
        fired = [one for one in result["rules"] if one["fired"] or one["failed"]]
        fired.sort(key=lambda one: (-one["fired"], one["ruleId"]))
        table = [{name: one[name] for name in names} for one in fired]
        show_table("Rules that fired, and on events labelled as what", table, as_json=False)


def met_line(one: MetExpectation) -> str:
    """Say of an expectation whether it is met."""
    shown = "no such events" if one.share is None else f"{one.share:.6f}".rstrip("0").rstrip(".")
    return f"{'met' if one.is_met else 'not met'}: {one.expectation.text} ({shown})"


def met_out(met: Sequence[MetExpectation]) -> list[JSON]:
    """Write expectations as scripts read them."""
    return [{"expectation": one.expectation.text, "found": one.share, "met": one.is_met} for one in met]
