"""What a million events weigh: the memory of the service, and how fast it starts with that log.

Sends invented traffic of 100,000 customers through POST /api/v1/decisions/evaluate with the default rules,
all inside their windows, weighs the service as it goes, stops it, and starts it again on what it wrote.
"web" is what is resident of the process that decides; "all" adds the others, pages that they share counted
once.

    python bench memory [--events 1000000] [--customers 100000] [--json]
"""

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from bench.fixtures.processes import machine, processes_of, proportional_mb, resident_mb, say
from vettance.demo.drive import drive
from vettance.demo.feed import Sample, generated
from vettance.demo.launch import LaunchFault, RunningService, launched, make_fresh, serving

CONNECTIONS = 32
EVENTS_PER_CUSTOMER_DAY = 1.6  # A little under what the generator makes, so that the days asked for suffice.
WEIGH_EVERY = 100_000


def measure(folder: Path, events: int, customers: int) -> dict[str, Any]:
    """Send the events, weigh, stop, start again, weigh again."""
    make_fresh(folder)
    days = int(events / customers / EVENTS_PER_CUSTOMER_DAY) + 3
    feed = generated(customers, days, 1, 0.01)
    weights: list[dict[str, float]] = []
    with launched(folder) as service:
        weights.append(_weigh(service, 0))
        began = time.perf_counter()
        decided = 0
        while decided < events:
            # A fresh scorecard for each part keeps this process from growing as the service does.
            part = _part(feed.samples, min(WEIGH_EVERY, events - decided))
            run = uvloop.run(drive(part, service.target, CONNECTIONS, lambda _done: None))
            if run.card.refused or not run.card.decided:
                raise SystemExit(f"{run.card.refused.total()} refused: {run.refusal!r}")
            decided += run.card.decided
            weights.append(_weigh(service, decided))
            say(_line(weights[-1]))
        took_s = time.perf_counter() - began
        tenant, api_key = service.tenant_id, service.target.api_key
        stopping = time.perf_counter()
    stop_s = time.perf_counter() - stopping
    starting = time.perf_counter()
    with serving(folder, tenant, api_key) as service:
        start_s = time.perf_counter() - starting
        again = _weigh(service, decided)
    return {
        "events": decided,
        "customers": customers,
        "perSecond": decided / took_s,
        "stopSeconds": stop_s,
        "startSeconds": start_s,
        "weights": weights,
        "afterRestart": again,
        "storeMegabytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6,
    }


def _part(samples: Iterator[Sample], count: int) -> Iterator[Sample]:
    return islice(samples, count)


def _weigh(service: RunningService, events: int) -> dict[str, float]:
    family = processes_of(service.process.pid)
    web = resident_mb(service.process.pid)
    return {"events": events, "web": web, "all": sum(proportional_mb(pid) for pid in family)}


def _line(weight: dict[str, float]) -> str:
    return f"{weight['events']:>9,} events: web {weight['web']:.0f} MB, all processes {weight['all']:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--customers", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder (about 3 KB an event)")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    options = parser.parse_args()
    try:
        found = {"machine": machine(), **measure(options.folder, options.events, options.customers)}
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    if not options.keep:
        shutil.rmtree(options.folder)
    if options.json:
        print(json.dumps(found))
        return
    print(
        f"{found['events']:,} events of {found['customers']:,} customers, "
        f"{found['perSecond']:,.0f} a second, "
        f"{found['storeMegabytes']:,.0f} MB on disk\n"
        f"resident memory: {_line(found['weights'][0])}\n"
        f"                 {_line(found['weights'][-1])}\n"
        f"stopped in {found['stopSeconds']:.1f} s, ready again in {found['startSeconds']:.1f} s\n"
        f"after that start {_line(found['afterRestart'])}"
    )
