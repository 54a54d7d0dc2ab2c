"""Runs the delivery worker through thousands of bad days, each of its own seed, and looks for its mistakes.

Everything around the worker is invented and slow, lossy and hostile as the seed says: the clock (it jumps),
the store (it is away, slow, or says it failed when it did not), the network and the receivers (they hang,
refuse, lose answers), the workers themselves (they are killed at any point and started again). Time is
virtual, so a minute takes milliseconds and every run with a seed is the same. The worker, its SQL and the
committer are the real ones, on SQLite in memory.

After the faults end, every delivery must be settled; then the books of the receivers and of the store are
compared.

    python bench/simulate_webhooks.py --schedules 2000 [--seed 1] [--only 17] [--json]
"""

import argparse
import asyncio
import json
import random
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import structlog
from virtual_time import VirtualLoop

from vettance.db.batch import Committer
from vettance.db.engine import Clash, Lost, Misuse, Row, Statement, StoreDown
from vettance.db.migrate import migrations
from vettance.ops.meters import Meters
from vettance.outbox import MessageType, enqueue
from vettance.tenants.sql import note_change
from vettance.vault import Vault
from vettance.webhooks import deliver, sql
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.webhook import Failure, Outcome, RetryPolicy, Subscription, make_secret

TENANT = "ten_" + "1" * 32
BEGIN_MS = 1_800_000_000_000
#: Ten times as fast as the real ones, so that a schedule has room for many attempts.
POLICY = RetryPolicy(delays_ms=(100, 200, 400, 800, 1600), attempt_s_max=1.0)
LEASE_MS = 3_000
PACE = {"_POLL_S": 0.05, "_ROUND_S": 0.02, "_CHANGES_S": 0.1, "_SWEEP_S": 0.5, "_OVERDUE_MS": 400}
FAULTS_S = 6.0
SETTLED_S_MAX = 40.0  # Longer than a wrong clock can hold a retry up (`DUE_AHEAD_MS_MAX`).
_FAILURES = {"clash": Clash, "lost": Lost, "down": StoreDown, "wrong": Misuse}


class Day(NamedTuple):
    """What goes wrong in a schedule."""

    workers: int
    messages: int
    crashes: int
    stops: int
    jumps: int
    outages: int
    slow_store: float  # the share of calls that take seconds
    lying_store: float  # the share of writes that are kept although they are said to have failed
    bad_network: float
    replays: int

    @property
    def calm(self) -> bool:
        """Whether nothing excuses an attempt that is not in the books."""
        return not (
            self.crashes or self.stops or self.jumps or self.outages or self.slow_store or self.lying_store
        )


def day_of(rng: random.Random) -> Day:
    """Choose the faults: on some days one kind alone, on others all of them."""
    kinds = rng.choice(("none", "network", "crash", "stop", "clock", "store", "lies", "all"))

    def some(kind: str, most: int) -> int:
        return rng.randint(1, most) if kinds in (kind, "all") else 0

    return Day(
        workers=rng.choice((1, 1, 2, 3)),
        messages=rng.randint(1, 25),
        crashes=some("crash", 5),
        stops=some("stop", 3),
        jumps=some("clock", 4),
        outages=some("store", 3),
        slow_store=rng.choice((0.0, 0.05)) if kinds in ("store", "all") else 0.0,
        lying_store=0.05 if kinds in ("lies", "all") else 0.0,
        bad_network=0.0 if kinds == "none" else rng.choice((0.1, 0.4, 0.9)),
        replays=rng.choice((0, 0, 3)),
    )


class Sent(NamedTuple):
    """One attempt as the network saw it."""

    delivery: str
    attempt: int
    worker: "Worker"
    started_s: float
    body: bytes


class World:
    """The store, the receivers and the books of one schedule."""

    def __init__(self, seed: int, store: bytes) -> None:
        self.rng = random.Random(seed)
        self.day = day_of(self.rng)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(store)
        self.committer = Committer(self.connection)
        self.vault = Vault(b"v" * 32)
        self.store_is_down = False
        self.sent: list[Sent] = []
        self.ended: dict[int, tuple[float, int]] = {}  # place in `sent` → when, status (0: no answer seen)
        self.taken: set[str] = set()  # deliveries that a receiver has answered with 2xx
        self.delivered_at_s: dict[str, float] = {}  # when the store was told, last
        self.replayed: Counter[str] = Counter()
        self.faulty = True
        self.found: list[str] = []

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def apply(self, statements: Sequence[Statement]) -> list[int]:
        """Commit statements by the code that the writer process runs."""
        shape = [[one.sql, one.rows] for one in statements]
        (answer,) = self.committer.apply([[shape, *(tuple(one.args) for one in statements)]])
        if answer and isinstance(answer[0], str):
            raise _FAILURES[answer[0]](answer[1])
        return list(answer)

    def rows(self, text: str, *args: Any) -> list[Row]:
        return self.connection.execute(text, args).fetchall()


class SimulatedStore:
    """The way of one worker to the store."""

    def __init__(self, world: World, worker: "Worker") -> None:
        self._world = world
        self._worker = worker

    async def _travel(self) -> None:
        world = self._world
        slow = world.faulty and world.rng.random() < world.day.slow_store
        await asyncio.sleep(world.rng.uniform(1.0, 5.0) if slow else world.rng.uniform(0.0005, 0.01))
        if world.store_is_down:
            raise StoreDown("away")

    async def read(self, statement: Statement) -> list[Row]:
        await self._travel()
        found = self._world.rows(statement.sql, *statement.args)
        await self._travel()
        return found

    async def write(self, *statements: Statement) -> list[int]:
        await self._travel()
        world = self._world
        answer = world.apply(statements)
        for one in statements:
            if one.sql.startswith("UPDATE delivery SET state") and one.args[0] == "delivered":
                (identity,) = world.rows("SELECT id FROM delivery WHERE seq = ?", one.args[-2])[0]
                world.delivered_at_s[identity] = world.now_s()
        if world.faulty and world.rng.random() < world.day.lying_store:
            raise StoreDown("the answer was lost")
        await self._travel()
        return answer


class SimulatedNetwork:
    """The way of one worker to the receivers."""

    def __init__(self, world: World, worker: "Worker") -> None:
        self._world = world
        self._worker = worker

    async def post(self, _url: str, headers: Any, body: bytes, attempt_s_max: float) -> Outcome:
        world, rng = self._world, self._world.rng
        named = dict(headers)
        started_ms, started_s = self._worker.now_ms(), world.now_s()
        place = len(world.sent)
        world.sent.append(
            Sent(named["webhook-id"], int(named["X-Webhook-Attempt"]), self._worker, started_s, body)
        )
        status, failure = 0, None
        bad = world.faulty and rng.random() < world.day.bad_network
        kind = rng.choice(("500", "hang", "refused", "lost", "slow")) if bad else "200"
        await asyncio.sleep(rng.uniform(0.001, 0.05))
        if kind in ("200", "slow", "lost"):
            if kind == "slow":
                await asyncio.sleep(rng.uniform(0.2, 0.9))
            world.taken.add(named["webhook-id"])
        await asyncio.sleep(rng.uniform(0.001, 0.05))
        if kind == "hang":
            await asyncio.sleep(attempt_s_max)
            failure = Failure.TIMEOUT
        elif kind == "refused":
            failure = Failure.REFUSED
        elif kind == "lost":
            failure = Failure.DISCONNECTED
        else:
            status = 500 if kind == "500" else 200
            failure = Failure.STATUS if status == 500 else None
        world.ended[place] = world.now_s(), status
        duration_ms = round((world.now_s() - started_s) * 1000)
        return Outcome(status, failure, b"", started_ms, self._worker.now_ms() + 1, duration_ms)


class Worker:
    """One life of a worker process. Its clock may be wrong."""

    def __init__(self, world: World, skew_ms: int, *, alone: bool) -> None:
        self.world = world
        self.skew_ms = skew_ms
        self.died_s: float | None = None
        self.slot = memoryview(bytearray(8 * 1024)).cast("Q")
        self.deliverer = Deliverer(
            SimulatedStore(world, self),
            SimulatedNetwork(world, self),  # type: ignore[arg-type]
            world.vault,
            policy=POLICY,
            alone=alone,
            now_ms=self.now_ms,
            meters=Meters(self.slot, "webhooks"),
        )
        self.running = asyncio.create_task(self.deliverer.run())

    def now_ms(self) -> int:
        return BEGIN_MS + int(self.world.now_s() * 1000) + self.skew_ms

    def tasks(self) -> list[asyncio.Task[Any]]:
        return [self.running, *self.deliverer._attempts]

    async def kill(self) -> None:
        """End it as SIGKILL does: nothing it has not done yet is ever done."""
        self.died_s = self.world.now_s()
        left = self.tasks()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.deliverer.stop()
        await self.running
        self.died_s = self.world.now_s()


async def keep_working(world: World, plan: list[tuple[float, str]]) -> Worker:
    """Run one seat of workers through its plan of (moment, what happens); return who sits there then."""
    alone = world.day.workers == 1
    skew_ms = 0 if world.day.calm else world.rng.randint(-50, 50)
    worker = Worker(world, skew_ms, alone=alone)
    for at_s, what in plan:
        await asyncio.sleep(max(0.0, at_s - world.now_s()))
        if what == "jump":
            worker.skew_ms += world.rng.choice((-1, 1)) * world.rng.choice(
                (500, 20_000, 3_600_000, 86_400_000)
            )
            continue
        await (worker.kill() if what == "crash" else worker.stop())
        await asyncio.sleep(world.rng.uniform(0.01, 1.5))
        worker = Worker(world, worker.skew_ms, alone=alone)
    await asyncio.sleep(max(0.0, FAULTS_S - world.now_s()))
    worker.skew_ms = 0  # The clock is set right in the end, which is a jump too.
    return worker


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
        [enqueue(TENANT, MessageType.BLOCKLIST_ENTRY_ADDED, f"msg_{number:028x}0000", "x", now_ms, data)]
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


def check(world: World) -> None:
    """Hold what the receivers saw against what the store says."""
    day, found = world.day, world.found
    sent: dict[str, list[tuple[int, Sent]]] = defaultdict(list)
    for place, one in enumerate(world.sent):
        sent[one.delivery].append((place, one))
    unrecorded = 0
    for seq, identity, state, ever, lease in world.rows(
        "SELECT seq, id, state, attempts_ever, lease FROM delivery ORDER BY seq"
    ):
        rows = world.rows(
            "SELECT number, status, error, started_at_ms, duration_ms FROM attempt "
            "WHERE delivery = ? ORDER BY number",
            seq,
        )
        posts = sent.pop(identity, [])
        if state == "pending":
            found.append(f"{identity} was never settled")
            continue
        if lease is not None:
            found.append(f"{identity} is settled and still leased")
        if [row[0] for row in rows] != list(range(1, ever + 1)):
            found.append(f"{identity}: attempts {[row[0] for row in rows]} where there were {ever}")
        if state == "delivered" and identity not in world.taken:
            found.append(f"{identity} is said to be delivered and nobody took it")
        if state == "delivered" and (not rows or rows[-1][1] != 200):
            found.append(f"{identity} is delivered and its last attempt is not")
        if state == "exhausted" and (ever < 6 or any(row[2] is None for row in rows[-6:])):
            found.append(f"{identity} was given up too early")
        if ever > 6 * (1 + world.replayed[identity]):
            found.append(f"{identity} has {ever} attempts in the books")
        if len({one.body for _, one in posts}) > 1:
            found.append(f"{identity} was sent with different bytes")
        unrecorded += len(posts) - ever
        if ever > len(posts):
            found.append(f"{identity}: {ever} attempts are recorded, {len(posts)} were made")
        look_at_overlaps(world, identity, posts)
        if day.calm:
            look_at_pace(world, identity, rows)
    if sent:
        found.append(f"{len(sent)} deliveries were sent that the store does not know")
    if day.calm and unrecorded:
        found.append(f"{unrecorded} attempts were made twice on a calm day")


def look_at_overlaps(world: World, identity: str, posts: list[tuple[int, Sent]]) -> None:
    """Nothing is sent twice at the same time by workers that live, and nothing after its success is stored.

    Only a lease that ran out excuses it, for which a clock has to jump or a store to be slow or away.
    """
    day = world.day
    if day.jumps or day.slow_store or day.outages or day.lying_store:
        return
    for (place, one), (_, two) in pairwise(posts):
        ended_s = world.ended.get(place, (None, 0))[0]
        if ended_s is None:
            ended_s = one.worker.died_s if one.worker.died_s is not None else float("inf")
        if two.started_s < ended_s:
            world.found.append(f"{identity} was sent by two at the same time")
    done_s = world.delivered_at_s.get(identity)
    if (
        done_s is not None
        and not world.replayed[identity]
        and any(one.started_s > done_s for _, one in posts)
    ):
        world.found.append(f"{identity} was sent again after its success was stored")


def look_at_pace(world: World, identity: str, rows: list[Row]) -> None:
    """Retries come when promised; never earlier, and later only because the receiver's lane was full."""
    if world.replayed[identity]:
        return
    for before, after in pairwise(rows):
        gap = after[3] - before[3] - before[4]
        promised = POLICY.delays_ms[before[0] - 1]
        if gap < promised - 1:  # Durations are rounded to whole milliseconds.
            world.found.append(f"{identity}: retry {gap} ms after the failure, promised {promised}")


def store_image() -> bytes:
    """Make an empty store of the newest schema, to be copied for every schedule."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations():
        connection.executescript(migration.text)
    return connection.serialize()


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


#: Faults planted into the worker's own SQL, to see that the books show them.
PLANTS = ("none", "claim regardless", "retry early", "forget leases")


def _sooner(verdict: Any) -> Any:
    return verdict[0], verdict[1] - 90


def plant(name: str) -> None:
    outbox = deliver.outbox
    if name == "claim regardless":
        claim = outbox.claim

        def greedy(*args: Any) -> Statement:
            one = claim(*args)
            text = one.sql.replace("(lease IS NULL OR", "(1 OR lease IS NULL OR")
            assert text != one.sql
            return one._replace(sql=text)

        outbox.claim = greedy  # type: ignore[assignment]
    elif name == "retry early":
        judge = Deliverer._judge
        Deliverer._judge = lambda self, sent: _sooner(judge(self, sent))  # type: ignore[method-assign]
    elif name == "forget leases":
        outbox.release_all = lambda: Statement("UPDATE delivery SET lease = lease WHERE 0")  # type: ignore[assignment]
        deliver.LEASE_MS = 10**12


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
    for name, value in PACE.items():
        setattr(deliver, name, value)
    deliver.LEASE_MS = LEASE_MS
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


if __name__ == "__main__":
    main()
