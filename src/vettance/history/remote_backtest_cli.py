"""What backtests take on the command line, and one that a running service makes, watched to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vettance.commands import counted, fail, progress, show, show_table
from vettance.rules.remote_rules import local_only
from vettance.rules.rule_file import read_rules

if TYPE_CHECKING:
    from vettance.history.backtest_result import Expectation, ExpectationWords, MetExpectation
    from vettance.rules.remote_rules import RemoteRules
    from vettance.wire.payload import JSON

_FIRST_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_UNDER_WAY: Final = ("queued", "running")


wait_option = click.option(
    "--wait/--no-wait",
    "waits",
    default=True,
    help="With --server: show progress until the end (the default), or answer at once with the id.",
)


def expect_option(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option of what a backtest must find; `read_expectations` reads it."""
    return click.option(
        "--expect",
        "expected",
        multiple=True,
        metavar="TEXT",
        help=f"What must be so, such as '{example}'; may be repeated. Exit code 1 where it is not.",
    )


def read_expectations(texts: Sequence[str], words: ExpectationWords) -> list[Expectation]:
    """Read what was given as `--expect`; what does not read so ends the command."""
    from vettance.history.backtest_result import read_expectation

    try:
        return [read_expectation(text, words) for text in texts]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--expect'") from None


def remote_backtest(
    server: RemoteRules,
    file: Path,
    span_ms: tuple[int | None, int | None],
    expectations: Sequence[Expectation],
    *,
    waits: bool,
    as_json: bool,
    path: str = "/backtests",
    show_result: Callable[[JSON], None] | None = None,
) -> None:
    """Have a service decide past events by a file, and show what it found; `path` says of which kind.

    Ends with exit code 1 where an expectation is not met. An interrupt cancels the job.
    """
    from vettance.history.backtest_result import meet

    local_only("out")
    if expectations and not waits:
        raise click.UsageError("--expect needs the end of the backtest; leave out --no-wait")
    span = {name: at / 1000 for name, at in zip(("from", "to"), span_ms, strict=True) if at is not None}
    body = {"document": read_rules(file), **span}
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
        for one in result.get("failedTests", ()):
            click.echo(f"warning: rule {one['ruleId']}: {one['message']}", err=True)
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
