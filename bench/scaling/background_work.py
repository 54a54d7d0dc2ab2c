"""What decisions suffer from what is worked out behind them: an export, a backtest, a training.

    python bench background_work [--events 20000] [--rate 50] [--rounds 5] [--seconds 10] [--json]

A labelled stream of payments is imported into a service of its own, with `VETTANCE_DATABASE_URL` and
`VETTANCE_REDIS_URL` on shared stores, and with `VETTANCE_DATABASE_READ_URL` on a replica as well. Then
decisions are asked for at a steady rate, each due at its moment, in rounds of four parts that take turns:
alone, and while one of the three goes on, begun again as often as it ends. A part is compared with the one
alone of its own round, and the median of the rounds counts, since other load on the machine comes and goes.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Final

from bench.client.open_loop import Ask, OpenLoop, quantile
from bench.client.page_visitor import PageVisitor
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import cpu_s, machine, processes_of, say
from bench.rules.backtests import IMPORT_S_MAX
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import RunningService, command, launched, make_fresh
from vettance.generate.fraud_stream import Traffic, reference, stream

RATIO_MAX: Final = 1.1
_SEED: Final = 52_117
_TRAINING_S_MAX: Final = 600.0
#: How long work goes on before anything is measured.
_BEFORE_S: Final = 1.5
_POLL_S: Final = 0.2
_STATES_OVER: Final = ("completed", "failed", "cancelled")

#: Does its work once; it is told when the part is over.
Work = Callable[[threading.Event], None]


def write_labelled(path: Path, count: int) -> None:
    """Write so many events of a stream, each with its label, as `import` takes them."""
    traffic = Traffic(customers=max(50, count // 20), days=30, seed=_SEED, fraud_share=0.03)
    with path.open("wb") as file:
        for number, one in enumerate(itertools.islice(stream(traffic), count)):
            label = b"FRAUD" if one.fraud else b"LEGIT"
            file.write(one.body(reference(number))[:-1] + b',"label":"' + label + b'"}\n')


def export(folder: Path, tenant: str, file: Path) -> Work:
    """Write all decisions to a file."""
    chosen = ("--tenant", tenant, "--output", str(file), "--force")
    return lambda _over: command(folder, "export", "decisions", *chosen, seconds_max=_TRAINING_S_MAX)


def training(folder: Path, tenant: str) -> Work:
    """Train a model."""
    arguments = ("model", "train", "--tenant", tenant, "--wait")
    return lambda _over: command(folder, *arguments, seconds_max=_TRAINING_S_MAX)


def backtest(folder: Path, service: RunningService) -> Work:
    """Try the default pack on all that was decided."""
    made = command(folder, "key", "create", "--tenant", service.tenant_id, "--scope", "rules")
    target = service.target._replace(api_key=made["apiKey"])

    def work(over: threading.Event) -> None:
        visitor = PageVisitor(target)
        begun = visitor.ask("POST", "/api/v1/backtests", {"version": 0})
        if begun.status != HTTPStatus.ACCEPTED:
            say(f"the backtest was refused: {begun.body!r}")
            over.wait(_BEFORE_S)
            return
        job = f"/api/v1/backtests/{json.loads(begun.body)['backtestId']}"
        while json.loads(visitor.ask("GET", job).body)["state"] not in _STATES_OVER:
            if over.wait(_POLL_S):
                visitor.ask("DELETE", job)
        visitor.close()

    return work


@contextlib.contextmanager
def going_on(work: Work | None, counted: list[int]) -> Iterator[None]:
    """Have work done again and again until the block ends, and count how often."""
    if work is None:
        yield
        return
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            work(over)
            counted[0] += 1

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        over.wait(_BEFORE_S)
        yield
    finally:
        over.set()
        thread.join()


def decide(service: RunningService, asks: Iterator[Ask], rate: float, seconds: float) -> dict[str, float]:
    """Ask for decisions at a steady rate; returns milliseconds, and microseconds of the web process."""

    async def run() -> tuple[list[float], int]:
        loop = OpenLoop(service.target.host, service.target.port, connections=8)
        await loop.run(asks, rate, seconds)
        refused = sum(count for status, count in loop.statuses["evaluate"].items() if status != 200)
        if refused:
            say(f"{refused} decisions were refused: {dict(loop.statuses['evaluate'])}")
        return loop.latencies_ms["evaluate"], loop.sent

    web = _web_processes(service)
    before_s = sum(map(cpu_s, web))
    took, sent = asyncio.run(run())
    spent_us = (sum(map(cpu_s, web)) - before_s) / max(1, sent) * 1e6
    return {"p50Ms": quantile(took, 0.5), "p95Ms": quantile(took, 0.95), "webUs": spent_us}


def _web_processes(service: RunningService) -> list[int]:
    family = processes_of(service.process.pid)
    crew = [pid for pid in family if b"--seat" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return crew or family[:1]


def measure(
    service: RunningService, works: dict[str, Work | None], rate: float, rounds: int, seconds: float
) -> dict[str, dict[str, float]]:
    """Run the parts by turns; returns medians, and medians of the ratios to the part alone of a round."""
    bodies = itertools.cycle(payment_bodies(5_000))
    asks = (Ask("evaluate", request("POST", PATH, service.target.api_key, body)) for body in bodies)
    decide(service, asks, rate, seconds / 2)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in works}
    counts = {name: [0] for name in works}
    for number in range(rounds):
        for name, work in works.items():
            with going_on(work, counts[name]):
                found[name].append(one := decide(service, asks, rate, seconds))
            say(f"round {number + 1}  {name:<9} p50 {one['p50Ms']:6.2f}  p95 {one['p95Ms']:7.2f} ms")
    return {name: _summary(ones, found["alone"]) | {"times": counts[name][0]} for name, ones in found.items()}


def _summary(ones: list[dict[str, float]], alone: list[dict[str, float]]) -> dict[str, float]:
    summary = {key: round(statistics.median(one[key] for one in ones), 2) for key in ones[0]}
    for key in ("p50Ms", "p95Ms", "webUs"):
        ratios = [one[key] / bare[key] for one, bare in zip(ones, alone, strict=True)]
        summary[key.removesuffix("Ms").removesuffix("Us") + "Ratio"] = round(statistics.median(ratios), 2)
    return summary


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench background_work",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=50.0, help="decisions a second")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each part is")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-background-") as place:
        folder = Path(place) / "data"
        make_fresh(folder)
        events = Path(place) / "events.ndjson"
        write_labelled(events, given.events)
        with launched(folder, workers=given.workers) as service:
            tenant = service.tenant_id
            say(f"importing {given.events:,} events")
            taken = ("import", str(events), "--tenant", tenant, "--wait")
            command(folder, *taken, seconds_max=IMPORT_S_MAX)
            works: dict[str, Work | None] = {
                "alone": None,
                "export": export(folder, tenant, Path(place) / "decisions.csv"),
                "backtest": backtest(folder, service),
                "training": training(folder, tenant),
            }
            found = measure(service, works, given.rate, given.rounds, given.seconds)
    show(found, given.json)


def show(found: dict[str, dict[str, float]], as_json: bool) -> None:
    """Print what was measured."""
    about = machine()
    if as_json:
        print(json.dumps({"machine": about, **found}))
        return
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']}; aim: ratios of at most {RATIO_MAX}\n"
    )
    print("| decisions meanwhile | p50 | p95 | web process | p50, ratio | p95, ratio | times |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, one in found.items():
        figures = f"{one['p50Ms']} ms | {one['p95Ms']} ms | {one['webUs']:.0f} µs"
        print(f"| {name} | {figures} | {one['p50Ratio']} | {one['p95Ratio']} | {one['times']:.0f} |")


if __name__ == "__main__":
    main()
