"""Runs the delivery worker through thousands of bad days, each of its own seed, and looks for its mistakes.

Everything around the worker is invented and slow, lossy and hostile as the seed says: the clock (it jumps),
the store (it is down, slow, or reports a failure of a write that succeeded), the network and the receivers
(they hang, refuse, lose answers), the workers themselves (they are killed at any point and started again).
Time is virtual, so a minute takes milliseconds and every run with a seed is the same. The worker, its SQL and
the committer are the real ones, on SQLite in memory.

After the faults end, every delivery must be settled; then the books of the receivers and of the store are
compared.

    python bench simulate_webhooks --schedules 2000 [--seed 1] [--only 17] [--json]
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from typing import Any

import structlog

from bench.simulation.planted_faults import PLANTS, plant
from bench.simulation.simulated_day import FAULTS_S
from bench.simulation.simulated_ledger import check
from bench.simulation.simulated_worker import keep_working, set_pace
from bench.simulation.simulated_world import BEGIN_MS, World, store_image
from bench.simulation.virtual_time import VirtualLoop
from vettance.outbox import MessageType, enqueue
from vettance.tenants.sql import note_change
from vettance.webhooks import sql
from vettance.webhooks.webhook import Subscription, make_secret

TENANT = "ten_" + "1" * 32
SETTLED_S_MAX = 40.0  # Longer than a wrong clock can hold a retry up (`RetryPolicy.ahead_ms_max`).


async def live(world: World) -> None:
    """Live through one schedule and look at the books."""
    rng, day = world.rng, world.day
    subscribe(world, rng.randint(1, 3))
    plans: list[list[tuple[float, str]]] = [[] for _ in range(day.workers)]
    for what, count in (("crash", day.crashes), ("stop", day.stops), ("jump", day.jumps)):
        for _ in range(count):
            rng.choice(plans).append((rng.uniform(0.05, FAULTS_S), what))
    seats = [asyncio.create_task(keep_working(world, sorted(plan))) for plan in plans]
    others = [asyncio.create_task(tell(world, number)) for number in range(day.messages)]
    others += [asyncio.create_task(go_away(world)) for _ in range(day.outages)]
    others += [asyncio.create_task(replay(world)) for _ in range(day.replays)]
    workers = await asyncio.gather(*seats)
    await asyncio.gather(*others)
    world.faulty = False
    until_s = world.now_s() + SETTLED_S_MAX
    while world.now_s() < until_s and world.rows(  # noqa: ASYNC110 - time is virtual
        "SELECT 1 FROM delivery WHERE state = 'pending' LIMIT 1"
    ):
        await asyncio.sleep(0.25)
    await asyncio.sleep(1.0)
    for worker in workers:
        await worker.stop()
    check(world)


def subscribe(world: World, count: int) -> None:
    for number in range(count):
        one = Subscription(
            id=f"whs_{number:032x}",
            tenant=TENANT,
            slot=f"{number:04x}",
            url=f"https://receiver-{number}.example/hook",
            event_types=(MessageType.BLOCKLIST_ENTRY_ADDED,),
            created_at_ms=BEGIN_MS,
            updated_at_ms=BEGIN_MS,
        )
        world.apply(sql.insert_subscription(one, sql.seal(world.vault, make_secret(), TENANT, one.id)))


async def tell(world: World, number: int) -> None:
    await asyncio.sleep(world.rng.uniform(0.0, FAULTS_S - 1))
    now_ms = BEGIN_MS + int(world.now_s() * 1000)
    data = b'{"id":"%d"}' % number
    world.apply(
        enqueue(TENANT, MessageType.BLOCKLIST_ENTRY_ADDED, f"msg_{number:028x}0000", "x", now_ms, data)
    )


async def go_away(world: World) -> None:
    await asyncio.sleep(world.rng.uniform(0.1, FAULTS_S - 2))
    world.store_is_down = True
    await asyncio.sleep(world.rng.uniform(0.1, 1.9))
    world.store_is_down = False


async def replay(world: World) -> None:
    """Queue again, as the API does, something that is settled."""
    await asyncio.sleep(world.rng.uniform(2.0, FAULTS_S))
    settled = world.rows("SELECT id, subscription FROM delivery WHERE state <> 'pending'")
    if not settled:
        return
    identity, subscription = world.rng.choice(settled)
    now_ms = BEGIN_MS + int(world.now_s() * 1000)
    if world.apply(
        [sql.replay(TENANT, identity, now_ms), note_change(sql.AREA, TENANT, subscription, now_ms)]
    )[0]:
        world.replayed[identity] += 1
        world.delivered_at_s.pop(identity, None)


def run(seed: int, image: bytes) -> World:
    """Run one schedule."""
    loop = VirtualLoop()
    try:
        holder: list[World] = []

        async def whole() -> None:
            world = World(seed, image)
            holder.append(world)
            await live(world)

        loop.run_until_complete(whole())
        holder[0].connection.close()
        return holder[0]
    finally:
        loop.close()


def simulate(schedules: int, seed: int) -> dict[str, Any]:
    """Run schedules of consecutive seeds and sum up."""
    image = store_image()
    total: Counter[str] = Counter()
    found: list[dict[str, Any]] = []
    for number in range(seed, seed + schedules):
        world = run(number, image)
        total["schedules"] += 1
        total["attempts"] += len(world.sent)
        total["calm"] += world.day.calm
        total["crashes"] += world.day.crashes
        total["jumps"] += world.day.jumps
        total["outages"] += world.day.outages
        if world.found:
            found.append({"seed": number, "day": world.day._asdict(), "found": world.found})
    return {**total, "violations": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run one schedule, by its seed, with the log of the worker")
    parser.add_argument("--plant", choices=PLANTS, default="none", help="break the worker on purpose")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    set_pace()
    plant(options.plant)
    if options.only is None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    else:
        options.schedules, options.seed = 1, options.only
    result = simulate(options.schedules, options.seed)
    if options.json:
        print(json.dumps(result))
    else:
        for one in result["violations"][:20]:
            print(f"seed {one['seed']}: {'; '.join(one['found'][:5])}\n    {one['day']}")
        print(
            f"{result['schedules']:,} schedules, {result['attempts']:,} attempts, "
            f"{result['crashes']:,} crashes, {result['jumps']:,} clock jumps, {result['outages']:,} outages: "
            f"{len(result['violations'])} with something wrong"
        )
    sys.exit(bool(result["violations"]))
