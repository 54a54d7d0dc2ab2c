"""How well the model that a tenant gets from its labels scores a stream, and what training takes.

    python bench learning offline [--data FILE] [--last 28] [--seeds 3] [--missing .5] [--wrong .01]
                                  [--silent 1]   nobody labels what is no fraud
    python bench learning http [--seeds 3] [--minutes 15]
                                  the same through a service: events with `occurredAt`, labels by feedback; it
                                  waits for trainings, and ends after so many minutes a seed
    python bench learning cost    what features and trees add to a decision
    python bench learning rows [--rows 1000000]   a training from so many decisions, its time and its memory
    python bench learning alerts [--customers 3000] [--days 120] [--cases 6]
                                  AML alerts that officers work to find 80 % of the true ones, by order

FILE is parquet with `ts`, `customer_id`, `terminal_id`, `amount` and `fraud` (or the variable DATA);
without it, `vettance generate fraud` gives the stream. A label is given `--delay` days after its event, in
event time.
`offline` runs rules, memory, features and training in this process, without a store.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from bench.learning.alert_order import measure_alerts
from bench.learning.http_stream import StreamOrder, run_http
from bench.learning.labelled_stream import (
    LabelledEvent,
    generated,
    labels_of,
    measure,
    moved_to,
    read_payments,
)
from bench.learning.model_cost import measure_cost
from bench.learning.offline_stream import OfflineStream
from bench.learning.training_rows_cost import measure_rows
from vettance import clock
from vettance.clock import HOUR_MS


def events_of(options: argparse.Namespace) -> list[LabelledEvent]:
    """Return the stream that the options name; it ends an hour ago or before."""
    if options.data:
        events = read_payments(Path(options.data))
    else:
        events = generated(options.customers, options.days, options.seed)
    return moved_to(events[: options.first], clock.now_ms() - HOUR_MS)


def offline(options: argparse.Namespace) -> None:
    """Print what the stream gives with each seed."""
    events = events_of(options)
    labels = labels_of(events, options.delay, options.missing, options.wrong, options.seed, options.silent)
    for seed in range(1, options.seeds + 1):
        run = OfflineStream(events, seed)
        figures = measure(events, run.run(labels), options.last)
        serving = sum(made.is_better for made in run.trained)
        print(f"seed {seed}: {figures.line()}")
        print(
            f"    {len(run.trained)} models trained in {run.training_s:.0f} s of processor time, "
            f"{serving} put in service; {run.deciding_s / len(events) * 1e6:.0f} µs a decision",
            flush=True,
        )


def http(options: argparse.Namespace) -> None:
    """Print what a service says of the stream."""
    events = events_of(options)
    labels = labels_of(events, options.delay, options.missing, options.wrong, options.seed, options.silent)
    for seed in range(1, options.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            began_s = time.monotonic()
            order = StreamOrder(seed, options.pause, 60 * options.minutes)
            scored = run_http(Path(folder) / "service", events, labels, order)
            figures = measure(events[: len(scored)], scored, options.last)
            took_s = time.monotonic() - began_s
            print(f"seed {seed}: {figures.line()}; streamed in {took_s:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", choices=("offline", "http", "cost", "rows", "alerts"))
    parser.add_argument("--data", default=os.environ.get("DATA"), help="parquet of labelled payments")
    parser.add_argument("--last", type=float, default=28, help="days at the end that are measured")
    parser.add_argument("--first", type=int, help="events at the beginning of the stream that are taken")
    parser.add_argument("--delay", type=float, default=7, help="days from an event to its label")
    parser.add_argument("--missing", type=float, default=0, help="share of frauds that nobody reports")
    parser.add_argument("--silent", type=float, default=0, help="share of others that nobody labels")
    parser.add_argument("--wrong", type=float, default=0, help="share of labels of fraud that are wrong")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of training that are tried")
    parser.add_argument("--seed", type=int, default=1, help="of generated events, and of bad labels")
    parser.add_argument("--customers", type=int, default=600)
    parser.add_argument("--days", type=int, default=70)
    parser.add_argument("--pause", type=float, default=0, help="milliseconds between events over HTTP")
    parser.add_argument("--minutes", type=float, default=15, help="after which a stream over HTTP is cut off")
    parser.add_argument("--cases", type=int, default=6, help="planted cases of each typology, for `alerts`")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.question == "cost":
        measure_cost(events_of(options))
    elif options.question == "alerts":
        for seed in range(options.seed, options.seed + options.seeds):
            measure_alerts(options, seed)
    elif options.question == "rows":
        measure_rows(options.rows)
    else:
        {"offline": offline, "http": http}[options.question](options)
