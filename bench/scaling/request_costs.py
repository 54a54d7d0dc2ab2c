"""What each kind of request costs each part of a deployment: processor, disk, network, and a commit.

A service with the default pack is asked one kind after the other, over 32 connections as fast as it answers,
with all parts on this machine: embedded (SQLite, one process) or shared (two processes, a PostgreSQL and a
Redis of their own). The processor time of each part is that of its processes, so that it says what the part
would take elsewhere too; of several rounds the least counts. `python bench capacity` computes from it what
larger deployments take.

    python bench request_costs [--store embedded|shared] [--count 3000] [--rounds 3] [--keep]

`--keep` writes the figures to bench/scaling/costs.json, from which `capacity` computes.
"""

import argparse
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop

from bench.client.blocking import ask_once
from bench.client.open_loop import Ask, OpenLoop, quantile
from bench.fixtures.private_stores import Postgres, Redis, free_port
from bench.fixtures.processes import cpu_s, kind_of, machine, processes_of, resident_mb, say
from bench.fixtures.webhook_receivers import Receivers
from bench.load.soak_traffic import MIX, Traffic
from bench.neighbours.neighbour import subscribe
from vettance.db.sqlite import store_path
from vettance.demo.demo_client import request
from vettance.demo.launch import QUOTA, THROTTLE, LaunchFault, RunningService, command, make_fresh, serving

COSTS: Final = Path(__file__).with_name("costs.json")
#: What is asked for most comes first; `evaluate` makes the decisions that later kinds name.
KINDS: Final = tuple(MIX)
_WARM: Final = 4_000
_CONNECTIONS: Final = 32
_ALONE_RATE: Final = 100.0
#: How long a deployment is looked at while it rests; how soon, and within what, it has done what was left.
_REST_S: Final = 5.0
_LOOK_S: Final = 0.5
_CALM_S_MAX: Final = 6.0
_CALM_US: Final = 5_000.0
#: The kind of a decision of which one subscriber gets a webhook.
TOLD: Final = "evaluate, one webhook"
_KNOWN_S: Final = 3.0  # Until every process knows a new subscription.
_EMBEDDED: Final = {"VETTANCE_DATABASE_URL": "", "VETTANCE_REDIS_URL": ""}
#: Connections with which a commit is measured: so few that no commit waits for anything but the store.
_COMMIT_CONNECTIONS: Final = 2
#: Requests a second that no deployment answers here: each connection asks again once it is answered.
_AT_ONCE: Final = 1e6
#: A busy deployment may turn a few away; more of them, and the costs are not those of what is asked.
_FAILED_MAX: Final = 0.02


class Deployment(NamedTuple):
    """A running service with the stores that are its own, where it has any."""

    service: RunningService
    folder: Path
    postgres: Postgres | None
    redis: Redis | None
    ready_s: float
    metrics_port: int

    def cpu_us(self) -> dict[str, float]:
        """Return the processor microseconds so far, by part: web, writer, webhooks, postgres, redis, rest."""
        found: dict[str, float] = defaultdict(float)
        for pid in processes_of(self.service.process.pid):
            with contextlib.suppress(OSError):
                found[self._part_of(pid)] += cpu_s(pid) * 1e6
        for part, root in (("postgres", self._postgres_pid()), ("redis", self._redis_pid())):
            for pid in processes_of(root) if root else ():
                with contextlib.suppress(OSError):
                    found[part] += cpu_s(pid) * 1e6
        return dict(found)

    def disk_bytes(self) -> dict[str, float]:
        """Return how much the store holds, and how much was written to its log of changes so far."""
        if self.postgres is None:
            path = store_path(self.folder)
            return {"stored": sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))}
        ((stored, logged),) = self.postgres.ask(
            "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn",
            database="costs",
        )
        return {"stored": float(stored), "logged": float(logged)}

    def redis_bytes(self) -> float:
        """Return the bytes that Redis took and gave over its connections so far."""
        if self.redis is None:
            return 0.0
        told = self.redis.info("stats")
        return float(int(told["total_net_input_bytes"]) + int(told["total_net_output_bytes"]))

    def commits(self) -> tuple[float, float, float]:
        """Return how many batches were committed so far, the seconds they took, and the writes in them."""
        told = ask_once("127.0.0.1", self.metrics_port, request("GET", "/metrics", "")).body.decode()
        values = dict(line.rsplit(" ", 1) for line in told.splitlines() if line and line[0] != "#")
        prefix = "vettance_store_commit"
        return (
            float(values[f"{prefix}_seconds_count"]),
            float(values[f"{prefix}_seconds_sum"]),
            float(values[f"{prefix}_writes_sum"]),
        )

    def _part_of(self, pid: int) -> str:
        kind = kind_of(pid)
        if self.postgres is None and pid == self.service.process.pid:
            return "web"
        return kind if kind in ("web", "writer", "webhooks") else "rest"

    def _postgres_pid(self) -> int | None:
        if self.postgres is None:
            return None
        return int((self.postgres.folder / "data" / "postmaster.pid").read_text().split()[0])

    def _redis_pid(self) -> int | None:
        return None if self.redis is None else int(self.redis.info("server")["process_id"])


@contextlib.contextmanager
def deployed(store: str) -> Iterator[Deployment]:
    """Start a service of one tenant on a store of its own. Raises `LaunchFault`."""
    place = Path(tempfile.mkdtemp(prefix="vettance-costs-"))
    place.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        port = free_port()
        postgres, redis, named = None, None, dict(_EMBEDDED)
        if store == "shared":
            postgres, redis = Postgres(place / "postgres"), Redis()
            stack.callback(postgres.stop)
            postgres.start()
            postgres.ask("CREATE DATABASE costs")
            stack.callback(redis.kill)
            redis.start()
            named = {
                "VETTANCE_DATABASE_URL": postgres.url("costs"),
                "VETTANCE_REDIS_URL": f"redis://127.0.0.1:{redis.port}/0",
            }
        named |= {"VETTANCE_METRICS": f"127.0.0.1:{port}", "VETTANCE_UNSAFE_WEBHOOKS": "1"}
        stack.enter_context(_environment(named))
        folder = place / "data"
        make_fresh(folder)
        tenant = command(folder, "tenant", "create", "Costs", "--aml")["tenantId"]
        command(folder, "tenant", "set", tenant, "--throttle", str(THROTTLE), "--quota", str(QUOTA))
        command(folder, "watchlist", "import", "--source", "sample")
        key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
        began = time.perf_counter()
        service = stack.enter_context(serving(folder, tenant, key, workers=2 if postgres is not None else 1))
        yield Deployment(service, folder, postgres, redis, time.perf_counter() - began, port)


@contextlib.contextmanager
def _environment(named: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({name: value for name, value in named.items() if value})
    for name in (name for name, value in named.items() if not value):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def send(
    to: Deployment, asks: list[Ask], rate: float = _AT_ONCE, connections: int = _CONNECTIONS
) -> OpenLoop:
    """Send requests, wait for the answers, and return what was counted. Stops where many were refused."""
    target = to.service.target
    loop = OpenLoop(target.host, target.port, connections)
    uvloop.run(loop.run(iter(asks), rate, len(asks) / rate))
    for kind, statuses in loop.statuses.items():
        failed = sum(count for status, count in statuses.items() if status // 100 != 2 and status != 409)
        if failed > _FAILED_MAX * statuses.total():
            raise SystemExit(f"{kind} was answered {dict(statuses)}")
    return loop


def resting_us(to: Deployment) -> dict[str, float]:
    """Return the processor microseconds of a second in which nobody asks, by part."""
    time.sleep(_CALM_S_MAX)
    before = to.cpu_us()
    time.sleep(_REST_S)
    return {part: (us - before.get(part, 0.0)) / _REST_S for part, us in to.cpu_us().items()}


def calm_down(to: Deployment, resting: Mapping[str, float]) -> None:
    """Wait until what requests left to be done behind them is done: links, counts, columns of the history."""
    usual = sum(resting.values()) * _LOOK_S
    until = time.monotonic() + _CALM_S_MAX
    while time.monotonic() < until:
        before = sum(to.cpu_us().values())
        time.sleep(_LOOK_S)
        if sum(to.cpu_us().values()) - before <= 2 * usual + _CALM_US:
            return


def cost_of(to: Deployment, asks: list[Ask], resting: Mapping[str, float]) -> dict[str, float]:
    """Return what one request of these costs: microseconds by part, and bytes.

    What is done behind it counts as well; what the deployment takes while it rests (µs a second) does not.
    """
    cpu, disk, redis, began = to.cpu_us(), to.disk_bytes(), to.redis_bytes(), time.monotonic()
    loop = send(to, asks)
    calm_down(to, resting)
    count, took_s = len(asks), time.monotonic() - began
    # A helper process that has ended takes its seconds with it.
    found = {
        part: max(0.0, us - cpu.get(part, 0.0) - resting.get(part, 0.0) * took_s) / count
        for part, us in to.cpu_us().items()
    }
    found |= {f"{name}Bytes": max(0.0, held - disk[name]) / count for name, held in to.disk_bytes().items()}
    found["redisBytes"] = (to.redis_bytes() - redis) / count
    found["sentBytes"] = sum(len(ask.content) for ask in asks) / count
    found["p50Ms"] = quantile([each for kind in loop.latencies_ms.values() for each in kind], 0.5)
    return found


def told_cost(to: Deployment, traffic: Traffic, count: int, resting: Mapping[str, float]) -> dict[str, float]:
    """Return what a decision costs of which one subscriber hears."""
    receivers = Receivers(["healthy"])
    try:
        hook = f"http://127.0.0.1:{receivers.ports[0]}/hook"
        uvloop.run(subscribe(to.folder, to.service.tenant_id, [hook]))
        time.sleep(_KNOWN_S)
        return cost_of(to, traffic.of_kind("evaluate", count), resting)
    finally:
        receivers.end()


def commits_of(to: Deployment, asks: list[Ask], connections: int) -> tuple[float, float]:
    """Return the mean writes of a batch and the mean milliseconds of its commit, over some connections."""
    count, seconds, writes = to.commits()
    send(to, asks, connections=connections)
    after = to.commits()
    batches = max(1.0, after[0] - count)
    return (after[2] - writes) / batches, (after[1] - seconds) / batches * 1000


def alone_ms(to: Deployment, asks: list[Ask]) -> list[float]:
    """Return the latencies of requests of which one is asked at a time."""
    loop = send(to, asks, _ALONE_RATE, 1)
    return sorted(each for kind in loop.latencies_ms.values() for each in kind)


def commit_of(to: Deployment, asks: list[Ask], evaluated: Mapping[str, float]) -> dict[str, float]:
    """Return what a commit takes by itself and for each write in it, in milliseconds.

    A batch is applied by one connection, so a write adds the processor time of the store.
    """
    write_ms = evaluated.get("postgres", evaluated.get("writer", 0.0)) / 1000
    writes, took_ms = commits_of(to, asks, _COMMIT_CONNECTIONS)
    return {"fixedMs": max(took_ms - writes * write_ms, 0.0), "writeMs": write_ms}


def measure(store: str, count: int, rounds: int) -> dict[str, Any]:
    """Start a deployment, ask it for every kind, and return the costs."""
    with deployed(store) as to:
        traffic = Traffic(to.service.target.api_key)
        warm = traffic.of_kind("mint", 16) + traffic.of_kind("evaluate", _WARM)
        send(to, warm)
        resting = resting_us(to)
        kinds: dict[str, dict[str, float]] = {}
        for number in range(rounds):
            for kind in KINDS:
                found = cost_of(to, traffic.of_kind(kind, count), resting)
                least = kinds.setdefault(kind, found)
                kinds[kind] = {name: min(value, least.get(name, value)) for name, value in found.items()}
                say(f"round {number + 1}  {kind:<9} {_line(found)}")
        commit = commit_of(to, traffic.of_kind("evaluate", count), kinds["evaluate"])
        kinds[TOLD] = told_cost(to, traffic, count, resting)
        alone = alone_ms(to, traffic.of_kind("evaluate", 400))
        web = [pid for pid in processes_of(to.service.process.pid) if to._part_of(pid) == "web"]
        return {
            "machine": machine(),
            "kinds": kinds,
            "restingUsPerSecond": resting,
            "commit": commit,
            "evaluateAloneMs": [round(quantile(alone, part / 100), 3) for part in range(1, 101)],
            "readyS": to.ready_s,
            "webMb": max(resident_mb(pid) for pid in web),
        }


def _line(found: dict[str, float]) -> str:
    parts = ("web", "writer", "webhooks", "postgres", "redis", "rest")
    return "  ".join(f"{part} {found[part]:.0f} µs" for part in parts if part in found)


def show(store: str, found: dict[str, Any]) -> None:
    """Print the costs as a table for people."""
    about, kinds = found["machine"], found["kinds"]
    columns = [name for name in kinds["evaluate"] if name != "p50Ms"]
    print(f"{store}: {about['cpu']}, {about['cores']} cores, load {about['load']}\n")
    print(f"{'µs, bytes of one request':<26}" + "".join(f"{name:>13}" for name in columns))
    for kind, one in kinds.items():
        print(f"{kind:<26}" + "".join(f"{one.get(name, 0):>13,.0f}" for name in columns))
    commit = found["commit"]
    print(f"\na commit: {commit['fixedMs']:.2f} ms, and {commit['writeMs'] * 1000:.0f} µs for each write")
    print(f"ready after {found['readyS']:.1f} s; a web process holds {found['webMb']:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("embedded", "shared"), default="embedded")
    parser.add_argument("--count", type=int, default=3000, help="requests of a kind in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help=f"write the figures to {COSTS.name}")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    try:
        found = measure(asked.store, asked.count, asked.rounds)
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    if asked.keep:
        known = json.loads(COSTS.read_text()) if COSTS.exists() else {}
        COSTS.write_text(json.dumps(known | {asked.store: found}, indent=1, sort_keys=True) + "\n")
    if asked.json:
        print(json.dumps(found))
    else:
        show(asked.store, found)
