"""`vettance demo`: a service of its own, labelled traffic through its HTTP door, and what it caught."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from vettance.commands import counted_word, json_option
from vettance.demo.feed import Feed, FeedFault, Sample, generated, parquet
from vettance.option_types import Decimal, StoredFile, Whole
from vettance.wire.payload import JSON, encode

if TYPE_CHECKING:
    from rich.console import Console

    from vettance.demo.delayed_labels import JudgedDecision
    from vettance.demo.drive import DemoRun
    from vettance.demo.launch import RunningService
    from vettance.demo.model_trial import ModelComparison

_PLAIN_EVERY_S = 2.0
_SEED = 7  # The first whose traffic has every kind of attack at the default size.
_WAIT_S = 0.5
#: Where `start_line` has the service listen.
_SERVED_AGAIN = "http://127.0.0.1:8080"


@click.command()
@click.option("--customers", type=Whole(1), default=500, show_default=True, help="How many to invent.")
@click.option("--days", type=Whole(1), default=30, show_default=True, help="How many days of them.")
@click.option("--seed", type=Whole(), default=_SEED, show_default=True, help="Same seed, same traffic.")
@click.option(
    "--fraud-share", type=Decimal(0, 0.5), default=0.01, show_default=True, help="The planted part."
)
@click.option(
    "--input",
    "input_file",
    type=StoredFile(),
    help="Labelled card payments in a parquet file, instead of inventing traffic.",
)
@click.option("--connections", type=Whole(1, 256), default=24, show_default=True, help="Requests at a time.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-data"),
    show_default=True,
    help="Made anew each time.",
)
@click.option("--port", type=Whole(0, 65535), default=0, help="Where to listen; a free port when left out.")
@click.option("--aml", is_flag=True, help="Watch for money laundering instead of deciding on fraud.")
@click.option("--exit", "once", is_flag=True, help="Stop after the results instead of serving on.")
@json_option
def demo(
    customers: int,
    days: int,
    seed: int,
    fraud_share: float,
    input_file: Path | None,
    connections: int,
    folder: Path,
    port: int,
    aml: bool,
    once: bool,
    as_json: bool,
) -> None:
    """Start a service, stream labelled traffic through it, and show what it caught.

    The parquet file needs the columns transaction_id, ts, customer_id, terminal_id, amount, fraud, scenario.
    With --json, the results are one JSON object on standard output, everything else goes to standard error,
    and the service ends as with --exit.

    \b
    Examples:
      vettance demo
      vettance demo --customers 2000 --days 60 --exit
      vettance demo --input payments.parquet
      vettance demo --aml --days 60
    """
    from rich.console import Console

    from vettance.demo.demo_client import ClientFault
    from vettance.demo.launch import LaunchFault, launched, make_fresh
    from vettance.demo.report import comparison_record, run_record, show_comparison, show_run

    # Shells have what they start in the background ignore it, and then nothing would end the demo.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _leave)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110, stderr=as_json)
    stay = not once and not as_json and sys.stdout.isatty()
    try:
        if aml:
            found = _watch_money(console, (customers, days, seed), connections, folder, port, stay=stay)
            if as_json:
                click.echo(encode(found).decode())
            return
        feed = parquet(input_file) if input_file else generated(customers, days, seed, fraud_share)
        make_fresh(folder)
        console.print(f"Setting up a service in {folder}/ …")
        with launched(folder, port) as to:
            console.print(f"It listens on {to.target.base_url}. Now come {feed.about}.")
            run, compared, judged = _run(console, feed, to, connections, folder, seed)
            show_run(console, run)
            if compared is not None:
                show_comparison(console, compared)
            link = _furnish(console, to, folder, judged, seed)
            _print_next_steps(console, to, folder, link, stay=stay)
            if as_json:
                found = run_record(run) | comparison_record(compared) | _whose(to, folder) | {"link": link}
                click.echo(encode(found).decode())
            if stay:
                _serve_on(console, to, feed.later)
    except (LaunchFault, FeedFault, ClientFault) as fault:
        raise click.ClickException(str(fault)) from None
    except KeyboardInterrupt:
        raise click.ClickException("interrupted") from None
    if run.card.refused or not run.card.decided:
        raise click.ClickException("not every event was decided")


def _whose(to: RunningService, folder: Path) -> JSON:
    """Tell how to go on with what the demo made."""
    return {"data": str(folder), "tenantId": to.tenant_id, "apiKey": to.target.api_key}


def _watch_money(
    console: Console, size: tuple[int, int, int], connections: int, folder: Path, port: int, *, stay: bool
) -> JSON:
    from vettance.demo.aml_demo import about_events, money, money_record, show_money, watch_money
    from vettance.demo.furnish import make_link
    from vettance.demo.launch import command, launched, make_fresh

    make_fresh(folder)
    console.print(f"Setting up a service in {folder}/ …")
    span = f"{counted_word(size[1], 'day')} of {counted_word(size[0], 'customer')}"
    with launched(folder, port) as to:
        command(folder, "tenant", "set", to.tenant_id, "--aml", "on")
        console.print(f"It listens on {to.target.base_url}. Now come {span}.")
        began = time.monotonic()
        with _progress(console, about_events(size[0], size[1])) as advance:
            import uvloop

            outcome = uvloop.run(watch_money(money(*size), to.target, connections, advance))
        took_s = time.monotonic() - began
        show_money(console, outcome, to.target, took_s)
        link = make_link(to, folder)
        _print_link(console, to, folder, link, stay=stay)
        if stay:
            _serve_on(console, to, iter(()))
        return money_record(outcome, took_s) | _whose(to, folder) | {"link": link}


def _run(
    console: Console, feed: Feed, to: RunningService, connections: int, folder: Path, seed: int
) -> tuple[DemoRun, ModelComparison | str | None, Sequence[JudgedDecision]]:
    """Send the feed; where a model can be trained on the way, with labels, and measured at the end.

    Returns the run, what the model adds or why there is none, and the decisions nobody has judged yet.
    """
    import uvloop

    from vettance.demo.drive import drive
    from vettance.demo.model_trial import DAYS_MIN, can_learn

    with _progress(console, feed.expected) as advance:
        if feed.days is None or feed.days < DAYS_MIN or not can_learn():
            run = uvloop.run(drive(feed.samples, to.target, connections, advance))
            return run, None, run.judged
        return _run_with_model(feed, to, connections, folder, seed, advance)


def _run_with_model(
    feed: Feed,
    to: RunningService,
    connections: int,
    folder: Path,
    seed: int,
    advance: Callable[[int], None],
) -> tuple[DemoRun, ModelComparison | str | None, Sequence[JudgedDecision]]:
    import uvloop

    from vettance.demo import model_trial
    from vettance.demo.delayed_labels import DelayedLabels
    from vettance.demo.drive import DemoRun, drive
    from vettance.demo.scorecard import Scorecard

    card, labels, parts = Scorecard(), DelayedLabels(seed), model_trial.StreamParts(feed.samples)
    first_ms = parts.first_ms()
    assert first_ms is not None
    assert feed.days is not None
    begin_ms, measured_ms = model_trial.bounds_of(first_ms, feed.days)

    def send(until_ms: float) -> DemoRun:
        part = parts.until(until_ms)
        return uvloop.run(drive(part, to.target, connections, advance, card, labels))

    model_trial.expect_labels(folder, to.tenant_id)
    runs = [send(begin_ms)]
    model_trial.wait_for_features(folder, to.tenant_id)
    for at_ms in measured_ms:
        runs.append(send(at_ms))
        if (failure := model_trial.train(folder, to.tenant_id)) is None:
            break
    before = card.decided
    runs.append(send(math.inf))
    frauds = {one.event_id for one in runs[-1].judged if one.fraud}
    compared: ModelComparison | str
    if failure is None:
        compared = uvloop.run(model_trial.compare(to.target, card.decided - before, frauds))
    else:
        compared = failure
    example = max((run.example for run in runs if run.example), key=lambda one: one.reasons, default=None)
    refusal = next((run.refusal for run in runs if run.refusal), None)
    judged = [one for run in runs for one in run.judged]
    run = DemoRun(card, sum(run.took_s for run in runs), example, refusal, judged)
    return run, compared, runs[-1].judged


@contextlib.contextmanager
def _progress(console: Console, expected: int) -> Iterator[Callable[[int], None]]:
    """Show how far the run is: a bar for a person, a line now and then for a file."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    if console.is_terminal:
        columns = (TextColumn("Deciding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("Deciding", total=expected)
            yield lambda done: bar.update(task, completed=done, total=max(expected, done))
        return
    told_at = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told_at
        if done and time.monotonic() - told_at >= _PLAIN_EVERY_S:
            told_at = time.monotonic()
            console.print(f"  {done:,} of about {expected:,} events decided")

    yield tell


def _furnish(
    console: Console, to: RunningService, folder: Path, judged: Sequence[JudgedDecision], seed: int
) -> str:
    """Fill the console with what traffic alone does not bring; returns a link that lets one person in."""
    from vettance.demo.furnish import EVENTS, furnish, make_link

    console.print("\nNow come labels, and customers of a bank to watch for money laundering.")
    with _progress(console, EVENTS) as advance:
        furnish(to, folder, judged, seed, advance)
    return make_link(to, folder)


def _print_next_steps(console: Console, to: RunningService, folder: Path, link: str, *, stay: bool) -> None:
    from vettance.demo.report import curl_line

    _print_link(console, to, folder, link, stay=stay)
    base_url = to.target.base_url if stay else _SERVED_AGAIN
    console.print("\n[bold]Ask for a decision[/]")
    console.print(curl_line(base_url, to.target.api_key), soft_wrap=True, markup=False)


def _print_link(console: Console, to: RunningService, folder: Path, link: str, *, stay: bool) -> None:
    if not stay:
        console.print("\n[bold]Start the service again[/]")
        console.print(start_line(folder), soft_wrap=True, markup=False)
    url = (to.target.base_url if stay else _SERVED_AGAIN) + link
    console.print("\n[bold]Look around in the console[/] (the link lets one person in, once)")
    console.print(url, soft_wrap=True, markup=False, style=f"link {url}")


def start_line(folder: Path) -> str:
    """Write the command that serves what the demo made, called as the demo was.

    In a virtual environment that is not active the bare name leads nowhere.
    """
    name = sys.argv[0] if Path(sys.argv[0]).name == "vettance" else "vettance"
    return f"{name} serve --data {folder} --port 8080"


def _serve_on(console: Console, to: RunningService, later: Iterator[Sample]) -> None:
    """Keep serving and sending until Ctrl-C, or until the service itself ends."""
    from vettance.demo.launch import LaunchFault
    from vettance.demo.live_traffic import live_traffic
    from vettance.demo.shop import open_shop

    address = to.target.base_url
    console.print(f"\nThe service runs on at {address} (all endpoints: {address}/docs). Ctrl-C ends it.")
    try:
        with open_shop(to.target) as shop, live_traffic(later, to.target):
            console.print(f"Log in and pay at [bold]{shop}[/], by hand and by script, and watch it decide.")
            while to.process.poll() is None:
                time.sleep(_WAIT_S)
    except KeyboardInterrupt:
        console.print("\nStopping.")
        return
    raise LaunchFault("the service ended by itself")


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End on SIGTERM as on Ctrl-C: an event loop that runs ends its task, and the blocks stop the service."""
    signal.raise_signal(signal.SIGINT)
