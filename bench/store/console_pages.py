"""How long every page of the console takes over a store of five million decisions.

    python bench console_pages [--decisions 5000000] [--folder bench-data/history] [--rounds 20] [--json]

The store is that of `history_reading`, with 100,000 open reviews, 50,000 labels, 20,000 AML cases, alerts
and screenings, deliveries, and what rules did in sixty days. A filled folder is used again; the first start
reads its log, for minutes. Each page is looked at once cold, and then in rounds through all pages, over HTTP.
*Wall* is by the clock, from the first byte sent to the last received; *processor* is the time of all
processes of the service meanwhile.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.client.page_visitor import PageVisitor
from bench.fixtures.processes import cpu_s, machine, processes_of, say
from bench.store.console_addresses import addresses
from bench.store.console_rows import EMAIL, PASSWORD, prepare
from vettance.demo.launch import RunningService, serving

PAGE_MS_MAX = 100.0
COLD_MS_MAX = 500.0
#: What every page draws from: the endpoint is asked like a page.
QUALITY = "/api/v1/rules/quality"
#: How many times as long as usual a start over a large store may take: an hour.
PATIENCE = 60


class PageTimes(NamedTuple):
    """How long one page took: the first time, and each time in the rounds, in milliseconds."""

    cold_ms: float
    wall_ms: list[float]
    cpu_ms: list[float]

    def line(self) -> dict[str, float]:
        """Return the figures."""
        wall, cpu = sorted(self.wall_ms), sorted(self.cpu_ms)
        return {
            "coldMs": round(self.cold_ms, 1),
            "p50Ms": _at(wall, 0.5),
            "p95Ms": _at(wall, 0.95),
            "mostMs": round(wall[-1], 1),
            "cpuP50Ms": _at(cpu, 0.5),
            "cpuP95Ms": _at(cpu, 0.95),
        }


def measure(service: RunningService, rounds: int) -> dict[str, dict[str, float]]:
    """Walk through all pages so many times."""
    visitor = PageVisitor(service.target)
    visitor.sign_in(EMAIL, PASSWORD)
    walked = addresses(visitor)
    found = {name: PageTimes(_look(visitor, service, name, path)[0], [], []) for name, path in walked.items()}
    found["quality of 30 days, endpoint"] = PageTimes(_asked(visitor, service)[0], [], [])
    for number in range(rounds):
        for name, path in walked.items():
            _note(found[name], _look(visitor, service, name, path))
        _note(found["quality of 30 days, endpoint"], _asked(visitor, service))
        say(f"round {number + 1} of {rounds}")
    visitor.close()
    return {name: one.line() for name, one in found.items()}


def _note(times: PageTimes, took: tuple[float, float]) -> None:
    times.wall_ms.append(took[0])
    times.cpu_ms.append(took[1])


def _look(visitor: PageVisitor, service: RunningService, name: str, path: str) -> tuple[float, float]:
    """Look at a page; returns the milliseconds by the clock and of the processors."""
    before_s, began_s = _cpu_s(service), time.perf_counter()
    answer = visitor.get(path)
    took_s = time.perf_counter() - began_s
    if answer.status not in (200, 303, 404):
        raise SystemExit(f"{name} ({path}) answered {answer.status}")
    return took_s * 1000, (_cpu_s(service) - before_s) * 1000


def _asked(visitor: PageVisitor, service: RunningService) -> tuple[float, float]:
    before_s, began_s = _cpu_s(service), time.perf_counter()
    answer = visitor.ask("GET", QUALITY)
    took_s = time.perf_counter() - began_s
    if answer.status != 200:
        raise SystemExit(f"{QUALITY} answered {answer.status}: {answer.body[:200]!r}")
    return took_s * 1000, (_cpu_s(service) - before_s) * 1000


def _cpu_s(service: RunningService) -> float:
    return sum(cpu_s(pid) for pid in processes_of(service.process.pid))


def _at(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1)


def show(found: dict[str, Any]) -> None:
    """Print the results as a table; what is beyond an aim is bold."""
    about = found["machine"]
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']}, {found['decisions']:,} decisions\n")
    print("| page | cold | p50 | p95 | most | processor p50 | p95 |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, one in found["pages"].items():
        cold = f"**{one['coldMs']}**" if one["coldMs"] > COLD_MS_MAX else one["coldMs"]
        p95 = f"**{one['p95Ms']}**" if one["p95Ms"] > PAGE_MS_MAX else one["p95Ms"]
        others = f"{one['mostMs']} | {one['cpuP50Ms']} | {one['cpuP95Ms']}"
        print(f"| {name} | {cold} | {one['p50Ms']} | {p95} | {others} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench console_pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/history"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tenant, key = prepare(given.folder, given.decisions)
    say("starting; the first time the whole log is read")
    with serving(given.folder, tenant, key, patience=PATIENCE) as service:
        pages = measure(service, given.rounds)
    found = {"machine": machine(), "decisions": given.decisions, "pages": pages}
    print(json.dumps(found)) if given.json else show(found)


if __name__ == "__main__":
    main()
