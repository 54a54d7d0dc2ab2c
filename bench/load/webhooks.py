"""Measures webhooks from the answer of a decision to the receiver, on a real service with real receivers.

    python bench webhooks latency      20 healthy receivers while 25 misbehave
    python bench webhooks throughput   deliveries a second, sustained
    python bench webhooks retries      gaps between attempts, with a restart in the middle
    python bench webhooks kill         SIGKILL under load, time after time
    python bench webhooks decisions    what deliveries cost decisions at the same time

Each has a tenant and a subscription for every receiver, unless it says otherwise.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench.client.load import Run, drive
from bench.client.open_loop import Ask, OpenLoop, quantile
from bench.fixtures.processes import cpu_s, kind_of, machine, processes_of
from bench.fixtures.webhook_receivers import Receivers
from vettance import clock
from vettance.db.connection import STORE_FILE
from vettance.db.sqlite import SqliteStore, store_path
from vettance.demo.demo_client import request
from vettance.demo.launch import RunningService, serving
from vettance.ids import IdSource
from vettance.outbox import MessageType
from vettance.rules.packs import load_pack_text
from vettance.rules.sql import DECIDING
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import read_settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Key, Tenant, key_digest, make_key
from vettance.tenants.vault import Vault
from vettance.webhooks import sql
from vettance.webhooks.webhook import Subscription, make_secret

PATH = "/api/v1/decisions/evaluate"
BODY = b'{"eventName":"user.login","customer":{"externalId":"c-%d"},"ip":"100.64.%d.%d","metadata":{"n":%d}}'


async def prepare(folder: Path, urls: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Make a tenant with subscriptions for each sequence of URLs; returns (tenant, API key) of each."""
    settings = read_settings(data=str(folder))
    secret, ids, now_ms = load_secret(settings), IdSource(), clock.now_ms()
    vault, made = Vault(secret), []
    async with await SqliteStore.open(store_path(folder), writer="thread") as store:
        await store.migrate()
        for places in urls:
            one = Tenant(id=ids.make("ten"), name="bench", throttle=10_000_000, quota=100_000_000)
            text = make_key(live=False)
            key = Key(
                id=ids.make("key"),
                tenant=one.id,
                digest=key_digest(secret, text),
                hint="",
                created_at_ms=now_ms,
            )
            statements = [
                tenants_sql.insert_tenant(one, now_ms),
                tenants_sql.insert_key(key),
                DECIDING.insert(one.id, 1, load_pack_text("fraud"), "bench", now_ms),
            ]
            for number, url in enumerate(places):
                subscription = Subscription(
                    id=ids.make("whs"),
                    tenant=one.id,
                    slot=f"{number:04x}",
                    url=url,
                    event_types=tuple(MessageType),
                    created_at_ms=now_ms,
                    updated_at_ms=now_ms,
                )
                sealed = sql.seal(vault, make_secret(), one.id, subscription.id)
                statements += sql.insert_subscription(subscription, sealed)
            await store.write(*statements)
            made.append((one.id, text))
    return made


@contextlib.contextmanager
def stage(
    kinds: list[str], together: bool = False
) -> Iterator[tuple[Path, list[tuple[str, str]], Receivers]]:
    """Receivers and a folder with tenants for them: one each, or one for all of them `together`."""
    os.environ["VETTANCE_UNSAFE_WEBHOOKS"] = "1"
    receivers = Receivers(kinds)
    urls = [f"http://127.0.0.1:{port}/hook" for port in receivers.ports]
    with tempfile.TemporaryDirectory(prefix="vettance-bench-") as folder:
        places = [urls] if together else [[url] for url in urls]
        try:
            yield Path(folder), asyncio.run(prepare(Path(folder), places)), receivers
        finally:
            receivers.end()


class Events:
    """Sends events at a steady rate, each key in turn, and notes when each was answered."""

    def __init__(self, service: RunningService, keys: Sequence[str]) -> None:
        self._pool = OpenLoop(service.target.host, service.target.port, connections=48)
        self._keys = keys
        #: event id → (Unix seconds of the answer, which key)
        self.answered: dict[str, tuple[float, int]] = {}

    async def run(self, rate: float, seconds: float) -> None:
        """Send for so long, and wait for the answers."""
        await self._pool.run(map(self._ask, itertools.count()), rate, seconds)

    def _ask(self, number: int) -> Ask:
        which = number % len(self._keys)

        def note(status: int, body: bytes) -> None:
            if status == 200:
                self.answered[json.loads(body)["correlationIds"]["eventId"]] = (time.time(), which)

        return Ask("event", _event(number, self._keys[which]), note)

    @property
    def latencies_ms(self) -> list[float]:
        """Milliseconds from due to answered."""
        return self._pool.latencies_ms["event"]

    @property
    def failed(self) -> int:
        """How many were not answered with a decision."""
        statuses = self._pool.statuses["event"]
        return statuses.total() - statuses[200]


def _event(number: int, key: str) -> bytes:
    return request("POST", PATH, key, BODY % (number, number >> 8 & 255, number & 255, number))


def wait_until(done: Any, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def latency(seconds: float) -> dict[str, Any]:
    """200 events/s to 20 healthy receivers, and as many for each that misbehaves."""
    kinds = ["healthy"] * 20 + ["hang"] * 10 + ["refuse"] * 10 + ["drip"] * 5
    with stage(kinds) as (folder, tenants, receivers), serving(folder, *tenants[0]) as service:
        healthy = len([kind for kind in kinds if kind == "healthy"])
        events = Events(service, [key for _, key in tenants])
        time.sleep(2)  # How long the worker takes to start is what `retries` measures.
        before = usage(service)
        uvloop.run(events.run(200 / healthy * len(kinds), seconds))
        used = {name: round((used - before[name]) / seconds, 2) for name, used in usage(service).items()}
        wanted = {event for event, (_, which) in events.answered.items() if kinds[which] == "healthy"}
        wait_until(
            lambda: wanted <= {one.subject for one in receivers.arrivals() if one.kind == "healthy"}, 15
        )
        arrivals = [one for one in receivers.arrivals() if one.kind == "healthy"]
    ids: dict[str, set[str]] = defaultdict(set)
    first: dict[str, float] = {}
    for one in arrivals:
        ids[one.subject].add(one.webhook_id)
        first.setdefault(one.subject, one.at)
    late_ms = [max(0.0, (first[event] - events.answered[event][0]) * 1000) for event in wanted & set(first)]
    return {
        "events_per_s": round(200 / healthy * len(kinds)),
        "to_healthy": len(wanted),
        "missing": len(wanted - set(first)),
        "repeated": len(arrivals) - len(first),
        "events_with_two_ids": sum(len(found) > 1 for found in ids.values()),
        "seen_p50_ms": round(quantile(late_ms, 0.5), 1),
        "seen_p95_ms": round(quantile(late_ms, 0.95), 1),
        "seen_p99_ms": round(quantile(late_ms, 0.99), 1),
        "seen_max_ms": round(max(late_ms), 1),
        "decision_p99_ms": round(quantile(events.latencies_ms, 0.99), 1),
        "refused": events.failed,
        "cores_used": used,
    }


def throughput(seconds: float, rate: float, fan: int) -> dict[str, Any]:
    """Events at a rate, each to `fan` receivers, for some seconds: what arrives while they come."""
    with (
        stage(["healthy"] * fan, together=True) as (folder, tenants, receivers),
        serving(folder, *tenants[0]) as service,
    ):
        events = Events(service, [tenants[0][1]])
        before = usage(service)
        started = time.time()
        uvloop.run(events.run(rate, seconds))
        ended, arrived = time.time(), receivers.count()
        used = {name: round((usage(service)[name] - before[name]) / (ended - started), 2) for name in before}
        wait_until(lambda: receivers.count() >= len(events.answered) * fan, 60)
        arrivals = receivers.arrivals()
    first: dict[str, float] = {}
    for one in arrivals:
        first.setdefault(one.webhook_id, (one.at - events.answered[one.subject][0]) * 1000)
    return {
        "events_per_s": round(len(events.answered) / (ended - started)),
        "deliveries_per_s": round(arrived / (ended - started)),
        "behind_at_the_end": len(events.answered) * fan - arrived,
        "missing": len(events.answered) * fan - len(first),
        "repeated": len(arrivals) - len(first),
        "seen_p95_ms": round(quantile(list(first.values()), 0.95), 1),
        "decision_p99_ms": round(quantile(events.latencies_ms, 0.99), 1),
        "refused": events.failed,
        "cores_used": used,
    }


def usage(service: RunningService) -> dict[str, float]:
    """Processor seconds used so far by the processes of the service, by what they are."""
    return {kind_of(pid): cpu_s(pid) for pid in processes_of(service.process.pid)}


def retries(count: int) -> dict[str, Any]:
    """`count` deliveries that always fail; the service is stopped and started again after a while."""
    kinds = ["failing"] * 20
    with stage(kinds) as (folder, tenants, receivers):
        with serving(folder, *tenants[0]) as service:
            events = Events(service, [key for _, key in tenants])
            uvloop.run(events.run(100, count / 100))
            time.sleep(3)
            stopping = time.time()
        stopped = time.time()
        with serving(folder, *tenants[0]):
            restarted = time.time()
            wait_until(lambda: receivers.count() >= 6 * len(events.answered), 60)
        arrivals = receivers.arrivals()
    by_id: dict[str, list[Any]] = defaultdict(list)
    for one in arrivals:
        by_id[one.webhook_id].append(one)
    promised_s = (1, 2, 4, 8, 16)
    over_ms: list[float] = []
    waited: list[float] = []
    for found in by_id.values():
        for number in range(len(found) - 1):
            due = found[number].answered_at + promised_s[number]
            # From the signal to the restart nothing is sent; what fell due then counts from the restart.
            down = stopping - 0.1 <= due <= restarted
            over = (found[number + 1].at - (max(due, restarted) if down else due)) * 1000
            (waited if down else over_ms).append(over)
    return {
        "deliveries": len(by_id),
        "attempts": dict(Counter(len(found) for found in by_id.values())),
        "gaps": len(over_ms),
        "over_min_ms": round(min(over_ms), 1),
        "over_p50_ms": round(quantile(over_ms, 0.5), 1),
        "over_p99_ms": round(quantile(over_ms, 0.99), 1),
        "over_max_ms": round(max(over_ms), 1),
        "fell_due_while_down": len(waited),
        "these_after_the_restart_max_ms": round(max(waited, default=0), 1),
        "stop_s": round(stopped - stopping, 1),
        "start_s": round(restarted - stopped, 1),
    }


def kill(rounds: int) -> dict[str, Any]:
    """Kill the service under load, again and again; at the end everything committed must have arrived."""
    rng, answered, shortest = random.Random(1), set(), []
    with stage(["healthy"] * 5) as (folder, tenants, receivers):
        for _ in range(rounds):
            with serving(folder, *tenants[0]) as service:
                events = Events(service, [key for _, key in tenants])

                async def whole(events: Events = events, service: RunningService = service) -> None:
                    delay = rng.uniform(0.3, 1.5)
                    asyncio.get_running_loop().call_later(delay, service.process.send_signal, signal.SIGKILL)
                    await events.run(300, delay + 0.2)

                uvloop.run(whole())
                service.process.wait(10)
                answered |= set(events.answered)
                shortest.append(len(events.answered))
        with serving(folder, *tenants[0]):
            with contextlib.closing(sqlite3.connect(folder / STORE_FILE)) as store:
                committed = {row[0] for row in store.execute("SELECT id FROM event")}
            wait_until(lambda: committed <= {one.subject for one in receivers.arrivals()}, 30)
            time.sleep(0.5)
        arrivals = receivers.arrivals()
    ids = defaultdict(set)
    for one in arrivals:
        ids[one.subject].add(one.webhook_id)
    return {
        "kills": rounds,
        "answered": len(answered),
        "committed": len(committed),
        "answered_not_committed": len(answered - committed),
        "committed_not_delivered": len(committed - set(ids)),
        "delivered_not_committed": len(set(ids) - committed),
        "repeated": len(arrivals) - len(ids),
        "events_with_two_ids": sum(len(found) > 1 for found in ids.values()),
        "fewest_in_a_round": min(shortest),
    }


def decisions(seconds: float) -> dict[str, Any]:
    """The latency of decisions at 200/s and their greatest rate, by the number of receivers of each."""
    found: dict[str, Any] = {}
    for fan in (0, 1, 10):
        with stage(["healthy"] * max(fan, 1), together=True) as (folder, made, _):
            tenants = made if fan else asyncio.run(prepare(folder, [[]]))
            with serving(folder, *tenants[0]) as service:
                events = Events(service, [tenants[0][1]])
                uvloop.run(events.run(200, seconds))
                found[f"receivers_{fan}_p50_ms"] = round(quantile(events.latencies_ms, 0.5), 2)
                found[f"receivers_{fan}_p99_ms"] = round(quantile(events.latencies_ms, 0.99), 2)
                if fan <= 1:
                    requests = [_event(number, tenants[0][1]) for number in range(5000)]
                    run = Run(requests, seconds)
                    result = uvloop.run(drive(run, service.target.host, service.target.port, 32))
                    found[f"receivers_{fan}_most_per_s"] = round(result.per_second)
                    found[f"receivers_{fan}_most_p99_ms"] = round(result.p99_ms, 2)
    return found


def main() -> None:
    """Run what is named and print what was measured as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["latency", "throughput", "retries", "kill", "decisions"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=220, help="events a second (throughput)")
    parser.add_argument("--fan", type=int, default=10, help="receivers of each event (throughput)")
    parser.add_argument("--count", type=int, default=500, help="deliveries (retries)")
    parser.add_argument("--rounds", type=int, default=25, help="kills")
    options = parser.parse_args()
    if options.what == "latency":
        found = latency(options.seconds)
    elif options.what == "throughput":
        found = throughput(options.seconds, options.rate, options.fan)
    elif options.what == "retries":
        found = retries(options.count)
    elif options.what == "kill":
        found = kill(options.rounds)
    else:
        found = decisions(options.seconds)
    print(json.dumps({"what": options.what, **found, "machine": machine()}))
