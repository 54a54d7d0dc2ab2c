"""Decisions made up for tests, written as the service writes them, and what a naive recount says of them."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from vettance.db import postgres_schema
from vettance.db.engine import Statement
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.decisions import sql as decisions_sql
from vettance.decisions.decision import LEVELS, Decision, DecisionRecordData, Outcome, Reason
from vettance.decisions.sql import count_decision
from vettance.events import sql as events_sql
from vettance.events.event import Category, Event, EventSource
from vettance.history.compaction import Compactor
from vettance.history.decision_search import DecisionFinder
from vettance.history.entity_links import EntityLinker
from vettance.history.result_page import Order
from vettance.history.statistics import DecisionCounter
from vettance.ids import IdSource

START_MS = 1_767_225_600_000  # 2026-01-01
DAY_MS = 86_400_000
SEALED = 3  # Decisions in a chunk: so few that lists of a few dozen go through many chunks.
_numbers = itertools.count(1)


class Made(NamedTuple):
    """What a made-up decision is made of; moments are milliseconds after the start."""

    customer_id: str | None = None
    email: str | None = None
    device_id: str | None = None
    fingerprint: str | None = None
    ip: str | None = None
    name: str = "user.login"
    country: str | None = None
    session_id: str | None = None
    category: Category = Category.OTHER
    outcome: Outcome = Outcome.ALLOW
    level: str = "low"
    score: int = 0
    reasons: tuple[str, ...] = ()
    waited_ms: int = 0
    received_before_ms: int = 0
    occurred_before_ms: int = 0


class Past(NamedTuple):
    """A made-up decision with the id and the moments it was written with."""

    id: str
    evaluated_at_ms: int
    received_at_ms: int
    occurred_at_ms: int
    made: Made


SHORT = st.sampled_from(["a", "b", "Ab1", "x@mail.example", "4711", "ÄÖ ß", "evt_", "_%", '"q"'])
MADE = st.builds(
    Made,
    customer_id=st.none() | SHORT,
    email=st.none() | st.sampled_from(["x@mail.example", "y@mail.example", "b"]),
    device_id=st.none() | SHORT,
    fingerprint=st.none() | SHORT,
    ip=st.none() | st.sampled_from(["192.0.2.1", "192.0.2.77", "2001:db8::1"]),
    name=st.sampled_from(["user.login", "payment.attempt", "a"]),
    country=st.none() | st.sampled_from(["DE", "FR", "b"]),
    session_id=st.none() | st.sampled_from(["s1", "a"]),
    category=st.sampled_from(Category),
    outcome=st.sampled_from(Outcome),
    level=st.sampled_from(LEVELS),
    score=st.sampled_from([0, 1, 50, 99, 100]),
    reasons=st.lists(
        st.sampled_from(["VELOCITY_IP", "VELOCITY", "NEW_DEVICE", "A1"]), unique=True, max_size=3
    ).map(tuple),
    waited_ms=st.sampled_from([0, 0, 1, 700, 61_000, DAY_MS]),
    received_before_ms=st.sampled_from([0, 0, 3, 5_000]),
    occurred_before_ms=st.sampled_from([0, 0, 1, 59_999, 3_600_000, DAY_MS, 40 * DAY_MS]),
)


class Archive:
    """A store that the tests of a module share, each with tenants of its own; with `url`, on PostgreSQL."""

    def __init__(self, path: Path, url: str | None = None) -> None:
        self.runner = asyncio.Runner()
        self.path, self.url = path / "vettance.db", url
        self.store: SqliteStore | PostgresStore = self.runner.run(self._open(self.path, url))
        self.ids = IdSource()
        self.finder = DecisionFinder(self.store, at_once=3)
        self.linker = EntityLinker(self.store, self.finder)
        self.counter = DecisionCounter(self.store, self.finder, lambda: START_MS + 400 * DAY_MS)

    @staticmethod
    async def _open(path: Path, url: str | None) -> SqliteStore | PostgresStore:
        if url is not None:
            await postgres_schema.migrate(url)
            return await PostgresStore.open(url)
        store = await SqliteStore.open(path, writer="thread")
        await store.migrate()
        return store

    def close(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()

    def tenant(self) -> str:
        return f"ten_{next(_numbers):032x}"

    def write(self, tenant: str, made: Made, now_ms: int) -> tuple[Past, Coroutine[Any, Any, None]]:
        """Make a decision, and write it, once awaited, as an evaluation does."""
        past = Past(
            self.ids.make("evt", now_ms),
            now_ms,
            now_ms - made.received_before_ms,
            now_ms - made.occurred_before_ms,
            made,
        )
        event = Event(
            name=made.name,
            category=made.category,
            customer_id=made.customer_id,
            email=made.email,
            device_id=made.device_id,
            fingerprint=made.fingerprint,
            ip=made.ip,
            country=made.country,
            session_id=made.session_id,
            received_at_ms=past.received_at_ms,
            occurred_at_ms=past.occurred_at_ms,
        )
        decision = Decision(
            outcome=made.outcome,
            score=made.score,
            level=made.level,
            reasons=tuple(Reason(code=code, explanation="") for code in made.reasons),
            actions=(),
            ruleset_version=1,
            rules_evaluated=0,
        )
        record = DecisionRecordData(
            ruleset_version=1,
            outcome=made.outcome,
            score=made.score,
            level=made.level,
            facts=(),
            answers=(),
            inexact=0,
            fired=[],
            failed=[],
            lists=[],
            request_id="r",
            processing_ms=1.0,
        )
        return past, self._write(
            events_sql.insert_event(tenant, past.id, EventSource.EVENTS, event, b"{}"),
            decisions_sql.insert_decision(tenant, past.id, event, decision, record, now_ms),
            count_decision(tenant, past.occurred_at_ms, decision),
        )

    async def _write(self, *statements: Statement) -> None:
        await self.store.write(*statements)

    async def live(
        self, tenants: Sequence[str], made: Iterable[tuple[int, Made]], seals: Sequence[int]
    ) -> list[list[Past]]:
        """Write decisions of some tenants in turn, making chunks of all so far at each of `seals`."""
        compactor = Compactor(self.store, at_once=3)
        now_ms = START_MS
        coming: list[tuple[int, Past]] = []
        writes: list[Coroutine[Any, Any, None]] = []
        for number, (whose, one) in enumerate(made):
            now_ms += one.waited_ms
            past, write = self.write(tenants[whose], one, now_ms)
            coming.append((whose, past))
            writes.append(write)
            if number in seals:
                await asyncio.gather(*writes)
                writes.clear()
                for tenant in tenants:
                    while await compactor.compact(tenant, SEALED):
                        pass
        await asyncio.gather(*writes)
        return [[past for whose, past in coming if whose == own] for own in range(len(tenants))]


#: What a list is asked for: the arguments of `criteria`.
Asked = dict[str, Any]


def wants(past: Past, asked: Asked) -> bool:
    """Tell, the slow and obvious way, whether a list asks for a decision."""
    made, ask = past.made, asked.get
    moment: int = getattr(past, ask("moment", "evaluated_at_ms"))
    customer, device, search = ask("customer"), ask("device"), ask("search")
    email = customer.strip().lower() if customer is not None else None
    return all(
        (
            ask("decision") in (None, made.outcome),
            ask("risk_level") in (None, made.level),
            ask("event_category") in (None, made.category),
            made.score >= ask("min_score", 0),
            made.score <= ask("max_score", 100),
            ask("event_name") in (None, made.name),
            ask("country") in (None, made.country),
            ask("session_id") in (None, made.session_id),
            "reason_code" not in asked or asked["reason_code"].strip().upper() in made.reasons,
            customer is None or made.customer_id == customer or made.email == email,
            device is None or device in (made.device_id, made.fingerprint),
            moment >= ask("from_ms", moment),
            "to_ms" not in asked or moment < asked["to_ms"],
            search is None or holds(past, search),
        )
    )


def holds(past: Past, search: str) -> bool:
    made = past.made
    texts = [
        made.customer_id,
        made.email,
        made.device_id,
        made.fingerprint,
        made.ip,
        made.name,
        *made.reasons,
    ]
    return search in past.id or any(search in text.casefold() for text in texts if text is not None)


KEYS: dict[Order, Callable[[Past], Any]] = {
    Order.EVALUATED: lambda past: (past.evaluated_at_ms, past.id),
    Order.RECEIVED: lambda past: (past.received_at_ms, past.id),
    Order.SCORE: lambda past: (past.made.score, past.id),
    Order.OUTCOME: lambda past: (past.made.outcome.value, past.id),
}
