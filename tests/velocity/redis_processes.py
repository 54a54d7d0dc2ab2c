"""Evaluators on one store and one Redis, as the processes of a deployment have them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.redis_link.redis_server import PATIENCE_S, SECRET
from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite import SqliteStore
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.features import fraud_schema
from vettance.decisions.shared_velocity import SharedMemory
from vettance.deployment.shared import count_in
from vettance.errors import Unavailable
from vettance.events.event import EventSource, read_taken_event
from vettance.ids import IdSource
from vettance.limits.redis_limits import SharedLimits
from vettance.rules.ruleset import compile_document
from vettance.rules.sql import DECIDING
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.websdk.session_sync import SessionSync
from vettance.wire.payload import encode

TENANT = "ten_1"
LOGIN = {"eventName": "user.login", "ip": "203.0.113.9", "customer": {"externalId": "c1"}}


def document(*questions: str) -> str:
    rules = "".join(
        f"  - {{id: r{number}, name: r, reason: R, explanation: e, score: 0, tests: [], "
        f"when: '{text} >= 0'}}\n"
        for number, text in enumerate(questions)
    )
    return f"name: test\nrules:\n{rules}"


COUNTING = document('count(by=ip, within="1h")')
SUMMING = document('count(by=ip, within="1h")', 'sum(metadata.amount, by=customer.external_id, within="24h")')


class FailingStore:
    """A real store whose writes can be made to fail, as a full disk makes them."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.failing = False
        #: With `failing`, writes are given up, and take place when it is set.
        self.late: asyncio.Event | None = None
        self.writing: list[asyncio.Task[None]] = []
        #: Holds the next write up until it is set.
        self.gate: asyncio.Event | None = None
        self.read = store.read
        self.migrate = store.migrate
        self.close = store.close

    async def write(self, *statements: Statement) -> list[int]:
        if self.failing:
            if self.late is not None:
                self.writing.append(asyncio.create_task(self._write_late(self.late, statements)))
            raise StoreDown("the disk is full")
        gate, self.gate = self.gate, None
        if gate is not None:
            await gate.wait()
        return await self._store.write(*statements)

    async def _write_late(self, late: asyncio.Event, statements: tuple[Statement, ...]) -> None:
        await late.wait()
        await self._store.write(*statements)


class Process:
    """What one process has of its own."""

    def __init__(self, store: FailingStore, url: str) -> None:
        self.store = store
        self.line, self.velocity = count_in(url, SECRET, PATIENCE_S)
        schema = fraud_schema()
        cache = RuleCache(lambda text: compile_document(text, schema))
        self.memory = SharedMemory(store, self.velocity, cache)
        self.evaluator = Evaluator(store, MemoryVelocity(), IdSource())
        self.limits = SharedLimits(self.line)
        self.follower = SessionSync(store, self.evaluator.sessions)
        self.follower.announcements = self.limits.batches
        self.evaluator.share(self.memory)
        self.evaluator.follow(self.follower.freshen)
        self.running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.memory.start()
        self.running = asyncio.create_task(self.memory.run())

    async def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
        await self.line.close()

    async def decide(self, body: dict[str, Any] = LOGIN, waited_ms: int = 0) -> EvaluatedEvent:
        """Decide an event that was received so long ago."""
        sent = encode(body)
        event = read_taken_event(body, time.time_ns() // 1_000_000 - waited_ms)
        return await self.evaluator.evaluate(
            TENANT, event, sent, EventSource.EVENTS, "r", time.perf_counter_ns()
        )

    async def record(self, evaluated: EvaluatedEvent) -> DecisionRecordData:
        read = Statement("SELECT record FROM decision WHERE id = ?", (evaluated.id,))
        rows: list[Row] = await self.store.read(read)
        return msgspec.json.decode(rows[0][0], type=DecisionRecordData)

    async def answers(self, evaluated: EvaluatedEvent) -> list[Any]:
        return list((await self.record(evaluated)).answers)

    async def until_exact(self) -> EvaluatedEvent:
        """Decide until the memory is whole again."""
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(0.02)
                try:
                    evaluated = await self.decide()
                except Unavailable:
                    continue
                if not evaluated.degraded:
                    return evaluated

    async def until_like_the_log(self) -> None:
        """Decide until the memory counts what is stored."""
        async with asyncio.timeout(20):
            while True:
                (count,) = await self.answers(await self.until_exact())
                (stored,) = (await self.store.read(Statement("SELECT COUNT(*) FROM event")))[0]
                if count == stored - 1:
                    return


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110 - what is waited for goes on in the background
            await asyncio.sleep(0.01)


@asynccontextmanager
async def processes(data: Path, url: str, count: int = 2) -> AsyncIterator[list[Process]]:
    store = FailingStore(await SqliteStore.open(data / "store.db", writer="thread"))
    await store.migrate()
    await store.write(DECIDING.insert(TENANT, 1, COUNTING, "", 0))
    found = [Process(store, url) for _ in range(count)]
    try:
        for process in found:
            await process.start()
        yield found
    finally:
        for process in found:
            await process.stop()
        await store.close()
