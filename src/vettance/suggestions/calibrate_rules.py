"""Calibrates rules on the traffic of a tenant: by which numbers they would hold a wished share of it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.decision import SCORE_MAX, Outcome
from vettance.decisions.rule_context import fraud_context
from vettance.deployment.connect import connect_velocity
from vettance.history.backtest import Backtest, DecidedAnew
from vettance.lists.entry import winning_list
from vettance.rules.compiled_value import CompiledValue, compile_value
from vettance.rules.document_layout import REPEAT_MAX
from vettance.rules.expression import AggregateExpression, Expression, Fact, literal, values_in
from vettance.rules.gate import examine
from vettance.rules.rule import Rule, RuleSet, RuleTest
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import write_ruleset
from vettance.rules.schema import Schema
from vettance.suggestions.held_traffic import (
    CalibrationProposal,
    HeldEvent,
    HeldTraffic,
    RuleNumber,
    lower_review,
    with_review,
)
from vettance.suggestions.suggestion_order import SuggestionOrder
from vettance.suggestions.threshold_curve import NumberComparison, comparisons_of, with_bound, with_part
from vettance.wire.payload import JSON, timestamp

#: Held events that are looked at closely, a sample of all; each takes about a kilobyte.
HELD_MAX: Final = 20_000
_SEED: Final = 20_260_101
_DIGITS: Final = 6
_HINTS: Final = 4
#: From here on a number is none that a rule should ask for: whole ones are not exact any more.
_NUMBER_MAX: Final = 2.0**53
#: Free-form members of events: what a number means there, only the tenant's own traffic says.
_FREE: Final = ("metadata.", "custom_fields.", "payload.", "extra.", "customer.metadata.", "device.metadata.")

Advance = Callable[[int], Any]


class NoTraffic(Exception):
    """There are no events to calibrate on."""


class MovableRule(NamedTuple):
    """A rule of which a number may be moved, and what tells whether that number decides."""

    rule: Rule
    number: RuleNumber
    comparison: NumberComparison
    expression: Expression
    value: CompiledValue
    otherwise: CompiledValue

    @property
    def members(self) -> tuple[str, ...]:
        """The free-form members that are compared."""
        read = (one.text for one in values_in(self.comparison.value) if isinstance(one, Fact))
        return tuple(name for name in read if name.startswith(_FREE))

    def value_of(self, known: Mapping[str, Any]) -> float | None:
        """Return the value that is compared; None where the rule fires whatever the number is."""
        value = self.value.compute(*(known.get(name) for name in self.value.names))
        if (
            value is None
            or self.otherwise.compute(*(known.get(name) for name in self.otherwise.names)) is True
        ):
            return None
        return float(value)


def movable_rules(ruleset: RuleSet, schema: Schema) -> list[MovableRule]:
    """Return the active rules that compare something counted, or a free-form member, with a number.

    A comparison with 0 or 1 asks whether there was any. A rule that gives less than a quarter of what a
    review takes is a hint: its number stays, so that scores stay comparable. What an event says of a browser,
    an e-mail address or the like does not hang on a tenant's traffic; those numbers stay as well.
    """
    reader, found = ConditionReader(schema), []
    for place, rule in enumerate(ruleset.running):
        moves = rule.mode == "active" and not _is_hint(rule, ruleset)
        expression = reader.read(rule.when) if moves else None
        one = None if expression is None else next(filter(_may_move, comparisons_of(expression)), None)
        if expression is None or one is None:
            continue
        without = with_part(expression, one.node, literal(value=False))
        found.append(
            MovableRule(
                rule,
                RuleNumber(place, one.sign, one.bound),
                one,
                expression,
                compile_value(one.value),
                compile_value(without),
            )
        )
    return found


def _is_hint(rule: Rule, ruleset: RuleSet) -> bool:
    return rule.outcome is None and rule.score * _HINTS < ruleset.thresholds.review


def _may_move(one: NumberComparison) -> bool:
    if one.bound in (0, 1):
        return False
    return any(
        isinstance(read, AggregateExpression) or (isinstance(read, Fact) and read.text.startswith(_FREE))
        for read in values_in(one.value)
    )


class _Watcher:
    """Looks at every event decided anew, and keeps of it what calibration needs."""

    def __init__(self, active: ActiveRules, movable: Iterable[MovableRule]) -> None:
        self._names = (*active.compiled.fact_names, *active.compiled.plan.aggregate_names)
        self._movable = {one.number.place: one for one in movable}
        self._rng = Random(_SEED)  # noqa: S311  A sample, not a secret.
        self.ordinary = self.frauds = self.held = self.held_frauds = self.seen = 0
        self.fired = [0] * len(active.ruleset.running)
        self.holding = [0] * len(active.ruleset.running)
        #: Of ordinary events that are let through, how many have each score; and of labelled frauds.
        self.passed = [0] * (SCORE_MAX + 1)
        self.passed_frauds = [0] * (SCORE_MAX + 1)
        self.sample: list[HeldEvent] = []

    def look(self, one: DecidedAnew) -> None:
        """Take one event."""
        fraud = one.fraud is True
        self.frauds += fraud
        self.ordinary += not fraud
        is_held = one.now.outcome is not Outcome.ALLOW
        if not fraud:
            for place in one.fired:
                self.fired[place] += 1
                self.holding[place] += is_held
        if is_held:
            self.held_frauds += fraud
            self.held += not fraud
            self._keep(one, fraud)
        elif winning_list(one.entries) is None:
            (self.passed_frauds if fraud else self.passed)[one.now.score] += 1

    def _keep(self, one: DecidedAnew, fraud: bool) -> None:
        """Keep every event, and later each with the same chance (Vitter 1985, algorithm R)."""
        self.seen += 1
        at = len(self.sample) if self.seen <= HELD_MAX else self._rng.randrange(self.seen)
        if at >= HELD_MAX:
            return
        known = dict(zip(self._names, (*one.facts, *one.answers), strict=True))
        values = [
            (place, value)
            for place in one.acted
            if place in self._movable and (value := self._movable[place].value_of(known)) is not None
        ]
        event = HeldEvent(tuple(one.acted), tuple(values), tuple(one.entries), one.model, fraud)
        self.sample[at : at + 1] = [event]


async def calibrate_rules(
    store: Store, tenant: str, active: ActiveRules, schema: Schema, order: SuggestionOrder, advance: Advance
) -> JSON:
    """Decide a span anew by the rules in force, and propose numbers that hold a wished share of it.

    What is labelled as fraud is not ordinary traffic and does not count. Raises `NoTraffic`.
    """
    assert order.hold is not None
    movable = movable_rules(active.ruleset, schema)
    watcher = _Watcher(active, movable)
    run = Backtest(store, tenant, active, connect_velocity, look=watcher.look, schema=schema)
    await run.run((order.from_ms, order.to_ms), lambda _: None, advance)
    if not watcher.ordinary:
        raise NoTraffic("there are no events of this time")
    allowed = math.floor(order.hold * watcher.ordinary)
    held = HeldTraffic(
        active.ruleset,
        [one.number for one in movable],
        watcher.sample,
        watcher.seen / max(len(watcher.sample), 1),
    )
    found, proposed = _propose(active.ruleset, movable, held, watcher, allowed)
    return {
        **_result(active.ruleset, movable, held, watcher, found, proposed, allowed),
        "hold": order.hold,
        "skipped": run.skipped,
        **_span(run),
    }


def _propose(
    ruleset: RuleSet,
    movable: list[MovableRule],
    held: HeldTraffic,
    watcher: _Watcher,
    allowed: int,
) -> tuple[CalibrationProposal, RuleSet]:
    """Return what is proposed, and the rules with it; a rule keeps a number that its tests need."""
    review = ruleset.thresholds.review
    if watcher.held <= allowed:
        score = lower_review(review, watcher.passed, watcher.held, allowed)
        return held.as_it_is()._replace(review=score), with_review(ruleset, score)
    still: frozenset[int] = frozenset()
    while True:
        found = held.tighten(allowed, still)
        if huge := {place for place, bound in found.bounds.items() if not abs(bound) < _NUMBER_MAX}:
            still |= huge
            continue
        proposed = with_review(_with_bounds(ruleset, movable, found.bounds), found.review)
        refused = _refused(proposed, movable, found.bounds)
        if not refused:
            return found, proposed
        still |= refused


def _with_bounds(ruleset: RuleSet, movable: list[MovableRule], bounds: Mapping[int, float]) -> RuleSet:
    changed = {}
    for one in movable:
        bound = bounds.get(one.number.place)
        if bound is not None:
            when = with_bound(one.expression, one.comparison, bound)
            ratio = bound / one.number.bound
            tests = tuple(_stretched(test, one.members, ratio) for test in one.rule.tests)
            changed[one.rule.id] = msgspec.structs.replace(one.rule, when=when, tests=tests)
    return msgspec.structs.replace(ruleset, rules=tuple(changed.get(rule.id, rule) for rule in ruleset.rules))


def _stretched(test: RuleTest, members: Sequence[str], ratio: float) -> RuleTest:
    """Return a test that reaches a greater number: by more events before it, or larger members."""
    if not test.fires or ratio <= 1:
        return test
    given = tuple(
        msgspec.structs.replace(
            one,
            repeat=min(math.ceil(one.repeat * ratio), REPEAT_MAX),
            every_ms=math.floor(one.every_ms / ratio),
        )
        if one.repeat > 1
        else one
        for one in test.given
    )
    event = test.event
    for member in members:
        event = _enlarged(event, member.split("."), ratio)
    return msgspec.structs.replace(test, given=given, event=event)


def _enlarged(event: Mapping[str, Any], path: Sequence[str], ratio: float) -> JSON:
    """Return an event in which the number at a path is greater, where there is one."""
    inner = event.get(path[0])
    if len(path) > 1 and isinstance(inner, dict):
        return {**event, path[0]: _enlarged(inner, path[1:], ratio)}
    if len(path) > 1 or isinstance(inner, bool) or not isinstance(inner, int | float):
        return dict(event)
    larger = inner * ratio
    return {**event, path[0]: math.ceil(larger) if abs(larger) < _NUMBER_MAX else inner}


def _refused(proposed: RuleSet, movable: list[MovableRule], bounds: Mapping[int, float]) -> frozenset[int]:
    """Return the places of the rules that were moved and that no longer pass their own tests."""
    if not bounds:
        return frozenset()
    examined = examine(write_ruleset(proposed), fraud_context(connect_velocity))
    failed = {one.rule for one in examined.results if one.miss is not None}
    failed |= {fault.where.removeprefix("rule ").partition(":")[0] for fault in examined.errors}
    return frozenset(one.number.place for one in movable if one.rule.id in failed) & bounds.keys()


def _result(
    ruleset: RuleSet,
    movable: list[MovableRule],
    held: HeldTraffic,
    watcher: _Watcher,
    found: CalibrationProposal,
    proposed: RuleSet,
    allowed: int,
) -> JSON:
    review = ruleset.thresholds.review
    after, frauds = found.held * held.weight, round(found.frauds * held.weight)
    if found.review < review:
        after = watcher.held + sum(watcher.passed[found.review : review])
        frauds = watcher.held_frauds + sum(watcher.passed_frauds[found.review : review])
    before_of = held.decisive({}, review)
    after_of = held.decisive(found.bounds, max(found.review, review))
    numbers = {one.number.place: one for one in movable}

    def share(count: float) -> float:
        return round(count / watcher.ordinary, _DIGITS)

    return {
        "kind": "calibration",
        "events": watcher.ordinary + watcher.frauds,
        "held": {"before": share(watcher.held), "after": share(after)},
        "reached": after <= allowed,
        "frauds": {"events": watcher.frauds, "before": watcher.held_frauds, "after": frauds},
        "review": {"current": review, "suggested": found.review},
        "rules": [
            {
                "ruleId": rule.id,
                "fired": share(watcher.fired[place]),
                "held": share(watcher.holding[place]),
                "alone": share(before_of.get(place, 0) * held.weight),
                "aloneAfter": share(after_of.get(place, 0) * held.weight),
                "number": _number_out(numbers.get(place), found.bounds.get(place)),
            }
            for place, rule in enumerate(ruleset.running)
            if rule.mode == "active"
        ],
        "draft": write_ruleset(proposed) if proposed != ruleset else None,
    }


def _span(run: Backtest) -> JSON:
    """Write the days of the events."""
    days = [day for day, *_ in run.days]
    return {"from": timestamp(min(days) * 1000), "to": timestamp(max(days) * 1000 + DAY_MS)}


def _number_out(one: MovableRule | None, bound: float | None) -> JSON | None:
    """Write the number of a rule that can be moved, and the one proposed."""
    if one is None:
        return None
    return {
        "expression": one.comparison.value.text,
        "sign": one.comparison.sign,
        "current": one.number.bound,
        "suggested": one.number.bound if bound is None else bound,
        "when": one.rule.when if bound is None else with_bound(one.expression, one.comparison, bound),
    }
