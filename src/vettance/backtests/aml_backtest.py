"""Backtest of AML rules: watches the events of the log again by other rules, and counts what would differ."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from vettance.aml.aml_event import AmlEvent, TransferHistory, read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory, SnapshotVelocity, WatchedEvent
from vettance.aml.case import Resolution
from vettance.aml.features import aml_schema
from vettance.aml.findings import judge, run_rules
from vettance.aml.imports.watch_imported import AmlBackfill
from vettance.aml.parties import OWN_MS
from vettance.aml.quality.sql import select_alerts_of_rules
from vettance.aml.sql import RULE_SETS, AmlRecord, record_of
from vettance.backtests import aml_backtest_sql as sql
from vettance.backtests.raised_alerts import CaseEnd, RaisedAlerts
from vettance.clock import DAY_MS
from vettance.db.engine import Row, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.events import sql as events_sql
from vettance.history.recorded_inputs import RecordedInputs, RecordLog, recorded_inputs
from vettance.history.rollup import END_MS
from vettance.rules.rollout import acting, withhold
from vettance.rules.ruleset import compile_document
from vettance.snoozes import sql as snoozes_sql
from vettance.snoozes.snooze import SnoozeBook
from vettance.wire.payload import decode

_CHUNK: Final = 500
_CASES: Final = 5_000
#: Whom alerts are about is a matter of the graph: by records, these names of rules say it.
_LOG: Final = RecordLog(RULE_SETS, sql.select_record_beginnings, ("party", "sender", "receiver"))


class _BacktestAlert(msgspec.Struct):
    """What an event was answered of an alert, as far as it is compared."""

    id: str


_alerts_of: Final = msgspec.json.Decoder(list[_BacktestAlert]).decode


class AmlRuleHits(msgspec.Struct):
    """On how many events a rule fired, fired alone among active rules, and failed."""

    fired: int = 0
    alone: int = 0
    failed: int = 0


class AlertEnds(msgspec.Struct):
    """Alerts of one rule, and how many of them ended as what."""

    raised: int = 0
    true_matches: int = 0
    false_positives: int = 0

    def add(self, resolution: str | None) -> None:
        """Count one more."""
        self.raised += 1
        self.true_matches += resolution == Resolution.TRUE_MATCH
        self.false_positives += resolution == Resolution.FALSE_POSITIVE


class TriedEvent(msgspec.Struct, frozen=True):
    """An event with the rules of the alerts that it is behind, as it was and as it would be.

    `truth` is what its alerts turned out to be: true, false, or None where nobody has said.
    """

    id: str
    external_id: str
    occurred_at_ms: int
    truth: bool | None
    was: tuple[str, ...]
    now: tuple[str, ...]

    @property
    def is_flip(self) -> bool:
        """Whether it would alert and did not, or the other way round."""
        return bool(self.was) != bool(self.now)


class AmlBacktest:
    """Runs AML rules over a tenant's log, with a memory and a graph of their own.

    Alerts repeat, are suppressed and teach their rules as in the service (`raised_alerts`). What was imported
    is watched as of its own time. `engine` makes an empty memory. `counts` has how many events (were, would
    be) behind an alert of a rule, by what is true of them; `days` the same for each day of event time, in
    seconds. `is_counted` picks a sample by the ids of events; everything else sees the others as well.
    Without `by_records` all is watched anew, though the records may hold what the rules read.
    """

    def __init__(
        self,
        store: Store,
        tenant: str,
        active: ActiveRules,
        engine: Callable[[], SnapshotVelocity],
        is_counted: Callable[[str], bool] = lambda _event: True,
        *,
        by_records: bool = True,
    ) -> None:
        self._by_records = by_records
        self._cache = RuleCache(lambda document: compile_document(document, aml_schema()))
        #: Says what the rules know of an event by its record, where all records that are read hold that.
        self._recorded: RecordedInputs | None = None
        self._store = store
        self._tenant = tenant
        self._active = active
        self._engine = engine
        self._is_counted = is_counted
        self._memory = AmlMemory(engine())
        self._runs: dict[str, events_sql.ImportRun] = {}
        self._past: AmlBackfill | None = None
        self._snoozes = SnoozeBook()
        self._alerts = RaisedAlerts(())
        self._seen: set[str] = set()
        self._acting = [rule.mode == "active" for rule in active.ruleset.running]
        self._ids = [rule.id for rule in active.ruleset.running]
        self.counts: dict[tuple[bool | None, bool, bool], int] = {}
        self.days: dict[tuple[int, bool, bool], int] = {}
        self.hits = [AmlRuleHits() for _ in active.ruleset.running]
        self.before: dict[str, AlertEnds] = {}
        self.flips = 0
        #: Events of the log that could not be read again.
        self.skipped = 0

    @property
    def rules(self) -> Sequence[Any]:
        """The rules that run."""
        return self._active.ruleset.running

    @property
    def is_by_records(self) -> bool:
        """Whether the records held what the rules read, so that nothing was watched anew."""
        return self._recorded is not None

    @property
    def after(self) -> dict[str, AlertEnds]:
        """The alerts that would have been raised in the span, by rule."""
        found: dict[str, AlertEnds] = {}
        for alert in self._alerts.raised:
            found.setdefault(alert.rule_id, AlertEnds()).add(alert.resolution)
        return found

    async def run(
        self, span: tuple[int, int], keep: Callable[[TriedEvent], Any], progress: Callable[[int], Any]
    ) -> None:
        """Count the events that happened in `span` (Unix milliseconds, from and before); `keep` gets each.

        What the rules know is taken from the records where these hold all of it; else the events of the 400
        days before fill a memory. Those raise alerts in either way, and are not counted.
        """
        # Nothing is received more than five minutes before it happened.
        since_ms, after = span[0] - OWN_MS - 300_000, 0
        if self._by_records:
            received = since_ms, END_MS
            self._recorded = await recorded_inputs(
                self._store, self._cache, self._tenant, self._active, received, _LOG
            )
        self._memory.install(self._tenant, self._active.compiled.plan)
        runs = await self._store.read(events_sql.select_runs(self._tenant, RULE_SETS.pack))
        self._runs = {row[0]: events_sql.ImportRun._make(row) for row in runs}
        snoozes = await self._store.read(snoozes_sql.select_of(self._tenant, RULE_SETS.pack))
        self._snoozes = SnoozeBook(map(snoozes_sql.snooze_of, snoozes))
        self._alerts = RaisedAlerts(await self._read_ends())
        while rows := await self._store.read(sql.select_watched_log(self._tenant, after, since_ms, _CHUNK)):
            after = rows[-1][0]
            known = await self._read_alerts(rows)
            for row in rows:
                tried = await self._watch(row, span, known)
                if tried is not None:
                    self._count(tried)
                    keep(tried)
            progress(len(rows))

    async def _read_ends(self) -> list[CaseEnd]:
        """Return how the tenant's cases were closed, in the order of time."""
        found: list[CaseEnd] = []
        after = ""
        while rows := await self._store.read(sql.select_case_ends(self._tenant, after, _CASES)):
            found += [CaseEnd(row[1], row[2], Resolution(row[3])) for row in rows]
            after = rows[-1][0]
        return sorted(found, key=lambda end: end.at_ms)

    async def _read_alerts(self, rows: Sequence[Row]) -> dict[str, tuple[str, str | None]]:
        """Return the alerts of rules that some events are behind: id → (rule, what it turned out to be)."""
        asked = sorted({one.id for row in rows if row[4] != b"[]" for one in _alerts_of(row[4])})
        if not asked:
            return {}
        found = await self._store.read(select_alerts_of_rules(self._tenant, asked))
        return {alert: (rule, resolution) for alert, rule, resolution, _ in found}

    async def _watch(
        self, row: Row, span: tuple[int, int], known: dict[str, tuple[str, str | None]]
    ) -> TriedEvent | None:
        _, event_id, received_at_ms, _, answered, _, stored, external_id, occurred_at_ms = row
        event: AmlEvent | None
        try:
            if self._recorded is None:
                taken = await self._take(row)
                event = taken.event
                _, fired, failed = run_rules(self._active, taken.facts, taken.answers, lambda: taken.event)
            else:
                event, fired, failed = self._run_recorded(self._recorded, row, record_of(stored))
        except (StoreDown, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001  One row must not keep the others from being watched.
            self.skipped += 1
            return None
        counted = span[0] <= occurred_at_ms < span[1] and self._is_counted(event_id)
        was = [known[one.id] for one in _alerts_of(answered) if one.id in known] if answered != b"[]" else []
        self._note_raised(answered, known, counted=counted)
        self._alerts.reach(received_at_ms)
        now = self._raise(event, fired, counted=counted) if event is not None else ()
        if not counted:
            return None
        self._note_hits(fired, [index for index, _ in failed])
        return TriedEvent(
            event_id,
            external_id,
            occurred_at_ms,
            _truth(resolution for _, resolution in was),
            tuple(rule for rule, _ in was),
            now,
        )

    def _run_recorded(
        self, recorded: RecordedInputs, row: Row, record: AmlRecord
    ) -> tuple[AmlEvent | None, list[int], list[tuple[int, str]]]:
        """Run the rules on what a record holds; the event is read where any of them fires."""

        def event() -> AmlEvent:
            return _with_sides(_event_of(row), recorded.further(record))

        facts, answers = recorded.of(record)
        late = recorded.late_answers(record, record.late_answers)
        _, fired, failed = run_rules(self._active, facts, late or [answers], event)
        return event() if fired else None, fired, failed

    async def _take(self, row: Row) -> WatchedEvent:
        """Return an event and what the rules know of it by the memory, which records it."""
        event_id, import_id = row[1], row[5]
        event = _event_of(row)
        taken = self._memory.take(self._tenant, self._active.compiled, event_id, event)
        if import_id is not None and (past := self._past_of(import_id)) is not None:
            await past.reach(event.occurred_at_ms)
            taken = past.take(event_id, event)
        return taken

    def _raise(self, event: AmlEvent, fired: list[int], *, counted: bool) -> tuple[str, ...]:
        """Return the rules of the alerts that an event would be behind."""
        active = self._active
        if not fired:
            return ()
        subject = event.customer_key or event.device_key or event.ip
        withheld = withhold(active.stages, fired, subject, event.occurred_at_ms) if active.stages else []
        withheld = self._snoozes.withhold(active.ruleset.running, fired, event, withheld)
        may_act = acting(fired, withheld)
        findings = judge(active.ruleset, may_act, self._alerts.weights, event) if may_act else []
        subjects = list(dict.fromkeys(finding.subject for finding in findings))
        findings.sort(key=lambda finding: subjects.index(finding.subject))
        placed = self._alerts.place(findings, self._ids, event, is_counted=counted)
        return tuple(alert.rule_id for alert in placed)

    def _note_raised(
        self, answered: bytes, known: dict[str, tuple[str, str | None]], *, counted: bool
    ) -> None:
        """Count the alerts that came up with an event: those that no event before it is behind."""
        if answered == b"[]":
            return
        for one in _alerts_of(answered):
            if one.id in known and one.id not in self._seen:
                self._seen.add(one.id)
                if counted:
                    rule, resolution = known[one.id]
                    self.before.setdefault(rule, AlertEnds()).add(resolution)

    def _note_hits(self, fired: Sequence[int], failed: Sequence[int]) -> None:
        active = [index for index in fired if self._acting[index]]
        for index in fired:
            self.hits[index].fired += 1
            self.hits[index].alone += active == [index]
        for index in failed:
            self.hits[index].failed += 1

    def _count(self, tried: TriedEvent) -> None:
        place = bool(tried.was), bool(tried.now)
        self.counts[tried.truth, *place] = self.counts.get((tried.truth, *place), 0) + 1
        on_day = tried.occurred_at_ms // DAY_MS * (DAY_MS // 1000), *place
        self.days[on_day] = self.days.get(on_day, 0) + 1
        self.flips += tried.is_flip

    def _past_of(self, import_id: str) -> AmlBackfill | None:
        """Return the memory of an import; None when nothing is known of it any more."""
        run = self._runs.get(import_id)
        if run is not None and (self._past is None or self._past.run is not run):
            memory = AmlMemory(self._engine())
            self._past = AmlBackfill(self._store, self._tenant, self._active, memory, run)
        return self._past if run is not None else None


def _event_of(row: Row) -> AmlEvent:
    """Read the event of a row. Raises whatever there is to raise: it is damaged, or bounds were narrowed."""
    return read_taken_aml_event(decode(row[3]), row[2])


def _with_sides(event: AmlEvent, sides: Sequence[Any]) -> AmlEvent:
    """Return an event with the parties that the graph named then."""
    party, sender, receiver = sides
    trail = TransferHistory(party=party, sender=sender, receiver=receiver)
    return msgspec.structs.replace(event, trail=trail)


def _truth(resolutions: Any) -> bool | None:
    """Say what an event's alerts turned out to be: true when one of them was a true match."""
    said = {one for one in resolutions if one is not None}
    return None if not said else Resolution.TRUE_MATCH in said
