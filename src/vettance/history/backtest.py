"""Backtest: decides the events of the log again by other rules, and counts what would differ."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS
from vettance.db.engine import Row, Store, StoreDown
from vettance.decisions import sql
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, consider, logged_event
from vettance.decisions.decide_imported import Backfill
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, decide, entries_of
from vettance.decisions.evaluated_event import is_held_out, subject_of
from vettance.decisions.features import fraud_schema
from vettance.decisions.label_memory import LabelReader, record_label
from vettance.events import sql as events_sql
from vettance.events.event import Event, EventSource
from vettance.feedback import sql as feedback_sql
from vettance.feedback.label import Feedback, Label
from vettance.feedback.label_change import truth_of
from vettance.history.recorded_inputs import RecordedInputs, recorded_inputs
from vettance.lists.entry import ListEntry
from vettance.models.model_score import ModelResult
from vettance.rules.compiler import Answers, Facts
from vettance.rules.rollout import acting, withhold
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema
from vettance.rules.sql import DECIDING
from vettance.snoozes import sql as snoozes_sql
from vettance.snoozes.snooze import SnoozeBook
from vettance.velocity.aggregates import WINDOW_MS_MAX
from vettance.velocity.port import Velocity

_CHUNK: Final = 1_000


class RuleHits(msgspec.Struct):
    """On how many events a rule fired, and how many of these are labelled as fraud and as legitimate.

    `alone` are those on which no other active rule fired, `alone_fraud` those of them labelled as fraud.
    """

    fired: int = 0
    fraud: int = 0
    legit: int = 0
    failed: int = 0
    alone: int = 0
    alone_fraud: int = 0


class ChangedDecision(msgspec.Struct, frozen=True):
    """An event about which the rules would have decided otherwise; `fraud` is what its labels say."""

    id: str
    occurred_at_ms: int
    was: Outcome
    score: int  # as it was
    now: Decision
    fraud: bool | None


class DecidedAnew(NamedTuple):
    """An event of the log as other rules decide it: what they knew, which rules acted, and what came of it.

    `entries` and `model` are those of then; `fraud` is what the labels of the event say.
    """

    facts: Sequence[Any]
    answers: Sequence[Any]
    fired: Sequence[int]
    acted: Sequence[int]
    entries: Sequence[ListEntry]
    model: ModelResult | None
    now: Decision
    fraud: bool | None


class Backtest:
    """Runs rules over a tenant's log, with a memory of their own that sees what the live one saw.

    What was imported is decided as it was then: by a second memory that goes by the time of the events.
    `engine` makes an empty memory.

    `counts` has how many events were decided as (was, now), by what their labels say of them: True for
    fraud, False for legitimate, None for those that nobody labelled. `days` has the same for each day of
    event time, in seconds. Lists count as they did then. `is_counted` picks a sample by the ids of events;
    the memory sees the others as well. `look` is shown every event that is counted. Without `by_records` all
    is decided anew, though the records may hold what the rules read. `schema` is that of the rules in force.
    """

    def __init__(
        self,
        store: Store,
        tenant: str,
        active: ActiveRules,
        engine: Callable[[], Velocity],
        is_counted: Callable[[str], bool] = lambda _event: True,
        look: Callable[[DecidedAnew], Any] | None = None,
        *,
        by_records: bool = True,
        schema: Schema | None = None,
    ) -> None:
        self._by_records = by_records
        self._is_counted = is_counted
        self._look = look
        self._store = store
        self._tenant = tenant
        self._active = active
        self._engine = engine
        self._velocity = engine()
        self._cache = RuleCache(lambda document: compile_document(document, schema or fraud_schema()))
        #: Says what the rules know of an event by its record, where all records of the span hold that.
        self._recorded: RecordedInputs | None = None
        #: Whether anything but rules and lists decides: then the event itself has to be read.
        self._reads_events = True
        self._runs: Sequence[events_sql.ImportRun] = ()
        self._past: Backfill | None = None
        self._snoozes = SnoozeBook()
        self.counts: dict[tuple[bool | None, Outcome, Outcome], int] = {}
        self.days: dict[tuple[int, bool | None, Outcome, Outcome], int] = {}
        self._acting = [rule.mode == "active" for rule in active.ruleset.running]
        #: Events of the log that could not be read again.
        self.skipped = 0
        self.hits = [RuleHits() for _ in active.ruleset.running]

    async def run(
        self, span: tuple[int, int], keep: Callable[[ChangedDecision], Any], progress: Callable[[int], Any]
    ) -> None:
        """Count the events that happened in `span` (Unix milliseconds, from and before); `keep` gets changes.

        What the rules know is taken from the records where these hold all of it. Else events of the ninety
        days before fill a memory, and are not counted.
        """
        if self._by_records:
            self._recorded = await recorded_inputs(self._store, self._cache, self._tenant, self._active, span)
        self._velocity.install(self._tenant, self._active.asked.plan)
        self._runs = [
            events_sql.ImportRun._make(row)
            for row in await self._store.read(events_sql.select_runs(self._tenant))
        ]
        snoozes = await self._store.read(snoozes_sql.select_of(self._tenant, DECIDING.pack))
        self._snoozes = SnoozeBook(map(snoozes_sql.snooze_of, snoozes))
        self._reads_events = bool(self._active.stages or self._snoozes) or (
            self._active.ruleset.explore is not None
        )
        filled_ms = 0 if self._recorded is not None else WINDOW_MS_MAX
        # Nothing is received more than five minutes before it happened.
        since_ms, after = span[0] - filled_ms - 300_000, 0
        labels = LabelReader(self._store, self._tenant, since_ms)
        counts_labels = any(self._active.asked.labels.masks) and self._recorded is None
        while rows := await self._store.read(sql.select_decided_log(self._tenant, after, since_ms, _CHUNK)):
            after = rows[-1][0]
            found = await self._store.read(
                feedback_sql.select_feedback(self._tenant, [row[2] for row in rows])
            )
            truth = _truths(map(feedback_sql.feedback_of, found))
            for row in rows:
                for label in await labels.before(row[0]) if counts_labels else ():
                    record_label(self._velocity, self._active, self._tenant, label.event, label.change)
                change = await self._decide(row, span, truth.get(row[2]))
                if change is not None and change.was is not change.now.outcome:
                    keep(change)
            progress(len(rows))

    async def _decide(self, row: Row, span: tuple[int, int], fraud: bool | None) -> ChangedDecision | None:
        event: Event | None = None
        at_ms: int = row[8]
        is_counted = span[0] <= at_ms < span[1] and self._is_counted(row[2])
        try:
            was = sql.record_of(row[6])
            if self._recorded is None:
                event = logged_event(row[:6])
                facts, answers = await self._ask(row, event, span[0])
            elif is_counted:
                facts, answers = self._recorded.of(was)
        except (StoreDown, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001  One row must not keep the others from being decided.
            self.skipped += 1
            return None
        if not is_counted:
            return None
        fired, failed = self._active.compiled.run(facts, answers)
        if event is None and fired and self._reads_events:
            try:
                event = logged_event(row[:6])
            except Exception:  # noqa: BLE001  As above.
                self.skipped += 1
                return None
        acting = [index for index in fired if self._acting[index]]
        for index in fired:
            hits = self.hits[index]
            hits.fired += 1
            hits.fraud += fraud is True
            hits.legit += fraud is False
            if acting == [index]:
                hits.alone += 1
                hits.alone_fraud += fraud is True
        for index, _ in failed:
            self.hits[index].failed += 1
        may_act, entries = self._acting_of(event, fired), entries_of(self._tenant, was.lists)
        now = self._decide_now(event, may_act, entries, was)
        if self._look is not None:
            self._look(DecidedAnew(facts, answers, fired, may_act, entries, was.model, now, fraud))
        place = fraud, was.outcome, now.outcome
        self.counts[place] = self.counts.get(place, 0) + 1
        on_day = at_ms // DAY_MS * (DAY_MS // 1000), *place
        self.days[on_day] = self.days.get(on_day, 0) + 1
        return ChangedDecision(row[2], at_ms, was.outcome, was.score, now, fraud)

    async def _ask(self, row: Row, event: Event, since_ms: int) -> tuple[Facts, Answers]:
        """Return what the rules know of an event by the memory, which records it."""
        _, facts, answer, _ = consider(self._velocity, self._active, self._tenant, row[2], event)
        if row[7] == EventSource.IMPORT and (past := self._past_of(row[0], since_ms)) is not None:
            answer = (await past.ask(row[2], event)).answer
        return facts, answer.values

    def _acting_of(self, event: Event | None, fired: list[int]) -> Sequence[int]:
        """Return the rules that fired and act: for those who are in their roll-outs, and not snoozed."""
        active = self._active
        if event is None:
            return fired
        withheld = withhold(active.stages, fired, subject_of(event), event.occurred_at_ms)
        return acting(fired, self._snoozes.withhold(active.ruleset.running, fired, event, withheld))

    def _decide_now(
        self,
        event: Event | None,
        may_act: Sequence[int],
        entries: Sequence[ListEntry],
        was: DecisionRecordData,
    ) -> Decision:
        """Combine what acts by the rules that are tried. Lists and the model say what they said then."""
        active, model = self._active, was.model
        now = decide(active.ruleset, active.version, may_act, entries, model=model)
        if (
            event is not None
            and now.outcome is not Outcome.ALLOW
            and is_held_out(active.ruleset, may_act, entries, event)
        ):
            return decide(active.ruleset, active.version, may_act, entries, held_out=True, model=model)
        return now

    def _past_of(self, seq: int, since_ms: int) -> Backfill | None:
        """Return the memory of the import that brought the event at a place of the log."""
        run = next((run for run in reversed(self._runs) if run.base < seq), None)
        if run is not None and (self._past is None or self._past.run is not run):
            self._past = Backfill(self._store, self._tenant, self._active, self._engine(), run, since_ms)
        return self._past

    def count(self, fraud: bool | None, was: Outcome, now: Outcome | None = None) -> int:
        """Count events by their label (all for None), by how they were decided, and how they are now."""
        return sum(
            number
            for (truth, before, after), number in self.counts.items()
            if (fraud is None or truth is fraud) and before is was and now in (None, after)
        )


def _truths(feedback: Iterable[Feedback]) -> dict[str, bool]:
    """Say which events were fraud by the labels of each; the feedback comes oldest first."""
    labels: dict[str, list[Label]] = {}
    for one in feedback:
        labels.setdefault(one.target, []).append(one.label)
    truths = ((event, truth_of(said)) for event, said in labels.items())
    return {event: truth for event, truth in truths if truth is not None}
