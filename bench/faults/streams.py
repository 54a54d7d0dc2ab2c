"""Events of a stream: how many a second are taken and decided, and what is lost or doubled by SIGKILL.

    python bench streams throughput [--from nats|amqp] [--events 20000] [--json]
    python bench streams kill [--from nats|amqp] [--rounds 25] [--events 20000] [--seed 1] [--json]

`throughput` fills a stream with payments and runs `vettance consume` beside a service on the embedded
store, until the last is decided; on a machine that others use, the processor time of an event says more than
the rate. `kill` does the same while at random moments the consumer or the service is killed and started
again; at the end the store must hold one decision for each event. The brokers are those of
VETTANCE_TEST_NATS and VETTANCE_TEST_AMQP, else those of this machine.
"""

import argparse
import asyncio
import json
import os
import random
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import aiormq
import nats
from pamqp.commands import Basic

from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import cpu_s, machine, processes_of, say
from vettance.db.connection import STORE_FILE
from vettance.demo.launch import RunningService, command, serving

NATS = os.environ.get("VETTANCE_TEST_NATS", "nats://127.0.0.1:4222")
AMQP = os.environ.get("VETTANCE_TEST_AMQP", "amqp://guest:guest@127.0.0.1:5672")
PIECE = 1_000
#: A kill falls uniformly into this span after the first message that a round takes or decides.
KILL_S = (0.0, 2.0)
BUSY_S_MAX = 60.0
WAIT_S_MAX = 600.0


async def fill_nats(name: str, bodies: list[bytes]) -> None:
    """Make a stream and publish events into it, each with an id."""
    async with await nats.connect(NATS) as client:
        await client.jetstream().add_stream(name=name, subjects=[name])
        for number, body in enumerate(bodies):
            await client.publish(name, body, headers={"Nats-Msg-Id": f"e{number}"})
            if number % PIECE == 0:
                await client.flush()
        await client.flush()
        held = (await client.jetstream().stream_info(name)).state.messages
        assert held == len(bodies), f"the stream holds {held} of {len(bodies)}"


async def remove_nats(name: str) -> None:
    """Remove the stream."""
    async with await nats.connect(NATS) as client:
        await client.jetstream().delete_stream(name)


async def fill_amqp(name: str, bodies: list[bytes]) -> None:
    """Make a queue and publish events into it, each with an id."""
    connection = await aiormq.connect(AMQP)
    channel = await connection.channel()
    await channel.queue_declare(name, durable=True)
    for first in range(0, len(bodies), PIECE):
        await asyncio.gather(
            *(
                channel.basic_publish(
                    body,
                    routing_key=name,
                    properties=Basic.Properties(message_id=f"e{first + number}", delivery_mode=2),
                )
                for number, body in enumerate(bodies[first : first + PIECE])
            )
        )
    await connection.close()


async def remove_amqp(name: str) -> None:
    """Remove the queue."""
    connection = await aiormq.connect(AMQP)
    await (await connection.channel()).queue_delete(name)
    await connection.close()


@contextmanager
def filled(kind: str, bodies: list[bytes]) -> Iterator[str]:
    """Yield the address of a stream that holds events, and remove it at the end."""
    name = f"BENCH-{secrets.token_hex(4)}"
    fill, remove = (fill_nats, remove_nats) if kind == "nats" else (fill_amqp, remove_amqp)
    asyncio.run(fill(name, bodies))
    try:
        yield f"{NATS}/{name}?ack_wait=5" if kind == "nats" else f"{AMQP}/{name}"
    finally:
        asyncio.run(remove(name))


def consume(folder: Path, tenant: str, address: str) -> subprocess.Popen[bytes]:
    """Start a consumer."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "vettance.cli", "consume", "--tenant", tenant, "--json"),
            *("--data", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "VETTANCE_CONSUME_FROM": address},
    )


def ask(folder: Path, sql: str) -> Any:
    """Ask the store past everything."""
    with closing(sqlite3.connect(folder / STORE_FILE, timeout=30)) as connection:
        return connection.execute(sql).fetchone()[0]


def done_so_far(folder: Path) -> int:
    """Return a number that grows with every message taken and with every event decided."""
    return int(ask(folder, "SELECT (SELECT COUNT(*) FROM stream_message) + (SELECT COUNT(*) FROM decision)"))


def wait_for(folder: Path, events: int) -> None:
    """Wait until so many are decided and nothing waits."""
    until = time.monotonic() + WAIT_S_MAX
    while ask(folder, "SELECT COUNT(*) FROM decision") < events:
        if time.monotonic() > until:
            raise SystemExit("not all events were decided in time")
        time.sleep(0.1)


@contextmanager
def prepared() -> Iterator[tuple[Path, str, str]]:
    """Make a data folder with a tenant and a key."""
    folder = Path(tempfile.mkdtemp(prefix="vettance-bench-"))
    try:
        tenant = command(folder, "tenant", "create", "Streams")["tenantId"]
        yield folder, tenant, command(folder, "key", "create", "--tenant", tenant)["apiKey"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(kind: str, events: int) -> dict[str, Any]:
    """Take and decide a full stream."""
    with (
        prepared() as (folder, tenant, key),
        filled(kind, payment_bodies(events)) as address,
        serving(folder, tenant, key) as service,
    ):
        before_s = service_cpu_s(service)
        begun_s = time.monotonic()
        consumer = consume(folder, tenant, address)
        taken_s = None
        while ask(folder, "SELECT COUNT(*) FROM decision") < events:
            if taken_s is None and ask(folder, "SELECT COUNT(*) FROM stream_message") == events:
                taken_s = time.monotonic() - begun_s
            time.sleep(0.1)
        wall_s = time.monotonic() - begun_s
        used_s = service_cpu_s(service) - before_s
        consumer_s = cpu_s(consumer.pid)
        consumer.terminate()
        consumer.wait(30)
    return {
        "from": kind,
        "events": events,
        "takenPerSecond": round(events / (taken_s or wall_s)),
        "decidedPerSecond": round(events / wall_s),
        "consumerCpuMicroseconds": round(consumer_s / events * 1e6),
        "serviceCpuMicroseconds": round(used_s / events * 1e6),
        "load": os.getloadavg()[0],
        "machine": machine(),
    }


def service_cpu_s(service: RunningService) -> float:
    """Return the processor time of all processes of the service."""
    return sum(cpu_s(pid) for pid in processes_of(service.process.pid))


def kill(kind: str, events: int, rounds: int, seed: int) -> dict[str, Any]:
    """Kill one side after the other at random moments, and count what became of every event."""
    rng, sides = random.Random(seed), {"consumer": 0, "service": 0}
    with prepared() as (folder, tenant, key), filled(kind, payment_bodies(events)) as address:
        for number in range(rounds):
            side = rng.choice(list(sides))
            sides[side] += 1
            with serving(folder, tenant, key) as service:
                before = done_so_far(folder)
                consumer = consume(folder, tenant, address)
                until = time.monotonic() + BUSY_S_MAX
                while done_so_far(folder) == before and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(rng.uniform(*KILL_S))
                pids = [consumer.pid] if side == "consumer" else processes_of(service.process.pid)
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                consumer.kill()
                consumer.wait()
            say(
                f"round {number + 1}: {side} killed, {ask(folder, 'SELECT COUNT(*) FROM decision'):,} decided"
            )
        with serving(folder, tenant, key):
            consumer = consume(folder, tenant, address)
            wait_for(folder, events)
            time.sleep(8)  # What would be doubled by the last deliveries is doubled by now.
            consumer.terminate()
            consumer.wait(30)
        decided = ask(folder, "SELECT COUNT(*) FROM decision")
        distinct = ask(
            folder,
            "SELECT COUNT(DISTINCT job.request_id) FROM job JOIN decision ON decision.id = job.event",
        )
        repeated = ask(folder, "SELECT SUM(repeated) FROM stream_consumer")
    return {
        "from": kind,
        "events": events,
        "killed": sides,
        "lost": events - distinct,
        "doubled": decided - distinct,
        "cameAgain": repeated,
    }


def main() -> int:
    """Run one of the two."""
    manual = argparse.ArgumentParser(
        prog="bench streams", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    manual.add_argument("what", choices=("throughput", "kill"))
    manual.add_argument("--from", dest="kind", choices=("nats", "amqp"), default="nats")
    manual.add_argument("--events", type=int, default=20_000)
    manual.add_argument("--rounds", type=int, default=25)
    manual.add_argument("--seed", type=int, default=1)
    manual.add_argument("--json", action="store_true")
    given = manual.parse_args()
    if given.what == "throughput":
        found = measure(given.kind, given.events)
    else:
        found = kill(given.kind, given.events, given.rounds, given.seed)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")
    return 1 if found.get("lost") or found.get("doubled") else 0
