"""Monitor: read, think, write once, answer. The flow behind the door that takes AML events."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import msgspec

from vettance.aml import sql
from vettance.aml.case import (
    SERVICE,
    Alert,
    AlertState,
    Case,
    Entry,
    EntryKind,
    Resolution,
    Settings,
    open_case,
    with_alert,
)
from vettance.aml.event import AmlEvent
from vettance.aml.figures import Figures, Teller
from vettance.aml.judge import Finding, judge
from vettance.aml.memory import AmlMemory
from vettance.db.engine import Clash, Lost, Statement, Store, StoreDown
from vettance.decisions.active import ActiveRules
from vettance.errors import Conflict, Unavailable
from vettance.ids import IdSource
from vettance.wire import encode, timestamp

DAY_MS: Final = 86_400_000
#: An event that repeats an open alert of the same customer and typology within this time joins it.
REPEAT_MS: Final = 7 * DAY_MS
#: After an alert of a customer and typology was closed as a mistake, such findings are only recorded.
QUIET_MS: Final = 30 * DAY_MS
_TRIES: Final = 5
_WAIT_S: Final = 30.0


class AlertAnswer(msgspec.Struct, rename="camel", frozen=True):
    """An alert as events answer it."""

    id: str
    severity: str
    summary: str
    rule_id: str
    created_at: str


class Monitor:
    """Watches AML events. Holds, for each tenant, the rules in force, their weights and the settings.

    Thinking is synchronous: from the first look at the memory to the findings no other event gets a word in.
    """

    def __init__(
        self,
        store: Store,
        memory: AmlMemory,
        ids: IdSource,
        teller: Teller,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._ids = ids
        self._teller = teller
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self.rules: dict[str, ActiveRules] = {}
        self.weights: dict[str, dict[str, float]] = {}
        self.settings: dict[str, Settings] = {}
        #: Tenants whose memory is ahead of the log because a write failed; `rebuild` mends them.
        self.astray: set[str] = set()
        #: How many events each tenant's memory has taken since its snapshot; `preserve` sets it back.
        self.decided: dict[str, int] = {}
        #: Makes a tenant ready that has not been seen yet.
        self.prepare: Callable[[str], Awaitable[None]] = _not_ready
        self._pending: dict[tuple[str, str], asyncio.Event] = {}
        self._customers: dict[tuple[str, str], asyncio.Lock] = {}
        self._paused: dict[str, asyncio.Event] = {}
        self._under_way: dict[str, int] = {}
        self._quiet: dict[str, asyncio.Event] = {}

    async def take(self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes) -> sql.StoredEvent:
        """Watch an event once, whoever sends it how often, and return what was answered the first time.

        Raises `Conflict` (409) when its id was used for another payload, `Unavailable` (503) when the store
        does not take it.
        """
        name = (tenant, event.external_id)
        while (other := self._pending.get(name)) is not None:
            await other.wait()
        self._pending[name] = done = asyncio.Event()
        try:
            if tenant not in self.rules:
                await self.prepare(tenant)
            known = self._memory.known[tenant]
            # Almost every event is new, and that is certain without asking the store.
            found = await self.find(tenant, event.external_id) if known.may_hold(event.external_id) else None
            if found is None:
                known.add(event.external_id)
                found = await self._watch(tenant, event, digest, sent)
        finally:
            del self._pending[name]
            done.set()
        if found.digest != digest:
            raise Conflict("This externalEventId was used for another payload.", "payload_mismatch")
        return found

    async def find(self, tenant: str, external_id: str) -> sql.StoredEvent | None:
        """Return a stored event of a tenant by the tenant's own id, or None."""
        rows = await self._store.read(sql.select_event(tenant, external_id))
        return sql.stored_of(rows[0]) if rows else None

    async def _watch(self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes) -> sql.StoredEvent:
        while (gate := self._paused.get(tenant)) is not None:
            try:
                await asyncio.wait_for(gate.wait(), _WAIT_S)
            except TimeoutError:
                raise Unavailable("New rules are being put into force.") from None
        self._under_way[tenant] = self._under_way.get(tenant, 0) + 1
        try:
            return await self._think_and_write(tenant, event, digest, sent)
        except Conflict:
            raise
        except BaseException as error:
            # The caller may have gone away while the write was on its way: the log will tell.
            self.astray.add(tenant)
            if isinstance(error, StoreDown | Clash | Lost):
                raise Unavailable("The store did not take the event; nothing of it was kept.") from None
            raise
        finally:
            self._under_way[tenant] -= 1
            self.decided[tenant] = self.decided.get(tenant, 0) + 1
            if not self._under_way[tenant] and tenant in self._quiet:
                self._quiet.pop(tenant).set()

    async def _think_and_write(
        self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes
    ) -> sql.StoredEvent:
        active = self.rules[tenant]
        compiled = active.compiled
        event_id = self._ids.make("evt", event.received_at_ms)
        event = self._memory.follow(tenant, event)
        facts = compiled.facts(event)
        answer = self._memory.observe(tenant, event_id, event.occurred_at_ms, compiled.observe(facts))
        fired, failed = compiled.run(facts, answer.values)
        findings = judge(active.ruleset, fired, self.weights.get(tenant, {}), event) if fired else []
        record = sql.Record(
            ruleset_version=active.version,
            facts=facts,
            answers=answer.values,
            inexact=answer.inexact,
            fired=fired,
            failed=failed,
        )
        stored = sql.StoredEvent(event_id, event.external_id, event.received_at_ms, digest, "CLEAR", b"[]")
        thought = _Thought(event, stored, sent, record, active, findings)
        if not findings:
            return await self._write(tenant, thought, stored, ())
        async with AsyncExitStack() as locks:
            for subject in sorted({finding.subject for finding in findings}):
                # A lock nobody waits for is made anew; what counts is that the subject's alerts take turns.
                lock = self._customers.setdefault((tenant, subject), asyncio.Lock())
                await locks.enter_async_context(lock)
                locks.callback(self._drop_lock, tenant, subject)
            return await self._alert(tenant, thought)

    def _drop_lock(self, tenant: str, subject: str) -> None:
        lock = self._customers.get((tenant, subject))
        if lock is not None and not getattr(lock, "_waiters", None):
            self._customers.pop((tenant, subject), None)

    async def _alert(self, tenant: str, thought: "_Thought") -> sql.StoredEvent:
        """Store an event with its alerts; try again when another process changed a case in between."""
        for _ in range(_TRIES - 1):
            stored, statements = await self._raise_alerts(tenant, thought)
            try:
                return await self._write(tenant, thought, stored, statements)
            except (Clash, Lost):
                if (found := await self.find(tenant, stored.external_id)) is not None:
                    self.astray.add(tenant)
                    return found
        stored, statements = await self._raise_alerts(tenant, thought)
        return await self._write(tenant, thought, stored, statements)

    async def _write(
        self, tenant: str, thought: "_Thought", stored: sql.StoredEvent, more: Sequence[Statement]
    ) -> sql.StoredEvent:
        try:
            await self._store.write(
                sql.insert_event(tenant, thought.event, stored, thought.sent, thought.record), *more
            )
        except Clash:
            if more:
                raise
            # Another process has stored an event of this id since we looked.
            found = await self.find(tenant, stored.external_id)
            if found is None:
                raise
            self.astray.add(tenant)
            return found
        return stored

    async def _raise_alerts(
        self, tenant: str, thought: "_Thought"
    ) -> tuple[sql.StoredEvent, list[Statement]]:
        """Decide, with the store at hand, which findings are new alerts, and which repeat one."""
        now_ms = self._now_ms()
        statements: list[Statement] = []
        answers: list[AlertAnswer] = []
        for subject in dict.fromkeys(finding.subject for finding in thought.findings):
            findings = [finding for finding in thought.findings if finding.subject == subject]
            rows = await self._store.read(sql.select_customer_alerts(tenant, subject, now_ms - QUIET_MS))
            known = [sql.alert_of(row) for row in rows]
            rows = await self._store.read(sql.select_open_case(tenant, subject))
            case = sql.case_of(rows[0]) if rows else None
            alerts, written = self._place(tenant, thought, findings, known, case, now_ms)
            answers += [_answer(alert) for alert in alerts]
            statements += written
        status = "ALERTED" if answers else "CLEAR"
        return thought.stored._replace(status=status, alerts=encode(answers)), statements

    def _place(
        self,
        tenant: str,
        thought: "_Thought",
        findings: Sequence[Finding],
        known: Sequence[Alert],
        before: Case | None,
        now_ms: int,
    ) -> tuple[list[Alert], list[Statement]]:
        """Return the alerts of one subject, new and repeated, and what is to be written."""
        event = thought.event
        alerts: list[Alert] = []
        statements: list[Statement] = []
        entries: list[Entry] = []
        case = before
        for finding in findings:
            rule_id = thought.active.ruleset.running[finding.rule].id
            repeated = _repeated(finding, known, event)
            if repeated is not None:
                statements.append(sql.repeat_alert(tenant, repeated.id, event.occurred_at_ms))
                statements.append(sql.insert_alert_event(tenant, repeated.id, thought.stored.id, rule_id))
                alerts.append(repeated)
                continue
            if not finding.mandatory and _mistaken(finding, known):
                continue
            if case is None:
                case = open_case(self._ids.make("cas", now_ms), finding.subject, now_ms)
                entries.append(Entry(now_ms, EntryKind.OPENED, SERVICE, f"Opened for {finding.subject}."))
            alert = self._new_alert(thought, finding, case.id, now_ms)
            case, entry = (step := with_alert(case, alert, now_ms)).case, step.entry
            entries.append(entry)
            statements.append(sql.insert_alert(tenant, alert))
            statements.append(sql.insert_alert_event(tenant, alert.id, thought.stored.id, rule_id))
            alerts.append(alert)
        if case is not None and case is not before:
            saved = sql.insert_case(tenant, case) if before is None else sql.update_case(tenant, before, case)
            statements.append(saved)
            statements += [sql.insert_entry(tenant, case.id, entry) for entry in entries]
        return alerts, statements

    def _new_alert(self, thought: "_Thought", finding: Finding, case_id: str, now_ms: int) -> Alert:
        running = thought.active.ruleset.running
        rule, event, record = running[finding.rule], thought.event, thought.record
        summary, values = self._teller.tell(
            rule, thought.active.compiled, record.facts, record.answers, event
        )
        others = tuple(running[index].name for index in finding.others)
        if others:
            summary = f"{summary} With it: {'; '.join(others)}."[:1000]
        figures = Figures(
            rule.id, rule.name, values, event.trail.path, tuple(running[i].id for i in finding.others)
        )
        return Alert(
            id=self._ids.make("alr", now_ms),
            case_id=case_id,
            customer=finding.subject,
            typology=finding.typology,
            rule_id=rule.id,
            severity=finding.severity,
            summary=summary,
            created_at_ms=now_ms,
            last_at_ms=event.occurred_at_ms,
            figures=encode(figures),
        )

    async def pause(self, tenant: str) -> None:
        """Hold back new events of a tenant, and wait until those under way are stored."""
        self._paused.setdefault(tenant, asyncio.Event())
        if self._under_way.get(tenant, 0):
            self._quiet[tenant] = asyncio.Event()
            await self._quiet[tenant].wait()

    def resume(self, tenant: str) -> None:
        """Let the events of a tenant through again."""
        gate = self._paused.pop(tenant, None)
        if gate is not None:
            gate.set()


class _Thought(msgspec.Struct, frozen=True):
    """One event after thinking: everything that is stored of it, and what was found."""

    event: AmlEvent
    stored: sql.StoredEvent
    sent: bytes
    record: sql.Record
    active: ActiveRules
    findings: list[Finding]


def _repeated(finding: Finding, known: Sequence[Alert], event: AmlEvent) -> Alert | None:
    """Find the open alert of the same typology that this event belongs to."""
    for alert in known:
        near = abs(event.occurred_at_ms - alert.last_at_ms) <= REPEAT_MS
        if near and alert.state is AlertState.OPEN and alert.typology == finding.typology:
            return alert
    return None


def _mistaken(finding: Finding, known: Sequence[Alert]) -> bool:
    """Tell whether such an alert of the customer was closed as a mistake lately."""
    return any(
        alert.typology == finding.typology and alert.resolution is Resolution.FALSE_POSITIVE
        for alert in known
    )


def _answer(alert: Alert) -> AlertAnswer:
    return AlertAnswer(
        alert.id, alert.severity.value, alert.summary, alert.rule_id, timestamp(alert.created_at_ms)
    )


async def _not_ready(_tenant: str) -> None:
    raise Unavailable("The AML rules of this tenant are not loaded yet.")
