"""What a model says of an event, on the scale of scores, and in words."""

import bisect
import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.models.feature_set import FAMILIES, Feature
from vettance.models.trees import log_odds_of, probability_of

#: Probability and score: between them the score is linear in the log-odds, beyond them it goes on so.
TABLE: Final = ((0.01, 20), (0.05, 45), (0.10, 60), (0.30, 75), (0.50, 85), (0.90, 95))
#: The names by which rules ask what the model says.
MODEL_SCORE: Final = "model.score"
MODEL_PROBABILITY: Final = "model.probability"
#: From this score on, reasons are computed.
REASONED_MIN: Final = 30
REASONS_MAX: Final = 3
_SCORE_MAX: Final = 100
#: From here on a value is written with its power of ten: a double has no more digits.
_PLAIN_MAX: Final = 1e15
_EFFECT_MIN: Final = 0.01
_SECONDS: Final = "seconds since "
_SPANS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
#: Below so many of a unit a tenth of it tells something.
_FEW: Final = 10

_POINTS: Final = [(log_odds_of(p), score) for p, score in TABLE]
_SEGMENTS: Final = tuple(itertools.pairwise(_POINTS))
#: Where one segment ends and the next begins.
_ENDS: Final = [high for _, (high, _) in _SEGMENTS[:-1]]


def score_of(log_odds: float) -> int:
    """Return the score (0 to 100) of log-odds."""
    (low, low_score), (high, high_score) = _SEGMENTS[bisect.bisect_left(_ENDS, log_odds)]
    score = low_score + (log_odds - low) * (high_score - low_score) / (high - low)
    return round(min(max(score, 0.0), float(_SCORE_MAX)))


class ModelResult(NamedTuple):
    """What a model said of an event, as the record keeps it. `error` says why it said nothing.

    `reasons` has the codes and sentences that the answer gave; none below a score of 30, nor in shadow.
    """

    version: int
    mode: str
    may_block: bool
    log_odds: float | None
    reasons: tuple[tuple[str, str], ...] = ()
    error: str | None = None

    @property
    def probability(self) -> float | None:
        """The probability of fraud."""
        return None if self.log_odds is None else probability_of(self.log_odds)

    @property
    def score(self) -> int | None:
        """The score from 0 to 100."""
        return None if self.log_odds is None else score_of(self.log_odds)


class Contribution(NamedTuple):
    """What one feature added to the log-odds of an event, in words."""

    feature: str
    value: float | None
    effect: float
    text: str


def contributions_of(
    features: Sequence[Feature], values: Sequence[float | None], effects: Sequence[float]
) -> list[Contribution]:
    """Return the features with an effect, the largest first."""
    found = [
        Contribution(one.name, value, effect, in_words(one.text, value))
        for one, value, effect in zip(features, values, effects, strict=True)
        if effect
    ]
    return sorted(found, key=lambda one: (-abs(one.effect), one.feature))


def reasons_of(features: Sequence[Feature], found: Sequence[Contribution]) -> tuple[tuple[str, str], ...]:
    """Return (code, sentence) of the families that raise the score most, at most three."""
    family_of = {one.name: one.family for one in features}
    families: dict[str, float] = {}
    first: dict[str, Contribution] = {}
    for one in found:
        family = family_of[one.feature]
        families[family] = families.get(family, 0.0) + one.effect
        if one.effect > 0:
            first.setdefault(family, one)
    raised = sorted(
        (name for name in first if families[name] > _EFFECT_MIN), key=lambda name: -families[name]
    )
    return tuple(
        (FAMILIES[name], f"The model finds this event unusual: {first[name].text}.")
        for name in raised[:REASONS_MAX]
    )


def in_words(text: str, value: float | None) -> str:
    """Say a feature with its value: "seconds since …" as the time that it is."""
    if value is None or value < 0 or not text.startswith(_SECONDS):
        return f"{text}: {shown(value)}"
    count, unit = next(((value / one, name) for one, name in _SPANS if value >= one), (value, "seconds"))
    said = f"{count:.1f}".removesuffix(".0") if count < _FEW else f"{count:,.0f}"
    return f"time {text.removeprefix('seconds ')}: {said} {unit.removesuffix('s') if said == '1' else unit}"


def shown(value: float | None) -> str:
    """Write the value of a feature for people."""
    if value is None:
        return "unknown"
    if abs(value) >= _PLAIN_MAX:
        return f"{value:.6g}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
