"""What one state call costs on Redis, with the aggregates of the default pack and labelled traffic.

Thirty days of a thousand customers are observed in order; the newest part is measured, one call at a time
and then sixteen at a time, as a busy process has them. The memory engine is measured with the same events.

    python bench velocity_in_redis [--url redis://127.0.0.1:6379/15] [--shards 3 --parts 6]
                                   [--customers 1000] [--json]

Without --url a private redis-server is started from the PATH and stopped at the end, or a cluster of so many.
"""

import argparse
import asyncio
import json
import re
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop

from vettance.decisions.features import fraud_schema
from vettance.deployment.shared import count_in
from vettance.events.event import read_taken_event
from vettance.redis_link.cluster_connection import ClusterConnection
from vettance.redis_link.redis_connection import RedisConnection, RedisLine
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Observation, Plan, SharedVelocity
from vettance.wire.payload import parse_object

CUSTOMERS, DAYS = 1_000, 30
ALONE, TOGETHER, AT_ONCE = 5_000, 10_000, 16
RECEIVED_MS = 1_780_000_000_000

Seen = tuple[str, int, Observation]


def traffic(customers: int) -> tuple[Plan, list[Seen]]:
    """Make the traffic, and what the default pack observes of it."""
    _, compiled = compile_document(load_pack_text("fraud"), fraud_schema())
    with tempfile.TemporaryDirectory() as folder:
        options = ["--customers", str(customers), "--days", str(DAYS), "--out", folder]
        subprocess.run(
            [sys.executable, "-m", "vettance.cli", "generate", "fraud", *options],
            check=True,
            capture_output=True,
        )
        lines = (Path(folder) / "events.ndjson").read_bytes().splitlines()
    seen = []
    for number, line in enumerate(lines):
        event = read_taken_event(parse_object(line), RECEIVED_MS)
        observation = compiled.observe(compiled.facts(event))
        seen.append((f"evt_{number}", event.occurred_at_ms, observation))
    return compiled.plan, seen


def parts_of(seen: Sequence[Seen]) -> tuple[Sequence[Seen], Sequence[Seen], Sequence[Seen]]:
    """Return what only fills the memory, what is observed sixteen at a time, and what alone."""
    alone = min(ALONE, len(seen) // 4)
    together = min(TOGETHER, len(seen) // 2)
    since = len(seen) - alone
    return seen[: since - together], seen[since - together : since], seen[since:]


async def _together(velocity: SharedVelocity, tenant: str, seen: Sequence[Seen]) -> float:
    """Observe with several calls under way; return microseconds for each."""
    left = iter(seen)

    async def caller() -> None:
        for event_id, at_ms, observation in left:
            await velocity.observe(tenant, event_id, at_ms, observation)
            velocity.settle(tenant, event_id)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return (time.perf_counter() - began) / len(seen) * 1e6


async def servers_of(line: RedisLine) -> Sequence[RedisConnection]:
    """Return the connections to all servers."""
    return await line.masters() if isinstance(line, ClusterConnection) else [line.at(b"")]


async def processor_s(servers: Sequence[RedisConnection]) -> list[float]:
    """Return the processor time that each server has used."""
    told = [(await server.call(b"INFO", b"cpu")).decode() for server in servers]
    names = r"^used_cpu_(?:user|sys):([0-9.]+)"
    return [sum(float(spent) for spent in re.findall(names, one, re.MULTILINE)) for one in told]


async def measure(url: str, plan: Plan, seen: Sequence[Seen]) -> dict[str, float]:
    """Return milliseconds and microseconds by name."""
    line, velocity = count_in(url, bytes(32))
    tenant = f"bench_{secrets.token_hex(6)}"
    await velocity.install(tenant, plan)
    warm, together, alone = parts_of(seen)
    await _together(velocity, tenant, warm)
    servers = await servers_of(line)
    for server in servers:
        await server.call(b"CONFIG", b"RESETSTAT")
    before, began_s = await processor_s(servers), time.process_time()
    found = {"sixteen at once, us per call": await _together(velocity, tenant, together)}
    ours_s, after = time.process_time() - began_s, await processor_s(servers)
    theirs = [(now - then) / len(together) * 1e6 for then, now in zip(before, after, strict=True)]
    found["processor of the process, us per call"] = ours_s / len(together) * 1e6
    found["processor of Redis, us per call"] = sum(theirs)
    found["of that the busiest server"] = max(theirs)
    spent = []
    for event_id, at_ms, observation in alone:
        began = time.perf_counter_ns()
        await velocity.observe(tenant, event_id, at_ms, observation)
        spent.append((time.perf_counter_ns() - began) / 1e6)
        velocity.settle(tenant, event_id)
    spent.sort()
    found["alone, p50 ms"] = statistics.median(spent)
    found["alone, p99 ms"] = spent[len(spent) * 99 // 100]
    calls = usec = stored = 0.0
    for server in servers:
        stats = (await server.call(b"INFO", b"everything")).decode()
        row = next(row for row in stats.splitlines() if row.startswith("cmdstat_evalsha:"))
        calls += float(row.split("calls=")[1].split(",")[0])
        usec += float(row.split("usec=")[1].split(",")[0])
        stored += float(stats.split("used_memory_dataset:")[1].split()[0])
    found["scripts per event"] = calls / (len(together) + len(alone))
    found["inside Redis, us per event"] = usec / (len(together) + len(alone))
    found["bytes in Redis per event"] = stored / len(seen)
    await line.close()
    return found


def measure_memory(plan: Plan, seen: Sequence[Seen]) -> dict[str, float]:
    """Return microseconds of the memory engine, for the same events."""
    velocity = MemoryVelocity()
    velocity.install("bench", plan)
    warm, together, alone = parts_of(seen)
    for event_id, at_ms, observation in (*warm, *together):
        velocity.observe("bench", event_id, at_ms, observation)
    began = time.perf_counter()
    for event_id, at_ms, observation in alone:
        velocity.observe("bench", event_id, at_ms, observation)
    return {"memory engine, us per call": (time.perf_counter() - began) / len(alone) * 1e6}


@contextmanager
def private_redis() -> Iterator[str]:
    """Start a redis-server that keeps nothing on disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
        try:
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


@contextmanager
def private_cluster(shards: int, parts: int) -> Iterator[str]:
    """Start a cluster that keeps nothing on disk."""
    from tests.redis_link.redis_cluster import PrivateCluster

    cluster = PrivateCluster(shards)
    try:
        yield f"{cluster.url}?parts={parts}"
    finally:
        cluster.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="a server that is running")
    parser.add_argument("--shards", type=int, default=1, help="servers of a private cluster")
    parser.add_argument("--parts", type=int, default=6, help="over how many parts it spreads a tenant's keys")
    parser.add_argument("--customers", type=int, default=CUSTOMERS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    plan, seen = traffic(arguments.customers)
    if arguments.shards > 1:
        with private_cluster(arguments.shards, arguments.parts) as url:
            found = uvloop.run(measure(url, plan, seen))
    elif arguments.url:
        found = uvloop.run(measure(arguments.url, plan, seen))
    else:
        with private_redis() as url:
            found = uvloop.run(measure(url, plan, seen))
    found |= measure_memory(plan, seen)
    found["events"] = len(seen)
    found["aggregates"] = len(plan.aggregates)
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:<32} {value:,.3f}")
