"""What evaluations suffer from ten people who click through the console, and from a backtest.

    python bench console_crowd [--decisions 5000000] [--folder bench-data/history] [--rounds 6] [--seconds 20]

The store is that of `console_pages`. Decisions are asked for at a steady rate, each due at its moment, in
rounds of three parts that take turns: alone, while ten people look at two pages a second each, any of all
pages, and while a backtest of the rules over thirty days runs. A part is compared with the one alone of its
own round, and the median of the rounds counts, since other load on the machine comes and goes.

Every page is looked at once before, which has a line of its own: a process compiles templates and reads rules
when they are first needed. What clicks gives way to the service, as browsers on other machines do.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from bench.client.open_loop import Ask, OpenLoop, quantile
from bench.client.page_visitor import PageVisitor
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import cpu_s, machine, processes_of, say
from bench.store.console_addresses import addresses, first_rule
from bench.store.console_pages import PATIENCE
from bench.store.console_rows import EMAIL, PASSWORD, prepare
from vettance.demo.demo_client import DemoTarget, request
from vettance.demo.drive import PATH
from vettance.demo.launch import RunningService, serving

PEOPLE = 10
PAGES_PER_SECOND = 2.0
CROWD_RATIO_MAX = 1.2
BACKTEST_RATIO_MAX = 1.5
RATE = 40.0
#: How long a disturbance goes on before anything is measured.
_BEFORE_S = 2.0


def click(target: DemoTarget, pages: list[str], seed: int, ready: Event, over: Event) -> None:
    """Be ten people, in a process of their own: each looks at pages at a steady pace until it is over."""
    os.nice(10)
    visitors = [PageVisitor(target) for _ in range(PEOPLE)]
    for visitor in visitors:
        visitor.sign_in(EMAIL, PASSWORD)
    ready.set()

    def look(visitor: PageVisitor, rng: random.Random) -> None:
        begins_s = time.monotonic() + rng.random() / PAGES_PER_SECOND
        for number in itertools.count():
            due_s = begins_s + number / PAGES_PER_SECOND
            if over.wait(max(0.0, due_s - time.monotonic())):
                break
            with contextlib.suppress(OSError):  # The next click opens another connection.
                visitor.get(rng.choice(pages))

    threads = [
        threading.Thread(target=look, args=(visitor, random.Random(seed + number)))
        for number, visitor in enumerate(visitors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def crowd(target: DemoTarget, pages: list[str], seed: int) -> Iterator[None]:
    """Have ten people click while the block runs."""
    context = multiprocessing.get_context("spawn")
    ready, over = context.Event(), context.Event()
    people = context.Process(target=click, args=(target, pages, seed, ready, over))
    people.start()
    ready.wait(120)
    try:
        yield
    finally:
        over.set()
        people.join(60)
        people.kill()


@contextlib.contextmanager
def first_looks(visitor: PageVisitor, pages: list[str]) -> Iterator[None]:
    """Look at every page once, one after the other, while the block runs, and end with the last of them."""
    thread = threading.Thread(target=lambda: [visitor.get(page) for page in pages])
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextlib.contextmanager
def backtest(visitor: PageVisitor, rule: str) -> Iterator[None]:
    """Have a rule tried on thirty days while the block runs."""
    asked = visitor.ask("POST", "/api/v1/backtests", {"rule": {"id": rule, "score": 1}})
    job = json.loads(asked.body)["backtestId"]
    try:
        yield
    finally:
        visitor.ask("DELETE", f"/api/v1/backtests/{job}")


def evaluated(service: RunningService, asks: Iterator[Ask], seconds: float) -> dict[str, float]:
    """Ask for decisions at a steady rate; returns milliseconds, and what it took of the processors."""

    async def run() -> list[float]:
        loop = OpenLoop(service.target.host, service.target.port, connections=8)
        await loop.run(asks, RATE, seconds)
        refused = sum(count for status, count in loop.statuses["evaluate"].items() if status != 200)
        if refused:
            say(f"{refused} decisions were refused: {dict(loop.statuses['evaluate'])}")
        return loop.latencies_ms["evaluate"]

    before_s = _cpu_s(service)
    took = asyncio.run(run())
    share = (_cpu_s(service) - before_s) / seconds
    return {"p50Ms": quantile(took, 0.5), "p99Ms": quantile(took, 0.99), "processorShare": share}


def _cpu_s(service: RunningService) -> float:
    total = 0.0
    for pid in processes_of(service.process.pid):
        with contextlib.suppress(OSError):  # It has ended since.
            total += cpu_s(pid)
    return total


def measure(service: RunningService, rounds: int, seconds: float) -> dict[str, list[dict[str, float]]]:
    """Run the parts by turns."""
    visitor = PageVisitor(service.target)
    visitor.sign_in(EMAIL, PASSWORD)
    pages = list(addresses(visitor).values())
    rule = first_rule(visitor, "fraud")
    bodies = itertools.cycle(payment_bodies(5_000))
    asks = (Ask("evaluate", request("POST", PATH, service.target.api_key, body)) for body in bodies)
    disturbances: dict[str, Callable[[int], Any]] = {
        "alone": lambda _: contextlib.nullcontext(),
        "crowd": lambda seed: crowd(service.target, pages, seed),
        "backtest": lambda _: backtest(visitor, rule),
    }
    evaluated(service, asks, seconds / 2)
    with first_looks(visitor, pages):
        first = evaluated(service, asks, seconds / 2)
    say(f"first looks        p50 {first['p50Ms']:6.1f}  p99 {first['p99Ms']:7.1f} ms")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in disturbances}
    for number in range(rounds):
        for name, disturbed in disturbances.items():
            with disturbed(number):
                time.sleep(_BEFORE_S)
                found[name].append(one := evaluated(service, asks, seconds))
            say(f"round {number + 1}  {name:<9} p50 {one['p50Ms']:6.1f}  p99 {one['p99Ms']:7.1f} ms")
    visitor.close()
    return found


def summary(found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Put the rounds together: medians, and the median of the ratios to the part alone of the same round."""
    parts = {}
    for name, ones in found.items():
        ratios = [one["p99Ms"] / alone["p99Ms"] for one, alone in zip(ones, found["alone"], strict=True)]
        medians = {key: round(statistics.median(one[key] for one in ones), 2) for key in ones[0]}
        parts[name] = {**medians, "p99Ratio": round(statistics.median(ratios), 2)}
    return parts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench console_crowd", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/history"))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tenant, key = prepare(given.folder, given.decisions)
    say("starting; the first time the whole log is read")
    with serving(given.folder, tenant, key, patience=PATIENCE) as service:
        found = summary(measure(service, given.rounds, given.seconds))
    about = machine()
    if given.json:
        print(json.dumps({"machine": about, "decisions": given.decisions, **found}))
        return
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']}, {given.decisions:,} decisions\n")
    print(
        "| decisions meanwhile | p50 | p99 | p99, ratio | aim | processors |\n|---|---:|---:|---:|---|---:|"
    )
    aims = {"alone": "", "crowd": f"≤ {CROWD_RATIO_MAX}", "backtest": f"≤ {BACKTEST_RATIO_MAX}"}
    for name, one in found.items():
        figures = f"{one['p50Ms']} | {one['p99Ms']} | {one['p99Ratio']} | {aims[name]}"
        print(f"| {name} | {figures} | {one['processorShare']} |")


if __name__ == "__main__":
    main()
