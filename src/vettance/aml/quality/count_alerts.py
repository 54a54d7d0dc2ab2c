"""The logs that the quality of AML rules is counted from: events, and the timelines of cases."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.case import EntryKind, Resolution
from vettance.aml.evidence import Figures
from vettance.aml.quality import sql
from vettance.aml.sql import RULE_SETS, AmlRecord
from vettance.db.engine import Row, Statement, Store
from vettance.decisions.active_rulesets import RuleCache
from vettance.quality.count_rules import (
    LabelCounts,
    MeasuredRow,
    RunningRules,
    measures_of_row,
    readable,
)
from vettance.quality.rule_counts import (
    ALERTS,
    EVERY,
    JOINED,
    Counts,
    Measures,
    RuleRun,
    add_up,
    labelled,
    measures_of,
)
from vettance.quality.rule_timing import RuleInputRecord
from vettance.rules.rollout import acting

_CASES: Final = 100  # Asked about at a time.

record_of: Final = msgspec.json.Decoder(AmlRecord).decode
_figures_of: Final = msgspec.json.Decoder(Figures).decode
#: Asks for the alerts of some cases in a span of time.
_SelectAlerts = Callable[[str, Sequence[str], tuple[int, int], str], Statement]


class _AnsweredAlert(msgspec.Struct):
    """What an event was answered of an alert, as far as it is counted."""

    id: str


_alerts_of: Final = msgspec.json.Decoder(list[_AnsweredAlert]).decode


class AlertRow(NamedTuple):
    """An alert of a rule; `told_ms` is when it was raised, or resolved, whichever was asked for."""

    id: str
    case_id: str
    rule_id: str
    created_at_ms: int
    told_ms: int
    resolution: str | None
    figures: bytes


class WatchLogs:
    """Implements `quality.count_rules.CountedLogs`.

    An event counts at its own time. An alert counts at the time at which it was raised, once as raised, and
    once as what its case turned out to be.
    """

    tables = sql.WATCHED_COUNTS

    def __init__(self, store: Store, cache: RuleCache) -> None:
        self._store = store
        self._rules = RunningRules(store, cache, RULE_SETS)

    def select_ends(self) -> Statement:
        """Ask where both logs end."""
        return sql.select_ends()

    def select_busy(self, decided: int, labelled: int) -> Statement:
        """Ask who has something new behind two places."""
        return sql.select_busy(decided, labelled)

    def select_newest(self, tenant: str) -> Statement:
        """Ask for the place of a tenant's newest event."""
        return sql.select_newest_event(tenant)

    async def decided(self, tenant: str, after: int, limit: int) -> list[MeasuredRow]:
        """Return what the next events measure."""
        rows = await self._store.read(sql.select_watched(tenant, after, limit))
        answered = {row[0]: _answered(row[3]) for row in rows}
        of_rules = await self._of_rules(tenant, {one for alerts in answered.values() for one in alerts})
        found = []
        for row in rows:
            held = not of_rules.isdisjoint(answered[row[0]])
            found.append(MeasuredRow(row[0], row[1], await self._measures(tenant, row[2], held=held)))
        return found

    async def labelled(self, tenant: str, after: int, _decided: int, limit: int) -> LabelCounts:
        """Return what the next lines of timelines add: alerts raised, and cases resolved."""
        lines = await self._store.read(sql.select_case_steps(tenant, after, limit))
        lines = _whole_commits(lines, limit)
        counts: Counts = {}
        raised = {(case, at_ms) for _, case, at_ms, kind in lines if kind == EntryKind.ALERTED}
        for alert in await self._alerts(tenant, raised, sql.select_raised):
            add_up(counts, _alert_measures(alert), alert.created_at_ms)
        closed = {(case, at_ms) for _, case, at_ms, kind in lines if kind == EntryKind.RESOLVED}
        for alert in await self._alerts(tenant, closed, sql.select_resolved):
            is_true = alert.resolution == Resolution.TRUE_MATCH
            add_up(counts, labelled(_alert_measures(alert), 1, fraud=is_true), alert.created_at_ms)
        return LabelCounts(lines[-1][0] if lines else after, counts)

    async def newest(self, tenant: str, limit: int) -> list[RuleInputRecord]:
        """Return the records of the newest events, of those that can be read."""
        rows = await self._store.read(sql.select_newest_records(tenant, limit))
        return list(readable((stored for (stored,) in rows), record_of))

    async def _of_rules(self, tenant: str, alerts: set[str]) -> set[str]:
        """Return those of some alerts that rules raised; the others are of names on lists."""
        if not alerts:
            return set()
        return {row[0] for row in await self._store.read(sql.select_alerts_of_rules(tenant, sorted(alerts)))}

    async def _alerts(self, tenant: str, told: set[tuple[str, int]], select: _SelectAlerts) -> list[AlertRow]:
        """Return the alerts of which some lines tell, each as a case and a moment."""
        found: list[AlertRow] = []
        cases = sorted({case for case, _ in told})
        for start in range(0, len(cases), _CASES):
            some, after = cases[start : start + _CASES], ""
            moments = [at_ms for case, at_ms in told if case in some]
            span = min(moments), max(moments)
            while rows := await self._store.read(select(tenant, some, span, after)):
                alerts = [AlertRow(*row) for row in rows]
                found += [one for one in alerts if (one.case_id, one.told_ms) in told]
                after = alerts[-1].id
        return found

    async def _measures(self, tenant: str, stored: bytes, *, held: bool) -> Measures:
        """Return what one event measures; of a damaged record nothing."""
        return await measures_of_row(self._measure(tenant, stored, held=held))

    async def _measure(self, tenant: str, stored: bytes, *, held: bool) -> Measures:
        record = record_of(stored)
        rules = await self._rules.of(tenant, record.ruleset_version)
        failed = [index for index, _ in record.failed]
        may_act = acting(record.fired, record.withheld)
        return measures_of(rules, RuleRun(record.fired, may_act, failed, held))


def _answered(alerts: bytes) -> list[str]:
    """Return the ids of the alerts that an event was answered."""
    return [one.id for one in _alerts_of(alerts)] if alerts != b"[]" else []


def _alert_measures(alert: AlertRow) -> Measures:
    """Return what one alert counts for the rule that raised it, and for those that fired with it."""
    try:
        joined: Iterable[Any] = _figures_of(alert.figures).with_rules
    except ValueError:
        joined = ()
    return {
        (EVERY, ALERTS): 1,
        (alert.rule_id, ALERTS): 1,
        **{(rule, JOINED): 1 for rule in joined if rule != alert.rule_id},
    }


def _whole_commits(lines: list[Row], limit: int) -> list[Row]:
    """Leave out the last lines of a full step that may go on in the next one.

    The alerts of one commit have one case and one moment, and are found by these, all at once.
    """
    if len(lines) < limit:
        return lines
    last = lines[-1][1:3]
    whole = [line for line in lines if line[1:3] != last]
    return whole or lines
