"""What one tenant's decisions and webhooks suffer while another tenant misbehaves.

The quiet tenant asks for decisions at a steady, modest rate and gets a webhook for each. The latency of a
decision counts from the moment its request was due, that of a webhook from the moment of its event. Every way
of misbehaving (see `misbehave.py`; `flood` is decisions as fast as they are answered) has a service of its
own, on which the quiet tenant is measured alone first and then beside the other tenant, which has the default
limits (but for `subscriptions`: 1,000, and `hostile-names`: 700). So no way carries what another one left
behind, and other load on the machine affects both alike.

    python bench neighbour [--store sqlite|shared] [--ways flood big-bodies …] [--rounds 3] [--seconds 8]

`shared` is two processes on a PostgreSQL and a Redis of its own.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench import BENCH
from bench.client.open_loop import Ask, OpenLoop, quantile
from bench.fixtures.payments import payment_bodies
from bench.fixtures.private_stores import Postgres, Redis
from bench.fixtures.processes import cpu_s, machine, processes_of, proportional_mb, say
from bench.fixtures.webhook_receivers import Receivers
from bench.neighbours import misbehave
from vettance import clock
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, RunningService, command, launched, make_fresh
from vettance.deployment.connect import connect_store
from vettance.ids import IdSource
from vettance.outbox import MessageType
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import read_settings
from vettance.tenants.sql import note_change
from vettance.tenants.vault import Vault
from vettance.webhooks import sql
from vettance.webhooks.webhook import Subscription, make_secret

FLOOD = "flood"
WAYS = (FLOOD, *misbehave.WAYS)
BODIES = 5_000
BEFORE_S = 2.0  # The neighbour is at work before the first request counts.
ARRIVE_S_MAX = 10.0  # What has not arrived by then counts as lost.
NAMES = 700  # Subscriptions to names whose server keeps silent.
DEAD = ("hang", "drip", "failing", "refuse")


class Quiet:
    """The tenant that behaves: its latencies, its webhooks, and what it was promised."""

    def __init__(self, service: RunningService, file: Path, receivers: Receivers) -> None:
        self._service = service
        self._bodies = file.read_bytes().splitlines()
        self._receivers = receivers

    def ask(self, rate: float, seconds: float) -> dict[str, Any]:
        """Ask for so long and return what was measured; every webhook has arrived by then, or is missing."""
        acknowledged: set[str] = set()

        def note(status: int, body: bytes) -> None:
            if status == 200:
                acknowledged.add(json.loads(body)["correlationIds"]["eventId"])

        key = self._service.target.api_key
        asks = [Ask("asked", request("POST", PATH, key, body), note) for body in self._bodies]
        pool = OpenLoop(self._service.target.host, self._service.target.port, connections=16)
        uvloop.run(pool.run(asks, rate, seconds))
        arrived = self._wait_for(acknowledged)
        return {
            "latencies": pool.latencies_ms["asked"],
            "statuses": {str(status): count for status, count in pool.statuses["asked"].items()},
            "webhooks": [(at - _made_s(event)) * 1000 for event, at in arrived.items()],
            "missing": len(acknowledged - arrived.keys()),
        }

    def _wait_for(self, events: set[str]) -> dict[str, float]:
        until = time.monotonic() + ARRIVE_S_MAX
        while True:
            arrived: dict[str, float] = {}
            for one in self._receivers.arrivals():
                if one.subject in events:
                    arrived.setdefault(one.subject, one.at)
            if len(arrived) == len(events) or time.monotonic() > until:
                return arrived
            time.sleep(0.1)


def _made_s(event_id: str) -> float:
    """The moment of an id: the first 48 bits of a UUIDv7 are Unix milliseconds (RFC 9562, section 5.7)."""
    return int(event_id.partition("_")[2][:12], 16) / 1000


async def subscribe(folder: Path, tenant: str, urls: list[str]) -> list[str]:
    """Put subscriptions into the store past the API, which would look up every name; returns their ids."""
    settings = read_settings(data=str(folder))
    vault, ids, now_ms = Vault(load_secret(settings)), IdSource(), clock.now_ms()
    store = await connect_store(settings, writer="thread")
    made: list[str] = []
    try:
        statements = [note_change(sql.AREA, tenant, tenant, now_ms)]
        for number, url in enumerate(urls):
            one = Subscription(
                id=ids.make("whs"),
                tenant=tenant,
                slot=f"{number:04x}",
                url=url,
                event_types=tuple(MessageType),
                created_at_ms=now_ms,
                updated_at_ms=now_ms,
            )
            made.append(one.id)
            statements += sql.insert_subscription(one, sql.seal(vault, make_secret(), tenant, one.id))
        await store.write(*statements)
        return made
    finally:
        await store.close()


def newcomer(folder: Path, way: str, dead: Receivers) -> str:
    """Make a tenant that will misbehave, with the subscriptions that its way needs; returns its key."""
    tenant = command(folder, "tenant", "create", f"Neighbour {way}", "--aml")["tenantId"]
    places = [f"http://127.0.0.1:{port}/hook" for port in dead.ports]
    wanted = {
        "hostile-names": [f"http://silent-{number}.example/hook" for number in range(NAMES)],
        "dead-receivers": [places[number % len(places)] for number in range(25)],
        "subscriptions": [places[2]] * 1000,
    }.get(way, [])
    if wanted:
        command(folder, "tenant", "set", tenant, "--subscriptions", "1000")
        asyncio.run(subscribe(folder, tenant, wanted))
    return str(command(folder, "key", "create", "--tenant", tenant)["apiKey"])


@contextlib.contextmanager
def neighbour(
    service: RunningService, file: Path, key: str, way: str, seconds: float
) -> Iterator[Counter[str]]:
    """Have another process misbehave while the block lasts; what it was answered is there when it ends."""
    base = service.target.base_url
    said: Counter[str] = Counter()
    if way == FLOOD:
        options = ["--url", base + PATH, "--bodies", str(file), "--connections", str(misbehave.LINES)]
        command_line = ["load", *options, "--header", f"x-api-key: {key}", "--json"]
    else:
        command_line = ["misbehave", way, "--url", base, "--key", key]
    process = subprocess.Popen(
        [sys.executable, str(BENCH), *command_line, "--seconds", str(seconds)], stdout=subprocess.PIPE
    )
    try:
        yield said
    finally:
        answered = json.loads(process.communicate(timeout=seconds + 60)[0] or b"{}")
        said.update(answered.get("statuses", answered) if way == FLOOD else answered)


class Weight(threading.Thread):
    """Weighs the processes of the service twice a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.is_over = threading.Event()
        self.most_mb = 0.0

    def run(self) -> None:
        """Weigh until it is over."""
        while not self.is_over.wait(0.5):
            with contextlib.suppress(OSError):
                self.most_mb = max(self.most_mb, sum(map(proportional_mb, processes_of(self._pid))))


@contextlib.contextmanager
def shared_stores() -> Iterator[None]:
    """Run a PostgreSQL and a Redis, and name them to every process started in the block."""
    place = Path(tempfile.mkdtemp(prefix="vettance-stores-"))
    place.chmod(0o755)
    postgres, redis = Postgres(place / "postgres"), Redis()
    postgres.start()
    redis.start()
    try:
        postgres.ask("CREATE DATABASE neighbour")
        os.environ["VETTANCE_DATABASE_URL"] = postgres.url("neighbour")
        os.environ["VETTANCE_REDIS_URL"] = f"redis://127.0.0.1:{redis.port}/0"
        yield
    finally:
        redis.kill()
        postgres.stop()
        shutil.rmtree(place, ignore_errors=True)


class Scene(NamedTuple):
    """A service with the quiet tenant, and the key of the one that will misbehave."""

    service: RunningService
    quiet: Quiet
    loud_bodies: Path
    loud_key: str


@contextlib.contextmanager
def prepared(folder: Path, way: str, store: str) -> Iterator[Scene]:
    """Run a service of its own for one way, so that what another way left behind affects nothing."""
    make_fresh(folder)
    quiet_file, loud_file = folder / "quiet.ndjson", folder / "loud.ndjson"
    quiet_file.write_bytes(b"\n".join(payment_bodies(BODIES, 1)))
    loud_file.write_bytes(b"\n".join(payment_bodies(BODIES, 2)))
    os.environ["VETTANCE_UNSAFE_WEBHOOKS"] = "1"
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent.bind(("127.0.0.1", 0))
        os.environ["VETTANCE_NAME_SERVERS"] = f"127.0.0.1:{silent.getsockname()[1]}"
        healthy, dead = Receivers(["healthy"]), Receivers(list(DEAD))
        stack.callback(healthy.end)
        stack.callback(dead.end)
        if store == "shared":
            stack.enter_context(shared_stores())
        service = stack.enter_context(launched(folder, workers=2 if store == "shared" else 1))
        command(folder, "watchlist", "import", "--source", "sample")
        asyncio.run(subscribe(folder, service.tenant_id, [f"http://127.0.0.1:{healthy.ports[0]}/hook"]))
        key = newcomer(folder, way, dead)
        time.sleep(2)  # Every process knows both tenants' subscriptions by then.
        yield Scene(service, Quiet(service, quiet_file, healthy), loud_file, key)


def measure(folder: Path, ways: list[str], rounds: int, seconds: float, rate: float, store: str) -> Any:
    """Run everything and return what was measured, by way."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(rounds):
        for way in ways:
            with prepared(folder, way, store) as scene:
                one = one_pair(scene, way, seconds, rate)
            found[way].append(one)
            say(
                f"round {number + 1}  {way:<15} p95 {one['p95Ms']:.1f} ms ({one['ratio']:.2f} x alone), "
                f"webhooks p95 {one['webhookP95Ms']:.0f} ms ({one['aloneWebhookP95Ms']:.0f} alone), "
                f"{one['missing']} missing, {one['mostMb']:.0f} MB"
            )
    return {"machine": machine(), "store": store, "ways": {way: summary(found[way]) for way in ways}}


def one_pair(scene: Scene, way: str, seconds: float, rate: float) -> dict[str, Any]:
    """Measure the quiet tenant alone, and then while the other one misbehaves."""
    service, quiet = scene.service, scene.quiet
    quiet.ask(rate, BEFORE_S)
    alone = quiet.ask(rate, seconds)
    weight, before_s = Weight(service.process.pid), cpu_s(service.process.pid)
    weight.start()
    with neighbour(service, scene.loud_bodies, scene.loud_key, way, seconds + 2 * BEFORE_S) as said:
        time.sleep(BEFORE_S)
        beside = quiet.ask(rate, seconds)
    weight.is_over.set()
    p95, alone_p95 = quantile(beside["latencies"], 0.95), quantile(alone["latencies"], 0.95)
    return {
        "p95Ms": p95,
        "aloneP95Ms": alone_p95,
        "ratio": p95 / alone_p95,
        "webhookP95Ms": quantile(beside["webhooks"], 0.95),
        "aloneWebhookP95Ms": quantile(alone["webhooks"], 0.95),
        "missing": alone["missing"] + beside["missing"],
        "statuses": beside["statuses"],
        "neighbour": dict(said),
        "mostMb": weight.most_mb,
        "cpuSeconds": cpu_s(service.process.pid) - before_s,
    }


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the rounds of a way together: medians of times, sums of counts, the most memory."""
    medians = ("p95Ms", "aloneP95Ms", "ratio", "webhookP95Ms", "aloneWebhookP95Ms", "cpuSeconds")
    whole: dict[str, Any] = {name: statistics.median(one[name] for one in rounds) for name in medians}
    for name in ("statuses", "neighbour"):
        whole[name] = dict(sum((Counter(one[name]) for one in rounds), Counter()))
    return whole | {
        "missing": sum(one["missing"] for one in rounds),
        "mostMb": max(one["mostMb"] for one in rounds),
    }


def show(found: dict[str, Any]) -> None:
    """Print the results for people."""
    about = found["machine"]
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the end, store {found['store']}\n"
    )
    print(
        "neighbour        alone p95   p95 ms   ratio   webhook p95: alone   beside   missing   MB   answers"
    )
    for way, one in found["ways"].items():
        print(
            f"{way:<15}{one['aloneP95Ms']:>11.2f}{one['p95Ms']:>9.2f}{one['ratio']:>8.2f}"
            f"{one['aloneWebhookP95Ms']:>21.0f}{one['webhookP95Ms']:>9.0f}{one['missing']:>10}"
            f"{one['mostMb']:>5.0f}   {one['neighbour']}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=float, default=40, help="decisions a second of the quiet tenant")
    parser.add_argument("--store", choices=("sqlite", "shared"), default="sqlite")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    options = parser.parse_args()
    try:
        found = measure(
            options.folder, options.ways, options.rounds, options.seconds, options.rate, options.store
        )
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
