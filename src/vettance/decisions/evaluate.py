"""Evaluates an event: read, think, write once, answer. The one flow of every door that takes fraud events."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from vettance import clock
from vettance.db.engine import Clash, Statement, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules, consider
from vettance.decisions.decide_imported import Backfill
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.decision_clock import DecisionClock
from vettance.decisions.evaluated_event import EvaluatedEvent, EvaluationInput, add_listed, conclude, rows_of
from vettance.decisions.label_memory import record_label
from vettance.decisions.shared_velocity import SharedMemory
from vettance.decisions.webhook_payload import decision_payload
from vettance.errors import Unavailable
from vettance.events.browser_session import SessionIndex
from vettance.events.event import Event, EventSource, with_session_signals
from vettance.feedback import label_sql
from vettance.feedback.label import Label
from vettance.feedback.label_change import LabelChange, changes_of
from vettance.ids import IdSource
from vettance.lists.entry import ListBook
from vettance.lists.rule_additions import RuleAdditions
from vettance.lists.write_additions import Written, write_additions
from vettance.models.serving_model import ServingModels
from vettance.outbox import MessageType, enqueue
from vettance.snoozes.snooze import Snoozes
from vettance.telemetry.meters import Meters
from vettance.tenants.tenant import Tenant
from vettance.velocity.port import EVERYTHING, LabelledVelocity
from vettance.velocity.sync.drain_gate import DrainGate
from vettance.wire.payload import decode

_NO_LISTS = ListBook()
_RULE_CHANGE_WAIT_S = 5.0
_RULES_LOOK_S = 0.02


#: What else belongs into the commit of an event: the answer kept for retries, the job it settles.
Also = Callable[[EvaluatedEvent], Iterable[Statement]]


class ImportedEvent(NamedTuple):
    """An event of imported history: as it will be in the log, its body, what else goes into its commit.

    `label` is what its file says of it; it counts from when it was imported.
    """

    event: Event
    sent: bytes
    request_id: str
    also: Also
    label: Label | None = None


class Evaluator:
    """Decides events. Holds, for each tenant, the rules in force, the lists and the memory between events.

    Thinking is synchronous: from the first look at the memory to the finished decision no other event gets a
    word in, so the k-th of many simultaneous events sees exactly k - 1.
    """

    def __init__(
        self,
        store: Store,
        velocity: LabelledVelocity,
        ids: IdSource,
        now_ms: Callable[[], int] = clock.now_ms,
        meters: Meters | None = None,
        tenant_of: Callable[[str], Tenant | None] = lambda _: None,
    ) -> None:
        self._meters = meters or Meters()
        self._store = store
        self._velocity = velocity
        self._ids = ids
        self._now_ms = now_ms
        self.clock = DecisionClock(now_ms)
        self.rules: dict[str, ActiveRules] = {}
        self.lists: dict[str, ListBook] = {}
        self.snoozes: Snoozes = {}
        self.models: ServingModels = {}
        self.additions = RuleAdditions(self.lists, ids, tenant_of)
        #: What browsers have queued for their sessions.
        self.sessions = SessionIndex()
        #: Tenants whose memory is ahead of the log because a write failed; `rebuild` mends them.
        self.astray: set[str] = set()
        #: Tenants who are not served by what the store says, though it answers, and the class of the error.
        self.impaired: dict[str, str] = {}
        #: How many events each tenant's memory has taken since its snapshot; `preserve` sets it back.
        self.decided: dict[str, int] = {}
        self._subscribed: set[str] = set()
        self._gate = DrainGate()
        self._shared: SharedMemory | None = None
        self._freshen: Callable[[str, str], Awaitable[None]] | None = None
        self._open_review: Callable[[str, EvaluatedEvent], Sequence[Statement]] | None = None

    def follow(self, freshen: Callable[[str, str], Awaitable[None]]) -> None:
        """Before an event of a session, take in the signals of it that any process has acknowledged."""
        self._freshen = freshen

    def open_reviews(self, by: Callable[[str, EvaluatedEvent], Sequence[Statement]]) -> None:
        """Have each decision take along what opens its review, in its commit."""
        self._open_review = by

    def share(self, shared: SharedMemory) -> None:
        """Ask a memory that other processes ask too, and leave the rules in force to it."""
        self._shared = shared
        self.rules = shared.rules
        self.astray = shared.astray
        self.impaired = shared.impaired

    def subscribe(self, tenant: str) -> None:
        """Write messages of a tenant from now on; those of tenants without a subscription are not written."""
        self._subscribed.add(tenant)

    def has_subscription(self, tenant: str) -> bool:
        """Tell whether a tenant may have a subscription: one since the start, or one of another process."""
        # Another process may have answered one this second; the store looks for listeners in the commit.
        return self._shared is not None or tenant in self._subscribed

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
        for held in (self.rules, self.lists, self.snoozes, self.models, self.impaired, self.decided):
            held.pop(tenant, None)
        self.astray.discard(tenant)
        self._subscribed.discard(tenant)
        self.sessions.drop(tenant)
        self._velocity.uninstall(tenant)

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
        question = EvaluationInput(
            *(event_id, event, entries, asked, request_id, started_ns),
            snoozes=self.snoozes.get(tenant),
            model=self.models.get(tenant),
        )
        evaluated, record = conclude(question, self.clock.date())
        more: list[Statement] = []
        if self._open_review is not None:
            more += self._open_review(tenant, evaluated)
        if tell and self.has_subscription(tenant):
            payload = decision_payload(
                event_id,
                event,
                evaluated.decision,
                asked.active.ruleset,
                record.acting,
                request_id,
                evaluated.evaluated_at_ms,
            )
            kind, at_ms = MessageType.EVENT_RISK_EVALUATED, evaluated.evaluated_at_ms
            more += enqueue(tenant, kind, event_id, event_id, at_ms, payload)
        if also is not None:
            more += also(evaluated)

        def written(*, adding: bool = True) -> Written:
            kept, added = add_listed(self.additions, tenant, asked.active, evaluated, record, adding=adding)
            return added, [*rows_of(tenant, evaluated, kept, source, sent, signals), *added.statements, *more]

        first = written()
        await self._store_events(
            tenant, (event_id,), write_additions(self._store, self.additions, first, written)
        )
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
            model = self.models.get(tenant)
            questions.append(
                EvaluationInput(event_id, one.event, entries, asked, one.request_id, started_ns, model=model)
            )
        if tenant not in self.rules or not self._gate.is_open:
            await self._wait_for_rules(tenant)
        labels = await self._labels_of(tenant, history, questions)
        counted = [one.id for one in questions]
        if self._shared is not None:
            counted += await self._record_shared(self._shared, tenant, questions, labels)
        # Nothing is awaited from here to the write: the log is in the order in which the memory saw it.
        try:
            concluded = [conclude(one, self.clock.date()) for one in questions]
        except BaseException:
            if self._shared is not None:
                self._fail(tenant, [one.id for one in questions])
            raise
        if self._shared is None:
            for question in questions:
                consider(self._velocity, self.rules[tenant], tenant, question.id, question.event)
            for event, change in labels:
                record_label(self._velocity, self.rules[tenant], tenant, event, change)
        statements: list[Statement] = []
        for one, (evaluated, record) in zip(history, concluded, strict=True):
            statements += rows_of(tenant, evaluated, record, EventSource.IMPORT, one.sent, None)
            statements += one.also(evaluated)
        now_ms = self._now_ms()
        statements += [label_sql.insert_label(tenant, change, now_ms) for _, change in labels]
        await self._store_events(tenant, counted, self._store.write(*statements))
        for question, (evaluated, record) in zip(questions, concluded, strict=True):
            self._count(EventSource.IMPORT, evaluated, record, question.started_ns)

    async def reached(self, tenant: str, now_ms: int) -> int:
        """Return the event time that a tenant's events have reached; what happens then happens after them.

        Raises `Unavailable` when the memory cannot be asked.
        """
        shared = self._shared
        reached = self._velocity.reached(tenant) if shared is None else await shared.reached(tenant)
        return now_ms if reached is None else min(reached, now_ms)

    async def take_labels(
        self, tenant: str, event: Event | None, changes: Sequence[LabelChange], statements: list[Statement]
    ) -> None:
        """Have the memory count labels of an event, and write what keeps them, in one commit.

        Raises as `evaluate` does. Without an event, since it cannot be read, the memory counts nothing.
        """
        if tenant not in self.rules or not self._gate.is_open:
            await self._wait_for_rules(tenant)
        counted = [change.id for change in changes]
        if event is None:
            counted = []
        elif self._shared is None:
            for change in changes:
                record_label(self._velocity, self.rules[tenant], tenant, event, change)
        else:
            counted = await self._shared.observe_labels(tenant, event, changes)
        await self._store_events(tenant, counted, self._store.write(*statements))

    async def _labels_of(
        self, tenant: str, history: Sequence[ImportedEvent], questions: Sequence[EvaluationInput]
    ) -> list[tuple[Event, LabelChange]]:
        """Return the labels of imported events. They were given now, so no event before can count them."""
        if all(one.label is None for one in history):
            return []
        reached_ms = await self.reached(tenant, self._now_ms())
        return [
            (one.event, change)
            for one, question in zip(history, questions, strict=True)
            if one.label is not None
            for change in changes_of(question.id, (), (one.label,), max(reached_ms, one.event.occurred_at_ms))
        ]

    async def _record_shared(
        self,
        shared: SharedMemory,
        tenant: str,
        questions: Sequence[EvaluationInput],
        labels: Sequence[tuple[Event, LabelChange]],
    ) -> list[str]:
        """Have the memory that processes share record events that another one has answered, and their labels.

        Returns the ids of the labels that it counts.
        """
        ends = await asyncio.gather(
            *(shared.observe(tenant, one.id, one.event) for one in questions), return_exceptions=True
        )
        for error in ends:
            if isinstance(error, BaseException):
                self._fail(tenant, [one.id for one in questions])
                raise error
        return [
            label_id
            for event, change in labels
            for label_id in await shared.observe_labels(tenant, event, (change,))
        ]

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

    async def _store_events(self, tenant: str, event_ids: Sequence[str], write: Awaitable[object]) -> None:
        """Await the write of events that the memory has seen; when it fails, remember that that is ahead."""
        self._gate.enter(tenant)
        try:
            await write
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
