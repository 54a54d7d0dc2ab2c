"""The logs that the quality of fraud rules is counted from: decisions, and the labels they were given."""

from typing import Any, Final

from vettance.db.engine import Row, Statement, Store, still_asked
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.decision import DecisionRecordData, Outcome
from vettance.decisions.field_readers import amount_in, bounded
from vettance.decisions.rule_course import RuleCourse, rule_course_of
from vettance.decisions.sql import record_of
from vettance.fairness.tenant_cache import TenantCache
from vettance.quality import sql
from vettance.quality.count_rules import (
    LabelCounts,
    MeasuredRow,
    RunningRules,
    measures_of_row,
    readable,
)
from vettance.quality.rule_counts import Counts, Measures, RuleRun, add_up, labelled, measures_of
from vettance.quality.rule_timing import RuleInputRecord
from vettance.rules.sql import DECIDING
from vettance.wire.payload import decode

_CURRENCY_CHARS: Final = 3
#: Of rules that fire together each pair has a measure: a hundred of them make 2 MB for one kind of event.
_KNOWN_BYTES_MAX: Final = 4 << 20
#: A place in the dictionary, the tuple that is its key, and the text of the measure.
_MEASURE_BYTES: Final = 250


def _bytes_of(_course: RuleCourse, measures: Measures) -> int:
    return len(measures) * _MEASURE_BYTES


class DecisionLogs:
    """Implements `count_rules.CountedLogs`."""

    tables = sql.DECIDED_COUNTS

    def __init__(self, store: Store, cache: RuleCache) -> None:
        self._store = store
        self._rules = RunningRules(store, cache, DECIDING)
        # Of what was not held, by what its rules said: hardly anything else is different between two events.
        self._known = TenantCache[RuleCourse, Measures](_KNOWN_BYTES_MAX, _bytes_of)

    def select_ends(self) -> Statement:
        """Ask where both logs end."""
        return sql.select_ends()

    def select_busy(self, decided: int, labelled: int) -> Statement:
        """Ask who has something new behind two places."""
        return sql.select_busy(decided, labelled)

    def select_newest(self, tenant: str) -> Statement:
        """Ask for the place of a tenant's newest decision."""
        return sql.select_newest_decision(tenant)

    async def decided(self, tenant: str, after: int, limit: int) -> list[MeasuredRow]:
        """Return what the next decisions measure."""
        rows = await self._store.read(sql.select_decided(tenant, after, limit))
        found = []
        for row in rows:
            seq, _, at_ms, stored, sent = row
            course = rule_course_of(stored) if sent is None else None
            measures = None if course is None else self._known.get(tenant, course)
            if measures is None:
                measures = await self._measures(tenant, row)
                if course is not None and measures:  # Nothing is measured of a damaged record.
                    self._known.put(tenant, course, measures)
            found.append(MeasuredRow(seq, at_ms, measures))
        return found

    async def labelled(self, tenant: str, after: int, decided: int, limit: int) -> LabelCounts:
        """Return what the next labels add; one whose decision is not counted yet waits for that."""
        labels = await self._store.read(sql.select_labels(tenant, after, limit))
        asked: Any = list({event for _, event, _, _ in labels})
        found: dict[str, Row] = {}
        while asked:
            rows = await self._store.read(sql.select_labelled(tenant, asked))
            found.update((row[1], row) for row in rows)
            asked = still_asked(asked, [(row[1], *row[2:]) for row in rows])
        counts: Counts = {}
        through = after
        for seq, event, fraud, weight in labels:
            row = found.get(event)
            if row is not None:
                if row[0] > decided:
                    break  # Its decision is counted first.
                measures = await self._measures(tenant, row)
                add_up(counts, labelled(measures, weight, fraud=bool(fraud)), row[2])
            through = seq
        return LabelCounts(through, counts)

    async def newest(self, tenant: str, limit: int) -> list[RuleInputRecord]:
        """Return the records of the newest decisions, of those that can be read."""
        rows = await self._store.read(sql.select_newest_records(tenant, limit))
        return list(readable((stored for _, stored in rows), record_of))

    async def _measures(self, tenant: str, row: Row) -> Measures:
        """Return what one decision measures; of a damaged record nothing."""
        return await measures_of_row(self._measure(tenant, row))

    async def _measure(self, tenant: str, row: Row) -> Measures:
        _, _, _, stored, sent = row
        record = record_of(stored)
        rules = await self._rules.of(tenant, record.ruleset_version)
        return measures_of(rules, run_of(record, None if sent is None else decode(sent)))


def run_of(record: DecisionRecordData, sent: Any) -> RuleRun:
    """Return what the rules of a decision said; `sent` is the body of what was held."""
    held = record.outcome is not Outcome.ALLOW
    failed = [index for index, _ in record.failed]
    amount = _amount_of(sent) if held else None
    return RuleRun(record.fired, record.acting, failed, held, record.held_out, amount)


def _amount_of(sent: Any) -> tuple[str, float] | None:
    amount, currency = amount_in(sent)
    if amount is None:
        return None
    code = currency or ""
    return (code if len(code) == _CURRENCY_CHARS and code.isalpha() else ""), bounded(amount)
