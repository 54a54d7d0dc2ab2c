"""Monitor: read, think, write once, answer. The flow behind the door that takes AML events."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, nullcontext
from typing import Any, Final, Protocol

import msgspec

from vettance import clock
from vettance.aml import sql
from vettance.aml.alerting import AlertBuilder, EventAssessment, RaisedAlert
from vettance.aml.aml_event import AmlEvent
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.case import OfficerSettings
from vettance.aml.evidence import EvidenceWriter
from vettance.aml.findings import judge, run_rules
from vettance.aml.imports.watch_imported import AmlBackfill
from vettance.aml.log_position import LogPosition
from vettance.aml.party_screening import InlineScreener, NamedParty
from vettance.aml.suppression import QUIET_MS
from vettance.db.engine import Clash, Lost, Row, Statement, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules
from vettance.errors import Conflict, Unavailable
from vettance.ids import IdSource
from vettance.lists.rule_additions import NOTHING_ADDED, KnownEntries, RuleAdditions
from vettance.lists.write_additions import announce, look_up
from vettance.rules.rollout import acting, withhold
from vettance.snoozes.snooze import Snoozes
from vettance.telemetry.meters import Meters
from vettance.velocity.sync.drain_gate import DrainGate
from vettance.wire.payload import encode

_TRIES: Final = 5
_SETTINGS: Final = OfficerSettings()
#: How long an event waits for its tenant's memory, before it is refused.
WAIT_S: Final = 30.0


#: Asks the store a question.
Read = Callable[[Statement], Awaitable[list[Row]]]


class SerializedMonitor(Protocol):
    """Watches events together with other processes."""

    async def watch(
        self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes, past: AmlBackfill | None = None
    ) -> sql.StoredEvent:
        """Watch an event of a tenant whose rules are in force, and return what is stored of it."""


class Monitor:
    """Watches AML events. Holds, for each tenant, the rules in force, their weights and the settings.

    Thinking is synchronous: from the first look at the memory to the findings no other event gets a word in.
    """

    def __init__(
        self,
        store: Store,
        memory: AmlMemory,
        ids: IdSource,
        teller: EvidenceWriter,
        names: InlineScreener | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
        meters: Meters | None = None,
    ) -> None:
        self._meters = meters or Meters()
        self._store = store
        self._memory = memory
        self._ids = ids
        self._teller = teller
        self._names = names
        self._now_ms = now_ms
        self.rules: dict[str, ActiveRules] = {}
        self.snoozes: Snoozes = {}
        self.additions: RuleAdditions | None = None
        self.weights: dict[str, dict[str, float]] = {}
        self.settings: dict[str, OfficerSettings] = {}
        #: Tenants whose memory is ahead of the log because a write failed; `rebuild` mends them.
        self.astray: set[str] = set()
        #: Tenants who are not served by what the store says, though it answers, and the class of the error.
        self.impaired: dict[str, str] = {}
        #: How many events each tenant's memory has taken since its snapshot; `preserve` sets it back.
        self.decided: dict[str, int] = {}
        #: How far the memory of each tenant has read the log, with several processes.
        self.places: dict[str, LogPosition] = {}
        #: Who watches the events where several processes do; None where this one is alone.
        self.crew: SerializedMonitor | None = None
        #: Makes a tenant ready that has not been seen yet.
        self.prepare: Callable[[str], Awaitable[None]] = _not_ready
        self._pending: dict[tuple[str, str], asyncio.Event] = {}
        self._customers: dict[tuple[str, str], asyncio.Lock] = {}
        self._gate = DrainGate()

    def needs_rebuild(self) -> Collection[str]:
        """Return the tenants whose memory is not what the log says, and is to be filled anew."""
        return self.astray

    def request_rebuild(self, tenant: str) -> None:
        """Have a tenant's memory filled anew from the log."""
        self.astray.add(tenant)

    def forget(self, tenant: str) -> None:
        """Let go of everything of a tenant that is being deleted."""
        held: dict[str, Any]
        for held in (self.rules, self.snoozes, self.weights, self.settings, self.impaired, self.decided):
            held.pop(tenant, None)
        self.places.pop(tenant, None)
        self.astray.discard(tenant)
        self._memory.uninstall(tenant)

    async def take(
        self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes, past: AmlBackfill | None = None
    ) -> sql.StoredEvent:
        """Watch an event once, however often it is sent, and return what was answered the first time.

        An imported one is answered by a memory of its `past`, and its names are not looked up.

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
                if self.crew is None:
                    known.add(event.external_id)
                found = await self._watch(tenant, event, digest, sent, past)
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

    async def _watch(
        self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes, past: AmlBackfill | None
    ) -> sql.StoredEvent:
        if self.crew is not None:
            return await self.crew.watch(tenant, event, digest, sent, past)
        try:
            # Not `wait_for`, which goes on a turn of the loop later: the next one may hold it back by then.
            async with asyncio.timeout(WAIT_S):
                await self.wait_for_gate(tenant)
        except TimeoutError:
            raise Unavailable("New rules are being put into force.") from None
        self.begin(tenant)
        try:
            named = await self.look_up_names(tenant, event) if past is None else []
            return await self._think_and_write(tenant, event, digest, sent, named, past)
        except Conflict:
            raise
        except BaseException as error:
            # The caller may have gone away while the write was on its way: the log will tell.
            self.astray.add(tenant)
            if isinstance(error, StoreDown | Clash | Lost):
                raise Unavailable("The store did not take the event; nothing of it was kept.") from None
            raise
        finally:
            self.end(tenant)

    async def wait_for_gate(self, tenant: str) -> None:
        """Wait until the events of a tenant are let through."""
        await self._gate.wait(tenant)

    def begin(self, tenant: str) -> None:
        """Count an event of a tenant as under way."""
        self._gate.enter(tenant)

    def end(self, tenant: str) -> None:
        """Count an event of a tenant as stored, or as refused."""
        self.decided[tenant] = self.decided.get(tenant, 0) + 1
        self._gate.leave(tenant)

    async def look_up_names(self, tenant: str, event: AmlEvent) -> list[NamedParty]:
        """Look for the names of an event on the watchlists, if the tenant wants that; before it is thought
        about, so that events are stored in the order in which the memory has seen them.
        """
        if self._names is None or not self.settings.get(tenant, _SETTINGS).inline_screening:
            return []
        return await self._names.look(tenant, event)

    async def _think_and_write(
        self,
        tenant: str,
        event: AmlEvent,
        digest: bytes,
        sent: bytes,
        named: list[NamedParty],
        past: AmlBackfill | None,
    ) -> sql.StoredEvent:
        thought = self.think(tenant, event, digest, sent, named, past)
        if not thought.findings and not named:
            return await self._write(tenant, thought)
        async with AsyncExitStack() as locks:
            for subject in sorted(thought.subjects):
                # A lock nobody waits for is made anew; what counts is that the subject's alerts take turns.
                lock = self._customers.setdefault((tenant, subject), asyncio.Lock())
                await locks.enter_async_context(lock)
                locks.callback(self._drop_lock, tenant, subject)
            return await self._write(tenant, thought)

    def think(
        self,
        tenant: str,
        event: AmlEvent,
        digest: bytes,
        sent: bytes,
        named: list[NamedParty],
        past: AmlBackfill | None = None,
    ) -> EventAssessment:
        """Ask the memory about an event, record it there, and judge what the rules say of it.

        What was known of an imported one at its time says its `past`; the memory records it all the same.
        """
        active = self.rules[tenant]
        event_id = self._ids.make("evt", event.received_at_ms)
        taken = self._memory.take(tenant, active.compiled, event_id, event)
        if past is not None:
            active, taken = past.active, past.take(event_id, event)
        event, facts, unknown = taken.event, taken.facts, taken.unknown
        place, fired, failed = run_rules(active, facts, taken.answers, lambda: event)
        answer = (taken.answer, *taken.later)[place]
        subject = event.customer_key or event.device_key or event.ip
        withheld = withhold(active.stages, fired, subject, event.occurred_at_ms) if active.stages else []
        snoozes = self.snoozes.get(tenant)
        if snoozes is not None:
            withheld = snoozes.withhold(active.ruleset.running, fired, event, withheld)
        may_act = acting(fired, withheld)
        findings = judge(active.ruleset, may_act, self.weights.get(tenant, {}), event) if may_act else []
        record = sql.AmlRecord(
            ruleset_version=active.version,
            facts=facts,
            answers=answer.values,
            inexact=answer.inexact,
            fired=fired,
            failed=failed,
            unknown=unknown,
            withheld=withheld,
            late_answers=taken.answers if taken.later else [],
        )
        if failed or unknown:
            self._meters.failed(len(failed), len(unknown))
        received_at_ms, version = event.received_at_ms, active.version
        stored = sql.StoredEvent(event_id, event.external_id, received_at_ms, digest, "CLEAR", b"[]", version)
        if past is not None:
            stored = stored._replace(import_id=past.run.id)
        thought = EventAssessment(event, stored, sent, record, active, findings, named, NOTHING_ADDED)
        return self._plan_additions(tenant, thought)

    def _plan_additions(
        self,
        tenant: str,
        thought: EventAssessment,
        known: KnownEntries | None = None,
        *,
        adding: bool = True,
    ) -> EventAssessment:
        """Plan what the rules that acted on an event put on lists; nothing without `adding`."""
        active, record, stored = thought.active, thought.record, thought.stored
        if self.additions is None or not active.effects or stored.import_id is not None:
            return thought
        acted, running = acting(record.fired, record.withheld), active.ruleset.running
        now_ms, event = self._now_ms(), thought.event
        added = self.additions.plan(
            *(tenant, running, active.effects, acted, event, stored.id, now_ms),
            known=known or {},
            adding=adding,
        )
        record = msgspec.structs.replace(record, list_additions=added.recorded)
        return msgspec.structs.replace(thought, record=record, additions=added)

    async def plan_again(
        self, tenant: str, thought: EventAssessment, read: Read, *, adding: bool = True
    ) -> EventAssessment:
        """Plan what an event puts on lists with what the store holds, where it puts anything there."""
        if self.additions is None or not thought.additions.keys:
            return thought
        known = await look_up(self.additions, thought.additions, read)
        return self._plan_additions(tenant, thought, known, adding=adding)

    def _drop_lock(self, tenant: str, subject: str) -> None:
        lock = self._customers.get((tenant, subject))
        if lock is not None and not getattr(lock, "_waiters", None):
            self._customers.pop((tenant, subject), None)

    async def _write(self, tenant: str, thought: EventAssessment) -> sql.StoredEvent:
        """Store an event with its alerts; try again when another process changed a case or a list."""
        for left in reversed(range(_TRIES)):
            stored: sql.StoredEvent = thought.stored
            more: Sequence[Statement] = ()
            if thought.findings or thought.named:
                stored, more = await self.raise_alerts(tenant, thought, self._store.read)
            try:
                with self.additions.under_way(thought.additions) if self.additions else nullcontext():
                    await self._store.write(*rows_of(tenant, thought, stored), *more)
            except (Clash, Lost):
                # Another process may have stored an event of this id since we looked.
                if (found := await self.find(tenant, stored.external_id)) is not None:
                    self.astray.add(tenant)
                    return found
                if not left:
                    raise
                thought = await self.plan_again(tenant, thought, self._store.read, adding=left > 1)
            else:
                break
        if self.additions is not None:
            await announce(self.additions, thought.additions)
        return stored

    async def raise_alerts(
        self, tenant: str, thought: EventAssessment, read: Read
    ) -> tuple[sql.StoredEvent, list[Statement]]:
        """Decide, with the store at hand, which findings are new alerts, and which repeat one."""
        now_ms = self._now_ms()
        statements: list[Statement] = []
        answers: list[RaisedAlert] = []
        for subject in thought.subjects:
            alerts, rows = await asyncio.gather(
                read(sql.select_customer_alerts(tenant, subject, now_ms - QUIET_MS)),
                read(sql.select_open_case(tenant, subject)),
            )
            before = sql.case_of(rows[0]) if rows else None
            known = [sql.alert_of(row) for row in alerts]
            desk = AlertBuilder(self._ids, self._teller, tenant, thought, known, before, now_ms)
            for finding in thought.findings:
                if finding.subject == subject:
                    desk.place(finding)
            for named in thought.named:
                if named.request.external_id == subject and self._names is not None:
                    screener = self._names.screener
                    weighed = await screener.weigh(tenant, named.request, named.found, read)
                    desk.place_name(weighed, screener)
            answers += desk.answers
            statements += desk.all_statements()
        status = "ALERTED" if answers else "CLEAR"
        return thought.stored._replace(status=status, alerts=encode(answers)), statements

    async def pause(self, tenant: str) -> None:
        """Hold back new events of a tenant, and wait until those under way are stored."""
        await self._gate.hold(tenant)

    def resume(self, tenant: str) -> None:
        """Let the events of a tenant through again."""
        self._gate.let_go(tenant)


def rows_of(tenant: str, thought: EventAssessment, stored: sql.StoredEvent) -> list[Statement]:
    """Return what stores an event, and what its rules put on lists."""
    row = sql.insert_event(tenant, thought.event, stored, thought.sent, thought.record)
    return [row, *thought.additions.statements]


async def _not_ready(_tenant: str) -> None:
    raise Unavailable("The AML rules of this tenant are not loaded yet.")
