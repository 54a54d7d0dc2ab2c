"""`vettance generate`: writes synthetic traffic and its ground truth to files."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import msgspec

from vettance.commands import counted_word, json_option, output_option, whole_file
from vettance.generate.aml_stream import START_DEFAULT_MS as AML_START_MS
from vettance.generate.aml_stream import Watch, write_aml
from vettance.generate.attacks import ATTACKS
from vettance.generate.fraud_stream import (
    FRAUD_SHARE_DEFAULT,
    START_DEFAULT_MS,
    StreamSummary,
    Traffic,
    events_expected,
    write_traffic,
)
from vettance.option_types import Decimal, Whole
from vettance.wire.numbers import is_decimal
from vettance.wire.payload import read_timestamp

if TYPE_CHECKING:
    from rich.progress import Progress

_SCENARIOS = tuple(attack.scenario for attack in ATTACKS)

_FRAUD_HELP = f"""\
Write labelled fraud traffic: ordinary customers with habits, and planted attacks among them.

DIR/events.ndjson holds one event a line in time order, each a body for POST /api/v1/decisions/evaluate.
DIR/truth.ndjson names, line for line, the event's reference, its label (FRAUD or LEGIT), the scenario and the
case. The same options and seed write the same bytes. `vettance import` takes both files.

Scenarios: {", ".join(_SCENARIOS)}.

\b
Example:
  vettance generate fraud --customers 500 --days 30 --seed 7 --output traffic/
  vettance generate fraud --customers 500 --days 30 --weight bot=0 --fraud-share 0.02 \\
    --output traffic/
"""


#: All customers are held in memory while their traffic is made.
_CUSTOMERS: Final = Whole(1, 10_000_000)


class Moment(click.ParamType[int]):
    """An ISO 8601 moment on the command line, as Unix milliseconds."""

    name = "ISO 8601"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the moment; anything else is a usage error."""
        if isinstance(value, int):
            return value
        moment = read_timestamp(str(value))
        if moment is None:
            self.fail("must be an ISO 8601 date or time, such as 2026-01-31", param, ctx)
        return moment


class Weight(click.ParamType[tuple[str, float]]):
    """`scenario=factor` on the command line."""

    name = "scenario=factor"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Read the pair; an unknown scenario or a negative factor is a usage error."""
        if isinstance(value, tuple):
            return value
        scenario, _, factor_text = str(value).partition("=")
        factor = float(factor_text) if is_decimal(factor_text) else -1.0
        if scenario not in _SCENARIOS or factor < 0:
            self.fail(f"must be SCENARIO=FACTOR with a scenario out of {', '.join(_SCENARIOS)}", param, ctx)
        return scenario, factor


@click.group()
def generate() -> None:
    """Write synthetic traffic with a ground truth.

    Example: vettance generate fraud --customers 500 --days 30 --output traffic/
    """


@generate.command(help=_FRAUD_HELP)
@click.option("--customers", type=_CUSTOMERS, required=True, metavar="N", help="How many customers.")
@click.option("--days", type=Whole(1), required=True, metavar="D", help="How many days.")
@click.option(
    "--seed", type=Whole(), default=1, show_default=True, metavar="S", help="Same seed, same bytes."
)
@click.option(
    "--start",
    type=Moment(),
    default=START_DEFAULT_MS,
    show_default="2026-01-01",
    help="The first moment (UTC without an offset).",
)
@click.option(
    "--fraud-share",
    type=Decimal(0, 0.5),
    default=FRAUD_SHARE_DEFAULT,
    show_default=True,
    help="The part of all events that is planted, on average.",
)
@click.option(
    "--weight",
    "weights",
    type=Weight(),
    multiple=True,
    help="More (2) or less (0.5) of one scenario, none with 0; may be given for each.",
)
@click.option(
    "--roaming",
    type=Decimal(0, 0.9),
    default=0.0,
    show_default=True,
    help="The part of ordinary sessions from networks on the way.",
)
@click.option("--labelled", is_flag=True, help="Write each label into the line of its event, too.")
@output_option(
    "The folder to write to.",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
)
@json_option
def fraud(
    customers: int,
    days: int,
    seed: int,
    start: int,
    fraud_share: float,
    weights: tuple[tuple[str, float], ...],
    roaming: float,
    labelled: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Write the traffic and print what it holds."""
    traffic = Traffic(
        customers=customers,
        days=days,
        seed=seed,
        start_ms=start,
        fraud_share=fraud_share,
        weights=dict(weights),
        roaming=roaming,
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            events = stack.enter_context(whole_file(out / "events.ndjson"))
            truth = stack.enter_context(whole_file(out / "truth.ndjson"))
            summary = _write(traffic, events, truth, labelled=labelled)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error.strerror}") from None
    _report(summary, out, as_json=as_json)


_AML_HELP = """\
Write labelled AML traffic: people and businesses with habits, and planted laundering among them.

DIR/events.ndjson holds one event a line in time order, each a body for POST /api/v1/aml/events.
DIR/truth.ndjson names, line for line, the event's externalEventId, its label (LAUNDERING or ORDINARY), the
typology and the case. The same options and seed write the same bytes.

\b
Example:
  vettance generate aml --customers 500 --days 60 --seed 7 --output money/
"""


@generate.command(help=_AML_HELP)
@click.option("--customers", type=_CUSTOMERS, required=True, metavar="N", help="How many customers.")
@click.option("--days", type=Whole(1), required=True, metavar="D", help="How many days.")
@click.option(
    "--seed", type=Whole(), default=1, show_default=True, metavar="S", help="Same seed, same bytes."
)
@click.option(
    "--start", type=Moment(), default=AML_START_MS, show_default="2026-01-01", help="The first moment."
)
@click.option(
    "--cases",
    type=Whole(0, 1_000_000),
    help="Planted cases of each typology; 3 per 1,000 customers.",
)
@output_option(
    "The folder to write to.",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
)
@json_option
def aml(
    customers: int, days: int, seed: int, start: int, cases: int | None, out: Path, as_json: bool
) -> None:
    """Write the traffic and print what it holds."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with whole_file(out / "events.ndjson") as events, whole_file(out / "truth.ndjson") as truth:
            found = write_aml(Watch(customers, days, seed, start, cases), events, truth)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error.strerror}") from None
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo(f"{counted_word(found.events, 'event')} in {out}/, {found.laundering:,} of them laundering:")
    for typology, count in found.cases.items():
        click.echo(f"  {typology:<20}{count:>6,} case{'' if count == 1 else 's'}")


def _write(traffic: Traffic, events: BinaryIO, truth: BinaryIO, *, labelled: bool) -> StreamSummary:
    """Write both files, with a bar when somebody watches."""
    if not sys.stderr.isatty():
        return write_traffic(traffic, events, truth, lambda _count: None, labelled=labelled)
    with _bar(events_expected(traffic)) as bar:
        task = bar.task_ids[0]

        def advance(count: int) -> None:
            bar.update(task, completed=count)

        return write_traffic(traffic, events, truth, advance, labelled=labelled)


def _report(summary: StreamSummary, out: Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(summary).decode())
        return
    click.echo(f"{counted_word(summary.events, 'event')} from {summary.first} to {summary.last} in {out}/")
    are, share = "is" if summary.fraud == 1 else "are", summary.fraud / max(1, summary.events)
    click.echo(f"{summary.fraud:,} of them {are} fraud ({share:.2%}):")
    for scenario, count in summary.scenarios.items():
        if scenario in summary.cases:
            cases = counted_word(summary.cases[scenario], "case")
            click.echo(f"  {scenario:<22}{count:>8,} event{'' if count == 1 else 's'} in {cases}")


def _bar(total: int) -> "Progress":
    """Make a progress bar on standard error; rich is imported only when it is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task("Generating", total=total)
    return progress
