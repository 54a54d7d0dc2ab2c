"""Draws the curves of a rule's numbers from the log: the hits and the reviews a day with each."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.decision import DecisionRecordData, Outcome, decide, entries_of
from vettance.rules.compiled_value import CompiledValue, compile_value
from vettance.rules.expression import Expression, Fact, literal, values_in
from vettance.rules.rollout import acting
from vettance.rules.ruleset import Rule, RuleSet
from vettance.suggestions.labelled_log import UNLABELLED, LabelledLog
from vettance.suggestions.logged_values import LoggedDecision, LogReader, WantedValues
from vettance.suggestions.suggested_rules import part_out, share_out
from vettance.suggestions.suggestion_order import SuggestionOrder
from vettance.suggestions.threshold_curve import (
    CurveBase,
    CurvePoint,
    NumberComparison,
    RuleComparisons,
    SwayedEvent,
    best_point,
    curve,
    with_bound,
    with_part,
)
from vettance.wire.payload import JSON

#: Of the events that are no labelled fraud, so many are looked at; beyond that a sample.
REST_MAX: Final = 300_000
_DIGITS: Final = 6

Advance = Callable[[int], Any]


class _Tally:
    """What one comparison of a rule sways, and what it does not."""

    def __init__(self, comparison: NumberComparison, expression: Expression) -> None:
        self.comparison = comparison
        self._value = compile_value(comparison.value)
        self._if = compile_value(with_part(expression, comparison.node, literal(value=True)))
        self._if_not = compile_value(with_part(expression, comparison.node, literal(value=False)))
        self.swayed: list[SwayedEvent] = []
        self.fraud = 0
        self.legit = self.presumed = self.unknown = self.reviews = 0.0

    def take(
        self, known: dict[str, Any], *, fires: bool, truth: int, weight: float, reviews: tuple[bool, bool]
    ) -> None:
        """Take an event; `reviews` says whether it is reviewed if the rule fires, and if it does not."""
        value = _compute(self._value, known)
        on, off = (_compute(one, known) is True for one in (self._if, self._if_not))
        if value is not None and on is not off:
            self.swayed.append(SwayedEvent(float(value), on, truth, weight, *reviews))
            return
        hits = fires if value is None else on
        self.reviews += weight * reviews[0 if hits else 1]
        if hits:
            self.fraud += truth == 1
            self.legit += weight * (truth == 0)
            self.presumed += weight * (truth == UNLABELLED)
            self.unknown += weight * (truth < UNLABELLED)

    def base(self, frauds: int, days: float) -> CurveBase:
        """Return what does not hang on the number."""
        return CurveBase(self.fraud, self.legit, self.presumed, self.unknown, self.reviews, frauds, days)


def _compute(value: CompiledValue, known: dict[str, Any]) -> Any:
    return value.compute(*(known.get(name) for name in value.names))


async def measure_threshold(
    reader: LogReader, log: LabelledLog, moved: RuleComparisons, order: SuggestionOrder, advance: Advance
) -> JSON:
    """Draw a curve for each comparison of a rule with a number."""
    rule, expression, comparisons = moved
    tallies = [_Tally(one, expression) for one in comparisons]
    whole = log.with_unknown()
    sampled, weight = whole.sample(REST_MAX)
    wanted = _wanted(expression)
    names = (*wanted.facts, *wanted.aggregates)
    truths = dict(zip(sampled.places.tolist(), sampled.truths.tolist(), strict=True))
    whole_rule = compile_value(expression)
    outcomes = _Outcomes(rule)
    async for found in reader.read(sampled.places, wanted):
        for one in found:
            version = await reader.version(one.record.ruleset_version)
            reviews = outcomes.of(version, one)
            known = dict(zip(names, one.values, strict=True))
            truth = truths[one.place]
            fires = _compute(whole_rule, known) is True
            for tally in tallies:
                share = 1.0 if truth == 1 else weight
                tally.take(known, fires=fires, truth=truth, weight=share, reviews=reviews)
        advance(len(found))
    frauds = whole.frauds
    return {
        "kind": "threshold",
        "ruleId": rule.id,
        **part_out(log),
        "skipped": reader.skipped,
        "comparisons": [_comparison_out(one, expression, frauds, log.days, order) for one in tallies],
    }


def _wanted(expression: Expression) -> WantedValues:
    values = {one.text: one for one in values_in(expression)}
    facts = tuple(text for text, one in values.items() if isinstance(one, Fact))
    return WantedValues(facts, tuple(text for text in values if text not in facts))


class _Outcomes:
    """Tells whether an event is reviewed if a rule fires and acts, and if it does not."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._rulesets: dict[int, tuple[RuleSet, int] | None] = {}

    def of(self, version: ActiveRules | None, one: LoggedDecision) -> tuple[bool, bool]:
        """Return both; as it was answered where that version had no such rule."""
        as_it_was = one.record.outcome is Outcome.REVIEW
        if version is None:
            return as_it_was, as_it_was
        if version.version not in self._rulesets:
            self._rulesets[version.version] = self._with_rule(version.ruleset)
        known = self._rulesets[version.version]
        if known is None:
            return as_it_was, as_it_was
        ruleset, place = known
        others = [fired for fired in acting(one.record.fired, one.record.withheld) if fired != place]
        return (
            _is_reviewed(ruleset, sorted([*others, place]), one.record),
            _is_reviewed(ruleset, others, one.record),
        )

    def _with_rule(self, ruleset: RuleSet) -> tuple[RuleSet, int] | None:
        """Return a version with the rule as it is in force, acting, and its place there."""
        running = list(ruleset.running)
        place = next((place for place, one in enumerate(running) if one.id == self._rule.id), None)
        if place is None:
            return None
        running[place] = msgspec.structs.replace(self._rule, mode="active")
        return msgspec.structs.replace(ruleset, rules=tuple(running)), place


def _is_reviewed(ruleset: RuleSet, fired: Sequence[int], record: DecisionRecordData) -> bool:
    entries = entries_of("", record.lists)
    return decide(ruleset, 0, fired, entries, model=record.model).outcome is Outcome.REVIEW


def _comparison_out(
    tally: _Tally, expression: Expression, frauds: int, days: float, order: SuggestionOrder
) -> JSON:
    comparison = tally.comparison
    points = curve(comparison, tally.swayed, tally.base(frauds, days))
    best = best_point(points, order.precision, order.load)
    return {
        "comparison": comparison.text,
        "expression": comparison.value.text,
        "sign": comparison.sign,
        "current": comparison.bound,
        "points": [_point_out(one, days) for one in points],
        "suggested": None
        if best is None
        else {**_point_out(best, days), "when": with_bound(expression, comparison, best.value)},
    }


def _point_out(one: CurvePoint, days: float) -> JSON:
    return {
        "value": one.value,
        "hits": round(one.hits),
        "hitsPerDay": round(one.hits / days, 2),
        "fraud": one.fraud,
        "legit": round(one.legit),
        "presumedLegit": round(one.presumed),
        "precision": share_out(one.precision),
        "recall": share_out(one.recall),
        "reviewsPerDay": round(one.reviews_per_day, 2),
    }
