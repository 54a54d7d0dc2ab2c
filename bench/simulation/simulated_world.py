"""The world of a simulated day: a real schema and a real committer, behind an invented store and network."""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from bench.simulation.simulated_day import day_of
from vettance.db.engine import Clash, Lost, Misuse, Row, Statement, StoreDown
from vettance.db.migrate import migrations
from vettance.db.sqlite_batch import Committer
from vettance.db.write_batcher import frame_of
from vettance.tenants.vault import Vault
from vettance.webhooks.webhook import AttemptFailure, AttemptOutcome

BEGIN_MS = 1_800_000_000_000
_FAILURES = {"clash": Clash, "lost": Lost, "down": StoreDown, "wrong": Misuse}


class Sender(Protocol):
    """What the world knows of a worker."""

    died_s: float | None

    def now_ms(self) -> int:
        """Return what the clock of the worker shows."""


def store_image() -> bytes:
    """Make an empty store of the newest schema, to be copied for every schedule."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations():
        connection.executescript(migration.text)
    return connection.serialize()


class Sent(NamedTuple):
    """One attempt as the network saw it."""

    delivery: str
    attempt: int
    worker: Sender
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
        self.delivered_at_s: dict[str, float] = {}  # when the store last heard of it
        self.replayed: Counter[str] = Counter()
        self.faulty = True
        self.found: list[str] = []

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def apply(self, statements: Sequence[Statement]) -> list[int]:
        """Commit statements by the code that the writer process runs."""
        shape = [frame_of(one) for one in statements]
        (answer,) = self.committer.apply([[shape, *(tuple(one.args) for one in statements)]])
        if answer and isinstance(answer[0], str):
            raise _FAILURES[answer[0]](answer[1])
        return list(answer)

    def rows(self, text: str, *args: Any) -> list[Row]:
        return self.connection.execute(text, args).fetchall()


class SimulatedStore:
    """The way of one worker to the store."""

    def __init__(self, world: World) -> None:
        self._world = world

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

    def __init__(self, world: World, worker: Sender) -> None:
        self._world = world
        self._worker = worker

    async def post(self, _url: str, headers: Any, body: bytes, attempt_s_max: float) -> AttemptOutcome:
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
            failure = AttemptFailure.TIMEOUT
        elif kind == "refused":
            failure = AttemptFailure.REFUSED
        elif kind == "lost":
            failure = AttemptFailure.DISCONNECTED
        else:
            status = 500 if kind == "500" else 200
            failure = AttemptFailure.STATUS if status == 500 else None
        world.ended[place] = world.now_s(), status
        duration_ms = round((world.now_s() - started_s) * 1000)
        return AttemptOutcome(status, failure, b"", started_ms, self._worker.now_ms() + 1, duration_ms)
