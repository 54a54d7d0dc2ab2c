"""Evaluates an event: read, think, write once, answer. The one flow of every door that takes fraud events."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from vettance import clock
from vettance.db.engine import Clash, Statement, Store, StoreDown
from vettance.decisions import sql
from vettance.decisions.active_rulesets import ActiveRules, RuleInputs, consider
from vettance.decisions.decide_imported import Backfill
from vettance.decisions.decision import Decision, DecisionRecordData, decide
from vettance.decisions.shared_velocity import SharedMemory
from vettance.decisions.sql import count_decision
from vettance.decisions.webhook_payload import decision_payload
from vettance.errors import Unavailable
from vettance.events import sql as events_sql
from vettance.events.browser_session import SessionIndex
from vettance.events.event import Event, EventSource, with_session_signals
from vettance.ids import IdSource
from vettance.lists.entry import ListBook, ListEntry
from vettance.outbox import MessageType, enqueue
from vettance.telemetry.meters import Meters
from vettance.velocity.port import EVERYTHING, Velocity
from vettance.velocity.sync.drain_gate import DrainGate
from vettance.wire.payload import decode

_NO_LISTS = ListBook()
_RULE_CHANGE_WAIT_S = 5.0
_RULES_LOOK_S = 0.02


class EvaluatedEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, decided and durably stored."""

    id: str
    event: Event
    decision: Decision
    evaluated_at_ms: int
    processing_ms: float
    degraded: bool = False  # decided while the memory of past events was being filled


#: What else belongs into the commit of an event: the answer kept for retries, the job it settles.
Also = Callable[[EvaluatedEvent], Iterable[Statement]]


class ImportedEvent(NamedTuple):
    """An event of imported history: as it will be in the log, its body, what else goes into its commit."""

    event: Event
    sent: bytes
    request_id: str
    also: Also


class EvaluationInput(NamedTuple):
    """An event with what decides it, and when its evaluation began."""

    id: str
    event: Event
    entries: Sequence[ListEntry]
    asked: RuleInputs
    request_id: str
    started_ns: int


class Evaluator:
    """Decides events. Holds, for each tenant, the rules in force, the lists and the memory between events.

    Thinking is synchronous: from the first look at the memory to the finished decision no other event gets a
    word in, so the k-th of many simultaneous events sees exactly k - 1.
    """

    def __init__(
        self,
        store: Store,
        velocity: Velocity,
        ids: IdSource,
        now_ms: Callable[[], int] = clock.now_ms,
        meters: Meters | None = None,
    ) -> None:
        self._meters = meters or Meters()
        self._store = store
        self._velocity = velocity
        self._ids = ids
        self._now_ms = now_ms
        self.rules: dict[str, ActiveRules] = {}
        self.lists: dict[str, ListBook] = {}
        #: What browsers have queued for their sessions.
        self.sessions = SessionIndex()
        #: Tenants whose memory is ahead of the log because a write failed; `rebuild` mends them.
        self.astray: set[str] = set()
        #: Tenants who are not served by what the store says, though it answers, and the class of the error.
        self.impaired: dict[str, str] = {}
        #: How many events each tenant's memory has taken since its snapshot; `preserve` sets it back.
        self.decided: dict[str, int] = {}
        self._decided_since_start: dict[str, int] = {}
        self._subscribed: set[str] = set()
        self._gate = DrainGate()
        self._newest_ms = 0
        self._shared: SharedMemory | None = None
        self._freshen: Callable[[str, str], Awaitable[None]] | None = None

    def follow(self, freshen: Callable[[str, str], Awaitable[None]]) -> None:
        """Before an event of a session, take in the signals of it that any process has acknowledged."""
        self._freshen = freshen

    def share(self, shared: SharedMemory) -> None:
        """Ask a memory that other processes ask too, and leave the rules in force to it."""
        self._shared = shared
        self.rules = shared.rules
        self.astray = shared.astray
        self.impaired = shared.impaired

    @property
    def decided_since_start(self) -> Mapping[str, int]:
        """How many events of each tenant were decided since the start; the history is laid out by it."""
        return self._decided_since_start

    def subscribe(self, tenant: str) -> None:
        """Write messages of a tenant from now on; those of tenants without a subscription are not written."""
        self._subscribed.add(tenant)

    def has_subscription(self, tenant: str) -> bool:
        """Tell whether a tenant has, or had since the start, a subscription."""
        return tenant in self._subscribed

    def has_rules(self, tenant: str) -> bool:
        """Tell whether rules of a tenant are in force."""
        return tenant in self.rules

    def tenants(self) -> Collection[str]:
        """Return the tenants whose rules are in force."""
        return self.rules.keys()

    def needs_rebuild(self) -> Collection[str]:
        """Return the tenants whose memory differs from the log, and has to be rebuilt."""
        return self.astray

    def request_rebuild(self, tenant: str) -> None:
        """Request that a tenant's memory be rebuilt from the log."""
        self.astray.add(tenant)

    def forget(self, tenant: str) -> None:
        """Drop everything of a tenant that is being deleted."""
        for held in (self.rules, self.lists, self.impaired, self.decided, self._decided_since_start):
            held.pop(tenant, None)
        self.astray.discard(tenant)
        self._subscribed.discard(tenant)
        self.sessions.drop(tenant)
        self._velocity.uninstall(tenant)

    def floor(self, evaluated_at_ms: int) -> None:
        """Date no later decision before this moment, be the clock set back: the history is in this order."""
        self._newest_ms = max(self._newest_ms, evaluated_at_ms)

    async def evaluate(
        self,
        tenant: str,
        event: Event,
        sent: bytes,
        source: EventSource,
        request_id: str,
        started_ns: int,
        also: Also | None = None,
        *,
        tell: bool = True,
    ) -> EvaluatedEvent:
        """Decide an event and store it with its decision, its counts and its message, in one commit.

        `sent` is the body as received; `started_ns` is `time.perf_counter_ns()` at the receipt; `also` goes
        into the same commit; without `tell` no subscriber hears of it. Raises `Unavailable` (503) when the
        store does not take it, `Lost` when `also` demands what is not so; then nothing of it counts.
        """
        if tenant not in self.rules or not self._gate.is_open:
            await self._wait_for_rules(tenant)
        event_id = self._ids.make("evt", self._now_ms())
        if self._freshen is not None and event.session_id is not None:
            await self._freshen(tenant, event.session_id)
        event, signals = self._with_signals(tenant, event)
        entries = self.lists.get(tenant, _NO_LISTS).match(event, event.received_at_ms)
        if self._shared is None:
            asked = consider(self._velocity, self.rules[tenant], tenant, event_id, event)
        else:
            asked = await self._shared.observe(tenant, event_id, event)
        if tenant in self.impaired:
            asked = asked._replace(answer=asked.answer._replace(inexact=EVERYTHING))
        evaluated, record = self._conclude(
            EvaluationInput(event_id, event, entries, asked, request_id, started_ns)
        )
        statements = _rows_of(tenant, evaluated, record, source, sent, signals)
        if tell and tenant in self._subscribed:
            payload = decision_payload(
                event_id,
                event,
                evaluated.decision,
                asked.active.ruleset,
                record.fired,
                request_id,
                evaluated.evaluated_at_ms,
            )
            statements += enqueue(
                tenant,
                MessageType.EVENT_RISK_EVALUATED,
                event_id,
                event_id,
                evaluated.evaluated_at_ms,
                payload,
            )
        if also is not None:
            statements += also(evaluated)
        await self._store_events(tenant, (event_id,), statements)
        self._count(source, evaluated, record, started_ns)
        return evaluated

    async def take_history(self, tenant: str, history: Sequence[ImportedEvent], past: Backfill) -> None:
        """Decide imported events by a memory of their past, and store them in one commit, without messages.

        The live memory records them as well, for the windows of later events. Raises as `evaluate` does; then
        `past` has seen what the log does not hold, and has to be rebuilt.
        """
        questions = []
        for one in history:
            started_ns = time.perf_counter_ns()
            event_id = self._ids.make("evt", self._now_ms())
            asked = await past.ask(event_id, one.event)
            entries = self.lists.get(tenant, _NO_LISTS).match(one.event, one.event.received_at_ms)
            questions.append(EvaluationInput(event_id, one.event, entries, asked, one.request_id, started_ns))
        if tenant not in self.rules or not self._gate.is_open:
            await self._wait_for_rules(tenant)
        if self._shared is not None:
            await self._record_shared(self._shared, tenant, questions)
        # Nothing is awaited from here to the write: the log is in the order in which the memory saw it.
        try:
            concluded = [self._conclude(one) for one in questions]
        except BaseException:
            if self._shared is not None:
                self._fail(tenant, [one.id for one in questions])
            raise
        if self._shared is None:
            for question in questions:
                consider(self._velocity, self.rules[tenant], tenant, question.id, question.event)
        statements: list[Statement] = []
        for one, (evaluated, record) in zip(history, concluded, strict=True):
            statements += _rows_of(tenant, evaluated, record, EventSource.IMPORT, one.sent, None)
            statements += one.also(evaluated)
        await self._store_events(tenant, [one.id for one in questions], statements)
        for question, (evaluated, record) in zip(questions, concluded, strict=True):
            self._count(EventSource.IMPORT, evaluated, record, question.started_ns)

    async def _record_shared(
        self, shared: SharedMemory, tenant: str, questions: Sequence[EvaluationInput]
    ) -> None:
        """Have the memory that the processes share record events that another one has answered."""
        ends = await asyncio.gather(
            *(shared.observe(tenant, one.id, one.event) for one in questions), return_exceptions=True
        )
        for error in ends:
            if isinstance(error, BaseException):
                self._fail(tenant, [one.id for one in questions])
                raise error

    def _conclude(self, question: EvaluationInput) -> tuple[EvaluatedEvent, DecisionRecordData]:
        """Think: run the rules, decide, and note everything that it takes to explain it."""
        entries = question.entries
        active, facts, answer, unknown = question.asked
        fired, failed = active.compiled.run(facts, answer.values)
        if fired or entries:
            decision = decide(active.ruleset, active.version, fired, entries)
        else:
            decision = active.quiet
        self._newest_ms = now_ms = max(self._now_ms(), self._newest_ms)
        record = DecisionRecordData(
            ruleset_version=active.version,
            outcome=decision.outcome,
            score=decision.score,
            level=decision.level,
            facts=facts,
            answers=answer.values,
            inexact=answer.inexact,
            fired=fired,
            failed=failed,
            lists=[(entry.id, entry.list_type.value, entry.type.value) for entry in entries],
            request_id=question.request_id,
            processing_ms=round((time.perf_counter_ns() - question.started_ns) / 1e6, 3),
            unknown=unknown,
        )
        degraded = answer.inexact == EVERYTHING
        evaluated = EvaluatedEvent(
            question.id, question.event, decision, now_ms, record.processing_ms, degraded
        )
        return evaluated, record

    def _count(
        self, source: EventSource, evaluated: EvaluatedEvent, record: DecisionRecordData, started_ns: int
    ) -> None:
        self._meters.decided(source, evaluated.decision.outcome, time.perf_counter_ns() - started_ns)
        if record.failed or record.unknown:
            self._meters.failed(len(record.failed), len(record.unknown))

    def _with_signals(self, tenant: str, event: Event) -> tuple[Event, bytes | None]:
        """Return the event with what its session's browser has queued, and that as it is stored."""
        if event.session_id is not None and (
            signals := self.sessions.find(tenant, event.session_id, event.received_at_ms)
        ):
            return with_session_signals(event, decode(signals)), signals
        return event, None

    async def _store_events(self, tenant: str, event_ids: Sequence[str], statements: list[Statement]) -> None:
        """Write events that the memory has seen; when that fails, remember that the memory is ahead."""
        self._gate.enter(tenant)
        try:
            await self._store.write(*statements)
        except (StoreDown, Clash):
            self._fail(tenant, event_ids)
            self._meters.refused()
            raise Unavailable("The store did not take the event; nothing of it was kept.") from None
        except BaseException:
            # The caller went away while the write was on its way: whether it took effect is not known here.
            self._fail(tenant, event_ids)
            raise
        else:
            if self._shared is not None:
                for event_id in event_ids:
                    self._shared.settle(tenant, event_id)
        finally:
            self.decided[tenant] = self.decided.get(tenant, 0) + len(event_ids)
            self._decided_since_start[tenant] = self._decided_since_start.get(tenant, 0) + len(event_ids)
            self._gate.leave(tenant)

    def _fail(self, tenant: str, event_ids: Sequence[str]) -> None:
        self.astray.add(tenant)
        if self._shared is not None:
            for event_id in event_ids:
                self._shared.fail(tenant, event_id)

    async def _wait_for_rules(self, tenant: str) -> None:
        try:
            # Not `wait_for`, which resumes a turn of the loop later, when the next change may block it.
            async with asyncio.timeout(_RULE_CHANGE_WAIT_S):
                # The key of a new tenant may be known a moment before its rules are.
                while tenant not in self.rules:  # noqa: ASYNC110 - only for tenants that are new
                    await asyncio.sleep(_RULES_LOOK_S)
                await self._gate.wait(tenant)
        except TimeoutError:
            raise Unavailable("New rules are being put into force.") from None

    async def wait_for_gate(self, tenant: str) -> None:
        """Wait until the events of a tenant are let through."""
        await self._gate.wait(tenant)

    async def pause(self, tenant: str) -> None:
        """Hold back new events of a tenant, and wait until those under way are stored."""
        await self._gate.hold(tenant)

    def resume(self, tenant: str) -> None:
        """Let the events of a tenant through again."""
        self._gate.let_go(tenant)


def _rows_of(
    tenant: str,
    evaluated: EvaluatedEvent,
    record: DecisionRecordData,
    source: EventSource,
    sent: bytes,
    signals: bytes | None,
) -> list[Statement]:
    """Write down an event with its decision and its counts."""
    event, decision, now_ms = evaluated.event, evaluated.decision, evaluated.evaluated_at_ms
    return [
        events_sql.insert_event(tenant, evaluated.id, source, event, sent, signals),
        sql.insert_decision(tenant, evaluated.id, event, decision, record, now_ms),
        count_decision(tenant, event.occurred_at_ms, decision),
    ]
