"""The comparisons of a rule with numbers, and what it would hit with other numbers in their place."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from vettance.quality.wilson import Share, share_of
from vettance.rules.expression import (
    Compare,
    Conditional,
    Expression,
    Literal,
    Logic,
    Not,
    enclosed,
    literal,
    logic,
    negation,
)
from vettance.rules.rule import Rule
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.schema import Type
from vettance.suggestions.candidate_conditions import Mask, bounds_of, shown
from vettance.suggestions.labelled_log import UNKNOWN, UNLABELLED

#: Points of one curve.
POINTS_MAX: Final = 60
_QUANTILE_POINTS: Final = 48
Numbers = npt.NDArray[np.float64]
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class NoThreshold(Exception):
    """No number of a rule can be moved; the text says why, and goes on from the rule's id."""


class NumberComparison(NamedTuple):
    """A comparison of an expression with a number, as `node` of a rule's condition."""

    node: Compare
    value: Expression
    sign: str
    bound: float

    @property
    def text(self) -> str:
        """The comparison as the rule says it."""
        return self.node.text


class SwayedEvent(NamedTuple):
    """An event about which a comparison decides: its value, and if it is reviewed when the rule fires or not.

    `fires_on` says whether the rule fires where the comparison holds, or where it does not. `truth` is as in
    `LabelledLog`; `weight` is how many events this one stands for.
    """

    value: float
    fires_on: bool
    truth: int
    weight: float
    review_if: bool
    review_if_not: bool


class CurveBase(NamedTuple):
    """What does not hang on the number: hits, those known to be fraud and legitimate, and all reviews."""

    fraud: int
    legit: float
    presumed: float
    unknown: float
    reviews: float
    frauds: int
    days: float


class CurvePoint(NamedTuple):
    """What the rule does with one number."""

    value: float
    hits: float
    fraud: int
    legit: float
    presumed: float
    precision: Share | None
    recall: Share | None
    reviews_per_day: float


class RuleComparisons(NamedTuple):
    """A rule whose condition compares with numbers that could be others."""

    rule: Rule
    expression: Expression
    comparisons: list[NumberComparison]


def find_movable_rule(rule_id: str | None, rules: Iterable[Rule], reader: ConditionReader) -> RuleComparisons:
    """Return one of some rules with its comparisons. Raises `NoThreshold`."""
    rule = next((one for one in rules if one.id == rule_id), None)
    if rule is None:
        raise NoThreshold("is no rule of the rules in force")
    expression = reader.read(rule.when)
    comparisons = [] if expression is None else comparisons_of(expression)
    if expression is None or not comparisons:
        raise NoThreshold("compares nothing with a number that could be moved")
    return RuleComparisons(rule, expression, comparisons)


def comparisons_of(expression: Expression) -> list[NumberComparison]:
    """Return the comparisons with a number that decide about a condition, in order."""
    found: dict[str, NumberComparison] = {}
    for one in _comparisons(expression):
        found.setdefault(one.text, one)
    return list(found.values())


def _comparisons(expression: Expression) -> Iterator[NumberComparison]:
    match expression:
        case Logic():
            for part in expression.parts:
                yield from _comparisons(part)
        case Not():
            yield from _comparisons(expression.inner)
        case Conditional():
            for part in (expression.test, expression.then, expression.other):
                if part.type is Type.BOOL:
                    yield from _comparisons(part)
        case Compare() if expression.sign in _MIRRORED:
            if _is_number(expression.right) and not isinstance(expression.left, Literal):
                assert isinstance(expression.right, Literal)
                bound = float(expression.right.value)
                yield NumberComparison(expression, expression.left, expression.sign, bound)
            elif _is_number(expression.left) and not isinstance(expression.right, Literal):
                assert isinstance(expression.left, Literal)
                sign, bound = _MIRRORED[expression.sign], float(expression.left.value)
                yield NumberComparison(expression, expression.right, sign, bound)


def _is_number(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type is Type.NUMBER


def with_part(expression: Expression, node: Compare, instead: Expression) -> Expression:
    """Return a condition in which another expression takes the place of a comparison."""
    if isinstance(expression, Compare) and expression.text == node.text:
        return instead
    match expression:
        case Logic():
            parts = tuple(with_part(part, node, instead) for part in expression.parts)
            return logic(parts, both=expression.both)
        case Not():
            return negation(with_part(expression.inner, node, instead))
        case Conditional():
            test, then, other = (
                with_part(part, node, instead)
                for part in (expression.test, expression.then, expression.other)
            )
            text = f"{enclosed(then)} if {enclosed(test)} else {enclosed(other)}"
            return msgspec.structs.replace(expression, test=test, then=then, other=other, text=text)
    return expression


def with_bound(expression: Expression, comparison: NumberComparison, bound: float) -> str:
    """Return the text of a condition with another number in a comparison."""
    number = literal(int(bound) if bound == int(bound) else bound)
    text = f"{enclosed(comparison.value)} {comparison.sign} {number.text}"
    node = comparison.node
    return with_part(expression, node, msgspec.structs.replace(node, text=text, right=number)).text


def curve(comparison: NumberComparison, swayed: Sequence[SwayedEvent], base: CurveBase) -> list[CurvePoint]:
    """Return what the rule does for a range of numbers, the present one among them, in rising order."""
    if not swayed:
        return []
    values = np.array([one.value for one in swayed])
    truths = np.array([one.truth for one in swayed])
    weights = np.array([one.weight for one in swayed])
    fires_on = np.array([one.fires_on for one in swayed])
    review_if = np.array([one.review_if for one in swayed])
    review_if_not = np.array([one.review_if_not for one in swayed])
    known = truths != UNKNOWN
    points = []
    for bound in _bounds(values, truths == 1, comparison.bound):
        fires = _holds(comparison.sign, values, bound) == fires_on
        fraud = int((fires & (truths == 1)).sum()) + base.fraud
        legit = float(weights[fires & (truths == 0)].sum()) + base.legit
        presumed = float(weights[fires & known & (truths == UNLABELLED)].sum()) + base.presumed
        unknown = float(weights[fires & ~known].sum()) + base.unknown
        reviews = float(weights[np.where(fires, review_if, review_if_not)].sum()) + base.reviews
        points.append(
            CurvePoint(
                value=bound,
                hits=fraud + legit + presumed + unknown,
                fraud=fraud,
                legit=legit,
                presumed=presumed,
                precision=share_of(fraud, fraud + legit + presumed),
                recall=share_of(fraud, base.frauds),
                reviews_per_day=reviews / base.days,
            )
        )
    return points


def _holds(sign: str, values: Numbers, bound: float) -> Mask:
    match sign:
        case ">=":
            return values >= bound
        case ">":
            return values > bound
        case "<=":
            return values <= bound
        case _:
            return values < bound


def _bounds(values: Numbers, fraud: Mask, present: float) -> list[float]:
    quantiles = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILE_POINTS)))
    if (values == np.floor(values)).all():
        quantiles = np.unique(np.round(quantiles))
    found = {float(shown(float(f"{one:.3g}"))) for one in quantiles}
    found |= set(bounds_of(values[fraud].astype(np.float32), np.zeros(0, dtype=np.float32)))
    rising = sorted(found)
    step = max(len(rising) // (POINTS_MAX - 1), 1)
    return sorted({*rising[::step], present})


def best_point(
    points: Sequence[CurvePoint], precision: float | None, load: float | None
) -> CurvePoint | None:
    """Return the point of the highest recall that reaches a precision, or stays within reviews a day."""
    fit = [
        one
        for one in points
        if (precision is None or (one.precision is not None and one.precision.value >= precision))
        and (load is None or one.reviews_per_day <= load)
    ]
    if not fit or (precision is None and load is None):
        return None
    return max(fit, key=lambda one: (one.fraud, -one.hits))
