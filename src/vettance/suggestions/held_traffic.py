"""The traffic that a rule set holds, and by which other numbers of its rules it would hold a wished share."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.decisions.decision import SCORE_MAX, Outcome, decide
from vettance.lists.entry import ListEntry
from vettance.models.model_score import ModelResult
from vettance.rules.rule import RuleSet

#: Each rule keeps so many of what it holds alone or with others, the furthest beyond its number.
KEPT_SHARE_MIN: Final = 0.1
#: Halvings of the share that is kept: the last is below one in a hundred.
_HALVINGS: Final = 7
_DIGITS: Final = 3
_RAISED: Final = (">", ">=")


class HeldEvent(NamedTuple):
    """An event that was held: the rules that acted, and by which values of theirs the movable ones did.

    `values` goes by the places of rules; a rule that fires whatever its number is has none.
    """

    acted: tuple[int, ...]
    values: tuple[tuple[int, float], ...]
    entries: tuple[ListEntry, ...]
    model: ModelResult | None
    fraud: bool


class RuleNumber(NamedTuple):
    """The number of a rule that may be moved: the rule's place, how it compares, and the number in force."""

    place: int
    sign: str
    bound: float

    def holds(self, value: float, bound: float) -> bool:
        """Tell whether a value still passes another number."""
        match self.sign:
            case ">":
                return value > bound
            case ">=":
                return value >= bound
            case "<":
                return value < bound
        return value <= bound

    def keeping(self, values: Sequence[float], count: int) -> float:
        """Return a number that at most so many of the values pass, with few digits; the present if all do."""
        if count >= len(values):
            return self.bound
        upwards = self.sign in _RAISED
        ordered = sorted(values, reverse=upwards)
        edge = ordered[count]  # The first that has to go, and all that are like it.
        if all(each == math.floor(each) for each in values) and self.bound == math.floor(self.bound):
            step = 0.0 if self.sign in (">", "<") else 1.0
            return edge + step if upwards else edge - step
        rounded = _rounded(edge, upwards=upwards)
        if not self.holds(edge, rounded):
            return rounded
        scale = abs(rounded) * 10.0 ** (1 - _DIGITS) or 10.0**-_DIGITS
        return _rounded(rounded + scale if upwards else rounded - scale, upwards=upwards)


def _rounded(value: float, *, upwards: bool) -> float:
    """Return a value with three digits, on the stricter side."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - _DIGITS)
    found = (math.ceil(value / scale - 1e-9) if upwards else math.floor(value / scale + 1e-9)) * scale
    return float(f"{found:.{_DIGITS + 3}g}")


class CalibrationProposal(NamedTuple):
    """What is proposed: numbers by the places of their rules, the least score of a review, what is held then.

    `held` and `frauds` count events that were looked at closely; both of them held by the proposal.
    """

    bounds: Mapping[int, float]
    review: int
    held: int
    frauds: int


class HeldTraffic:
    """Held events, looked at closely, and the scores of those that were let through."""

    def __init__(
        self, ruleset: RuleSet, numbers: Iterable[RuleNumber], events: Sequence[HeldEvent], kept: float
    ) -> None:
        self._ruleset = ruleset
        self._numbers = {one.place: one for one in numbers}
        self._events = events
        #: How many held events each of those stands for, of all kinds.
        self.weight = kept
        self._known: dict[tuple[int, tuple[int, ...], tuple[str, ...], int | None], bool] = {}

    def tighten(self, allowed: float, still: frozenset[int] = frozenset()) -> CalibrationProposal:
        """Return how to hold no more than so many events that are no labelled fraud.

        Every rule whose number can be moved gives up the same share of what it holds, that nearest to its
        number, and as little as does; where that is not enough, the score of a review goes up as well.
        Rules in `still` keep their numbers.
        """
        review = self._ruleset.thresholds.review
        values = self._values(still)
        low, high = KEPT_SHARE_MIN, 1.0
        best = self._tried(self._bounds(values, low), review)
        if best.held * self.weight <= allowed:
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                tried = self._tried(self._bounds(values, middle), review)
                if tried.held * self.weight <= allowed:
                    low, best = middle, tried
                else:
                    high = middle
            return best
        for score in range(review + 1, max(self._ruleset.thresholds.block, review) + 1):
            best = self._tried(best.bounds, score)
            if best.held * self.weight <= allowed:
                break
        return best

    def as_it_is(self) -> CalibrationProposal:
        """Return what is held now."""
        return self._tried({}, self._ruleset.thresholds.review)

    def decisive(self, bounds: Mapping[int, float], review: int) -> dict[int, int]:
        """Count, by rule, the events that are held, are no labelled fraud, and would not be without it."""
        found: dict[int, int] = {}
        for event in self._events:
            if event.fraud:
                continue
            acted = self._acting(event, bounds)
            if not self._is_held(event, acted, review):
                continue
            for place in acted:
                left = tuple(each for each in acted if each != place)
                if not self._is_held(event, left, review):
                    found[place] = found.get(place, 0) + 1
        return found

    def _values(self, still: frozenset[int]) -> dict[int, list[float]]:
        found: dict[int, list[float]] = {}
        for event in self._events:
            if not event.fraud:
                for place, value in event.values:
                    if place not in still:
                        found.setdefault(place, []).append(value)
        return found

    def _bounds(self, values: Mapping[int, Sequence[float]], share: float) -> dict[int, float]:
        found = {}
        for place, those in values.items():
            number = self._numbers[place]
            bound = number.keeping(those, max(1, math.ceil(share * len(those))))
            if bound != number.bound:
                found[place] = bound
        return found

    def _acting(self, event: HeldEvent, bounds: Mapping[int, float]) -> tuple[int, ...]:
        gone = {
            place
            for place, value in event.values
            if place in bounds and not self._numbers[place].holds(value, bounds[place])
        }
        return tuple(place for place in event.acted if place not in gone) if gone else event.acted

    def _tried(self, bounds: Mapping[int, float], review: int) -> CalibrationProposal:
        held = frauds = 0
        for event in self._events:
            if self._is_held(event, self._acting(event, bounds), review):
                frauds += event.fraud
                held += not event.fraud
        return CalibrationProposal(bounds, review, held, frauds)

    def _is_held(self, event: HeldEvent, acted: tuple[int, ...], review: int) -> bool:
        score = event.model.score if event.model is not None else None
        key = review, acted, tuple(one.list_type for one in event.entries), score
        if key not in self._known:
            outcome = decide(
                with_review(self._ruleset, review), 0, acted, event.entries, model=event.model
            ).outcome
            self._known[key] = outcome is not Outcome.ALLOW
        return self._known[key]


def with_review(ruleset: RuleSet, review: int) -> RuleSet:
    """Return a rule set with another least score of a review."""
    if review == ruleset.thresholds.review:
        return ruleset
    thresholds = msgspec.structs.replace(
        ruleset.thresholds, review=review, block=max(review, ruleset.thresholds.block)
    )
    return msgspec.structs.replace(ruleset, thresholds=thresholds)


def lower_review(review: int, passed: Sequence[int], held: float, allowed: float) -> int:
    """Return the least score of a review with which no more than so many events are held.

    `passed` counts, by score, the events that are let through now and that only the score lets through.
    """
    found = review
    for score in range(min(review, SCORE_MAX + 1) - 1, 0, -1):
        held += passed[score]
        if held > allowed:
            break
        if passed[score]:
            found = score
    return found
