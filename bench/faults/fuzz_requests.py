"""Sends requests of every kind and restarts the service in between: no answer is 500, and no start fails.

Bodies are valid, half-valid and extreme (`extreme_bodies.py`). After each round the service is ended, by
turns as an operator does (SIGTERM) and as a crash does (SIGKILL of all), and started again on its store.
At the end the commands that read all of it must work: doctor, export, backtest.

    python bench fuzz_requests [--count 100000] [--store sqlite|postgres] [--seed 7] [--rounds 20] [--json]
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.client.blocking import Caller
from bench.fixtures.extreme_bodies import JSON, Extremes
from bench.fixtures.processes import processes_of
from vettance.demo.demo_client import request
from vettance.demo.launch import LaunchFault, RunningService, command, make_fresh, serving
from vettance.rules.packs import load_pack_text

POSTGRES = os.environ.get("VETTANCE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
API = "/api/v1"
ANSWER_S_MAX = 30.0
QUERIES = ("limit", "offset", "page", "from", "to", "search", "decision", "type", "sort", "order", "after")
PAGES = (
    *("/decisions", "/events", "/lists", "/feedback", "/decisions/stats", "/events/stats", "/webhooks"),
    *("/aml/cases", "/aml/alerts", "/aml/watchlists", "/stats", "/decisions/summary"),
)
HARMLESS = frozenset((502, 503))  # no watchlist is loaded; the service is about to stop


class Ledger:
    """What was answered, and what was wrong."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []
        self.ids: list[str] = ["evt_" + "0" * 32]
        self.lost = 0

    def note(self, method: str, path: str, body: Any, status: int, answer: bytes) -> None:
        """Take an answer."""
        self.statuses[status] += 1
        if status >= 500 and status not in HARMLESS:
            self.faults.append(f"{method} {path} {json.dumps(body)[:2000]} -> {status} {answer[:300]!r}")
        if status in (200, 201) and len(self.ids) < 5_000:
            self.ids += re.findall(r'"eventId":"(evt_[0-9a-f]{32})"', answer.decode())


class Sender(threading.Thread):
    """One connection that asks one thing after the other."""

    def __init__(self, service: RunningService, ledger: Ledger, seed: int, count: int) -> None:
        super().__init__(daemon=True)
        self._rng = random.Random(seed)
        self._draw = Extremes(self._rng, self._rng.choice((0.1, 0.3, 0.6)))
        self._service = service
        self._ledger = ledger
        self._count = count
        self._number = seed * 1_000_000
        self._session, self._token = "", ""

    def run(self) -> None:
        """Ask until the count is reached or the service is gone."""
        target = self._service.target
        with contextlib.closing(Caller(target.host, target.port, ANSWER_S_MAX)) as line:
            try:
                for _ in range(self._count):
                    self._ask(line, *self._next())
            except Exception as error:  # noqa: BLE001  Every cause belongs in the report.
                self._ledger.lost += 1
                self._ledger.faults.append(f"a connection ended: {error!r}")

    def _ask(self, line: Caller, method: str, path: str, body: Any, token: str) -> None:
        headers = [f"Authorization: Bearer {token}"] if token else []
        if self._rng.random() < 0.05:
            headers.append(f"Idempotency-Key: k-{self._rng.randrange(20)}")
        key = "" if token else self._service.target.api_key
        answer = line.ask(request(method, API + path, key, body, headers))
        self._ledger.note(method, path, body, answer.status, answer.body)
        if path == "/websdk/tokens" and answer.status == 201:
            found = json.loads(answer.body)
            self._session, self._token = found["sdkSessionId"], found["token"]

    def _next(self) -> tuple[str, str, Any, str]:
        """Draw a request: method, path, body, and the token of a browser where it comes with one."""
        rng, draw = self._rng, self._draw
        self._number += 1
        kind, now_s = rng.randrange(100), time.time()
        posts: tuple[tuple[int, str, Any, bool], ...] = (
            (22, "/decisions/evaluate", lambda: draw.event(now_s), False),
            (34, "/events", lambda: draw.event(now_s), False),
            (40, "/events/async", lambda: draw.event(now_s), False),
            (54, "/aml/events", lambda: draw.aml_event(self._number, now_s), False),
            (64, "/websdk/signals", lambda: draw.batch(self._number, self._session, now_s), True),
            (72, "/collect", lambda: draw.collect(self._session), True),
            (75, "/lists", draw.entry, False),
            (78, "/aml/screen", lambda: draw.screening(self._number), False),
            (82, f"/feedback/event/{rng.choice(self._ledger.ids)}", draw.feedback, False),
        )
        for limit, path, make, is_browser in posts:
            if kind < limit:
                if is_browser and (not self._token or rng.random() < 0.02):
                    wanted: JSON = {"tenantSessionId": f"session-{rng.randrange(4)}"}
                    return "POST", "/websdk/tokens", wanted, ""
                body = make()
                if rng.random() < 0.1:
                    body = draw.spoil(body)
                return "POST", path, body, self._token if is_browser else ""
        if kind < 90:
            return "GET", f"/{rng.choice(('decisions', 'events'))}/{rng.choice(self._ledger.ids)}", None, ""
        query = {name: str(draw.value()) for name in QUERIES if rng.random() < 0.2}
        path = rng.choice(PAGES)
        if rng.random() < 0.1:
            path += "/" + urllib.parse.quote(draw.text() or "x", safe="")
        return "GET", f"{path}?{urllib.parse.urlencode(query)}", None, ""


@contextlib.contextmanager
def store_of(kind: str) -> Iterator[None]:
    """Have every process that is started here use an empty store of a kind."""
    if kind == "sqlite":
        yield
        return
    import asyncpg

    async def ask(sql: str) -> None:
        connection = await asyncpg.connect(POSTGRES)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    name = f"vettance_fuzz_{secrets.token_hex(6)}"
    asyncio.run(ask(f"CREATE DATABASE {name}"))
    os.environ["VETTANCE_DATABASE_URL"] = f"{POSTGRES.rpartition('/')[0]}/{name}"
    try:
        yield
    finally:
        del os.environ["VETTANCE_DATABASE_URL"]
        asyncio.run(ask(f"DROP DATABASE {name} WITH (FORCE)"))


def end(service: RunningService, number: int) -> None:
    """End the service: as an operator does, or as a crash does."""
    if number % 2:
        for pid in processes_of(service.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        service.process.terminate()
    service.process.wait(60)


def read_all(folder: Path, tenant: str) -> list[str]:
    """Run the commands that read everything that was stored; return what of them failed."""
    rules = folder / "pack.yaml"
    rules.write_text(load_pack_text("fraud"))
    data = ("--data", str(folder))
    exports = (
        ("export", kind, "--tenant", tenant, "--out", str(folder / f"{kind}.ndjson"), *data)
        for kind in ("events", "decisions")
    )
    backtest = ("rules", "backtest", str(rules), "--tenant", tenant, "--json", *data)
    commands = (("doctor", *data), *exports, backtest)
    faults = []
    for arguments in commands:
        done = subprocess.run(
            [sys.executable, "-m", "vettance.cli", *arguments], capture_output=True, text=True, check=False
        )
        # A doctor who finds something to mend exits with 1, and says it.
        if "Traceback" in done.stderr or (done.returncode and arguments[0] != "doctor"):
            faults.append(f"{arguments[0]}: {done.stderr[-2000:]}")
    return faults


def fuzz(folder: Path, count: int, rounds: int, seed: int, connections: int, *, quiet: bool) -> JSON:
    """Do all of it in a folder, and return what happened."""
    make_fresh(folder)
    ledger, starts = Ledger(), 0
    tenant = command(folder, "tenant", "create", "Fuzzed")["tenantId"]
    limits = ("--throttle", "10000000", "--quota", "100000000", "--aml", "on")
    command(folder, "tenant", "set", tenant, *limits)
    key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
    began_s = time.monotonic()
    each = max(1, count // rounds // connections)
    for number in range(rounds + 1):
        try:
            with serving(folder, tenant, key) as service:
                starts += 1
                if number == rounds:
                    break  # The last start only shows that there is one.
                senders = [
                    Sender(service, ledger, seed * 1_000 + number * connections + at, each)
                    for at in range(connections)
                ]
                for sender in senders:
                    sender.start()
                for sender in senders:
                    sender.join()
                end(service, number)
        except LaunchFault as fault:
            ledger.faults.append(f"start {number}: {fault}")
            break
        if not quiet:
            sent = sum(ledger.statuses.values())
            print(
                f"round {number + 1} of {rounds}: {sent:,} answers, {len(ledger.faults)} faults, "
                f"{sent / (time.monotonic() - began_s):,.0f} a second",
                file=sys.stderr,
                flush=True,
            )
    ledger.faults += read_all(folder, tenant)
    return {
        "seed": seed,
        "answers": sum(ledger.statuses.values()),
        "statuses": {str(status): count for status, count in sorted(ledger.statuses.items())},
        "starts": starts,
        "connections_lost": ledger.lost,
        "faults": len(ledger.faults),
        "examples": ledger.faults[:10],
        "seconds": round(time.monotonic() - began_s, 1),
    }


def main() -> None:
    """Read the arguments, do it, and exit with 1 where something was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000, help="requests in all")
    parser.add_argument("--rounds", type=int, default=20, help="restarts")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-data"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with store_of(given.store):
        found = fuzz(given.folder, given.count, given.rounds, given.seed, given.connections, quiet=given.json)
    found["store"] = given.store
    print(json.dumps(found, indent=None if given.json else 2))
    sys.exit(1 if found["faults"] else 0)
