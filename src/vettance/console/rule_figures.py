"""What rules are worth, for their pages: the figures of the endpoint, and a line of their days."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from vettance.clock import DAY_MS
from vettance.console.page import Visit
from vettance.console.rule_place import RulePlace
from vettance.console.svg_charts import ChartPoint, sparkline, time_series
from vettance.console.words import Words
from vettance.fairness.time_slice import TimeSlice
from vettance.quality.quality_desk import QualityDesk, SpanReport
from vettance.quality.rule_counts import DAY_S, HITS, SHADOW
from vettance.rules.rule import RuleSetRefused
from vettance.wire.payload import decode, encode

#: As long as the span of the endpoint.
_DAYS: Final = 30
REMARKS: Final = {
    "never_hits": Words("never fires"),
    "always_hits": Words("fires for nearly everything"),
    "covered_by_others": Words("never fires alone"),
    "fails": Words("fails"),
}


class RuleDays(NamedTuple):
    """How often a rule fired on each day, the oldest first, and when the first day begins (Unix seconds)."""

    begin_s: int
    counts: Sequence[int]

    @property
    def total(self) -> int:
        """How often in all."""
        return sum(self.counts)


class RuleFigures(NamedTuple):
    """What one rule did in the last 30 days. `answer` is what the endpoint says of it."""

    answer: Mapping[str, Any]
    days: RuleDays
    spark: Markup
    precision: str
    remarks: Sequence[str]


class SpanFigures(NamedTuple):
    """What all rules did; `gone` are those that fired and are in force no more.

    It is complete unless older decisions are still being counted.
    """

    is_complete: bool
    rules: Mapping[str, RuleFigures]
    gone: Sequence[str]

    def precision_of(self, rule_id: str) -> float:
        """Return the precision of a rule; more than 1 where labels say nothing of it."""
        found = self.rules.get(rule_id)
        share = found.answer["precision"] if found is not None else None
        return float(share["value"]) if share is not None else 2.0


async def figures_of(visit: Visit, place: RulePlace) -> SpanFigures:
    """Return what the rules of a kind did in the last 30 days; nothing of the others that each one met."""
    desk = visit.parts.quality[place.kind]
    try:
        report = await desk.outline(visit.tenant.id)
    except RuleSetRefused:
        return SpanFigures(
            is_complete=True, rules={}, gone=()
        )  # This version cannot read the rules in force.
    return await _span_figures(visit, place, report, await _days(visit, desk))


async def figures_of_rule(visit: Visit, place: RulePlace, rule_id: str) -> SpanFigures:
    """Return what one rule did in the last 30 days."""
    desk = visit.parts.quality[place.kind]
    try:
        report = await desk.report_rule(visit.tenant.id, rule_id)
    except RuleSetRefused:
        return SpanFigures(is_complete=True, rules={}, gone=())
    return await _span_figures(visit, place, report, await _days(visit, desk, rule_id))


async def _days(visit: Visit, desk: QualityDesk, rule_id: str | None = None) -> Mapping[str, RuleDays]:
    end_s = visit.now_ms // 1000 // DAY_S * DAY_S + DAY_S
    begin_s = end_s - _DAYS * DAY_S
    span = begin_s * 1000, end_s * 1000
    counted = await desk.days(visit.tenant.id, (HITS, SHADOW), *span, rule_id)
    none = RuleDays(begin_s, [0] * _DAYS)
    turn, days = TimeSlice(), defaultdict[str, RuleDays](lambda: none)
    for rule, found in counted.items():
        await turn.pause_when_over()
        days[rule] = RuleDays(begin_s, [found.get(day, 0) for day in range(begin_s, end_s, DAY_S)])
    await turn.pause_when_over()
    return days


async def _span_figures(
    visit: Visit, place: RulePlace, report: SpanReport, days: Mapping[str, RuleDays]
) -> SpanFigures:
    """Write a report as the endpoint does, so that no number can differ, and what pages add to it."""
    turn, rules = TimeSlice(), {}
    answer: Any = place.quality.answer(report)
    await turn.pause_when_over()
    for said in answer.rules:
        one = decode(encode(said))
        rules[said.rule_id] = _figures(visit, place, one, days[said.rule_id])
        await turn.pause_when_over()
    gone = [said.rule_id for said in answer.rules if said.mode == "gone"]
    return SpanFigures(answer.complete, rules, gone)


def _figures(visit: Visit, place: RulePlace, one: Mapping[str, Any], days: RuleDays) -> RuleFigures:
    if place.is_fraud:
        right, wrong = one["fraud"], one["legit"]
    else:
        right, wrong = one["alerts"]["trueMatches"], one["alerts"]["falsePositives"]
    text = f"Hits a day in {_DAYS} days, {days.total} in all, {max(days.counts)} at most"
    return RuleFigures(
        one,
        days,
        sparkline(days.counts, text) if days.total else Markup(),
        visit.show.interval(right, right + wrong),
        [REMARKS.get(word, word) for word in one["remarks"]],
    )


def days_chart(visit: Visit, days: RuleDays) -> Markup:
    """Return the days of a rule as a line."""
    points = [
        ChartPoint(visit.show.label((days.begin_s + place * DAY_S) * 1000, DAY_MS // 1000), count)
        for place, count in enumerate(days.counts)
    ]
    text = f"Hits on each of {len(points)} days, {days.total} in all"
    return time_series(points, (), text, visit.show.number(max(days.counts)))
