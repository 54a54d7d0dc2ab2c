"""What requests cost on a store that has grown: each kind, at N rows of every table and at ten times as many.

Two services run on two stores of three tenants each, whose tables hold a made-up history: decisions, alerts,
cases, screenings, deliveries, feedback, entries of lists and what else grows. One connection asks a request
at a time, in blocks that take turns between the two services, so that other load on the machine affects
both alike. Processor time is that of all processes of a service (and of its PostgreSQL); of the blocks, the
one counts that a quarter of all stay below. Latency is that of all requests together.

    python bench grown_stores [--store sqlite|postgres] [--rows 20000] [--times 10] [--rounds 12] [--json]

Each `postgres` is a server of its own.
"""

import argparse
import contextlib
import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.client.blocking import Caller
from bench.client.open_loop import quantile
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import machine, say
from bench.fixtures.webhook_receivers import Receivers
from bench.store.grown_rows import BUSY, name_of
from bench.store.grown_services import LISTED, TENANTS, Grown, grown
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, make_fresh

_API: Final = "/api/v1"
#: Above that a cost grows with the store, and not only by what a deeper tree takes.
SUSPECT: Final = 1.3
#: Of the blocks of a kind, the quantile that counts: what else runs only ever adds processor time.
LEAST: Final = 0.25
IDLE_S: Final = 3.0


class Asked(NamedTuple):
    """One request and the status that it must be answered with."""

    method: str
    path: str
    body: bytes | None
    status: int


class Requests:
    """Makes the requests of a run: what they name is new each time, and the same for both services."""

    def __init__(self, one: Grown) -> None:
        self._payments = payment_bodies(20_000)
        self._history = one.rows // TENANTS
        self._decided: list[str] = []
        self.kinds: dict[str, Callable[[int], Asked]] = {
            "evaluate": self._evaluate,
            "feedback, new decision": self._feedback,
            "feedback, old decision": self._feedback_of_old,
            "AML event, clear": lambda n: self._event(f"clear-{n}", f"payer-{n}", {"amount": 12}),
            "AML event with alert": lambda n: self._event(
                f"risky-{n}", f"risky-{n}", {"amount": 12_000, "counterpartyCountry": "KP"}
            ),
            "AML event, busy customer": lambda n: self._event(f"busy-{n}", BUSY, {"amount": 12}),
            "screening, clear": lambda n: self._screen(f"clear-{n}", "Wilhelmina Oakes"),
            "screening with match": lambda n: self._screen(f"found-{n}", LISTED),
            "list add": lambda n: _post(
                "/lists",
                {"type": "EMAIL", "value": f"listed-{n}@mail.example", "listType": "block"},
                201,
            ),
            "alerts, first page": lambda _: Asked("GET", f"{_API}/aml/alerts?limit=50", None, 200),
            "open alerts, first page": lambda _: Asked(
                "GET", f"{_API}/aml/alerts?limit=50&state=OPEN", None, 200
            ),
        }

    def heed(self, kind: str, answer: bytes) -> None:
        """Remember what later requests ask about."""
        if kind == "evaluate":
            self._decided.append(json.loads(answer)["correlationIds"]["eventId"])

    def _evaluate(self, number: int) -> Asked:
        return Asked("POST", PATH, self._payments[number % len(self._payments)], 200)

    def _feedback(self, _number: int) -> Asked:
        return _post(f"/feedback/decision/{self._decided.pop()}", {"label": "FRAUD"}, 201)

    def _feedback_of_old(self, number: int) -> Asked:
        return _post(f"/feedback/decision/{self._old(number)}", {"label": "FRAUD"}, 201)

    def _old(self, number: int) -> str:
        """Some decision of the history: steps of a large prime go through all of it."""
        return name_of("evt", 101 + number * 7_919_993 % self._history)

    def _event(self, name: str, customer: str, metadata: dict[str, Any]) -> Asked:
        said = {
            "eventName": "transfer.sent",
            "externalEventId": name,
            "customer": {"externalId": customer},
            "metadata": {"direction": "out", **metadata},
        }
        return _post("/aml/events", said, 200)

    def _screen(self, subject: str, name: str) -> Asked:
        return _post("/aml/screen", {"inputName": name, "externalId": subject}, 200)


def _post(path: str, body: dict[str, Any], status: int) -> Asked:
    return Asked("POST", _API + path, json.dumps(body).encode(), status)


class Side:
    """One of the two services, and what was measured on it by kind."""

    def __init__(self, one: Grown) -> None:
        self.one = one
        self.requests = Requests(one)
        self.cpu_us: dict[str, list[float]] = defaultdict(list)
        self.latencies_ms: dict[str, list[float]] = defaultdict(list)
        self.idle_ms: list[float] = []
        target = one.service.target
        self._line = Caller(target.host, target.port)
        self._key = target.api_key

    def block(self, kind: str, first: int, count: int, *, counts: bool) -> None:
        """Ask a kind so many times; the first blocks only warm caches and plans."""
        latencies = []
        before = self.one.cpu_s()
        for number in range(first, first + count):
            asked = self.requests.kinds[kind](number)
            began = time.perf_counter()
            answer = self._line.ask(request(asked.method, asked.path, self._key, asked.body))
            latencies.append((time.perf_counter() - began) * 1000)
            if answer.status != asked.status:
                raise SystemExit(f"{kind}: {asked.method} {asked.path} was {answer.status}: {answer.body!r}")
            self.requests.heed(kind, answer.body)
        if counts:
            self.cpu_us[kind].append((self.one.cpu_s() - before) / count * 1e6)
            self.latencies_ms[kind] += latencies

    def rest(self) -> None:
        """Measure what a second costs in which nobody asks anything."""
        before = self.one.cpu_s()
        time.sleep(IDLE_S)
        self.idle_ms.append((self.one.cpu_s() - before) / IDLE_S * 1000)


def measure(folder: Path, engine: str, rows: int, times: int, rounds: int, count: int) -> dict[str, Any]:
    """Fill both stores, ask both services by turns, and return what was measured by kind."""
    make_fresh(folder)
    # The history is older than deliveries are kept, and would be removed while it is measured.
    os.environ.update(VETTANCE_UNSAFE_WEBHOOKS="1", VETTANCE_KEEP_DELIVERIES="0")
    with contextlib.ExitStack() as stack:
        receivers = stack.enter_context(_receiving())
        hook = f"http://127.0.0.1:{receivers.ports[0]}/hook"
        sides = [
            Side(stack.enter_context(grown(folder / name, held, engine, hook)))
            for name, held in (("small", rows), ("grown", rows * times))
        ]
        for number in range(rounds + 1):
            turns = sides if number % 2 else sides[::-1]
            for kind in sides[0].requests.kinds:
                for side in turns:
                    side.block(kind, number * count, count, counts=number > 0)
            say(f"round {number} of {rounds}")
        for side in sides:
            side.rest()
        held = [side.one.rows for side in sides]
        return {
            "store": engine,
            "rows": held,
            "kinds": _compared(*sides),
            "idleMs": [s.idle_ms[0] for s in sides],
        }


@contextlib.contextmanager
def _receiving() -> Iterator[Receivers]:
    receivers = Receivers(["healthy"])
    try:
        yield receivers
    finally:
        receivers.end()


def _compared(small: Side, large: Side) -> dict[str, dict[str, Any]]:
    found = {}
    for kind in small.requests.kinds:
        cpu = [quantile(side.cpu_us[kind], LEAST) for side in (small, large)]
        p50 = [quantile(side.latencies_ms[kind], 0.5) for side in (small, large)]
        p95 = [quantile(side.latencies_ms[kind], 0.95) for side in (small, large)]
        ratios = {"cpuRatio": cpu[1] / cpu[0], "p50Ratio": p50[1] / p50[0], "p95Ratio": p95[1] / p95[0]}
        found[kind] = {
            "requests": len(small.latencies_ms[kind]),
            "cpuUs": cpu,
            "p50Ms": p50,
            "p95Ms": p95,
            **ratios,
        }
    return found


def show(found: dict[str, Any]) -> None:
    """Print the results as a table for people."""
    about = found["machine"]
    small, large = found["rows"]
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the start, store {found['store']}"
    )
    print(f"{small:,} rows of each kind, and {large:,}\n")
    print(f"{'':<26}{'processor µs':^26}{'p50 ms':^26}{'p95 ms':^26}")
    for kind, one in found["kinds"].items():
        line = f"{kind:<26}"
        for name, ratio, digits in (
            ("cpuUs", "cpuRatio", 0),
            ("p50Ms", "p50Ratio", 2),
            ("p95Ms", "p95Ratio", 2),
        ):
            line += f"{one[name][0]:>9,.{digits}f}{one[name][1]:>9,.{digits}f}{one[ratio]:>6.2f} ×"
        print(line + ("   grows" if one["cpuRatio"] > SUSPECT else ""))
    idle = found["idleMs"]
    print(f"\nprocessor time of a second in which nobody asks: {idle[0]:.0f} and {idle[1]:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each kind in the smaller store")
    parser.add_argument("--times", type=int, default=10, help="how many times as many the larger one has")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--count", type=int, default=50, help="requests of a kind in a block")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    asked = parser.parse_args()
    about = machine()
    try:
        found = measure(asked.folder, asked.store, asked.rows, asked.times, asked.rounds, asked.count)
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    shutil.rmtree(asked.folder, ignore_errors=True)
    found = {"machine": about, **found}
    if asked.json:
        print(json.dumps(found))
    else:
        show(found)
