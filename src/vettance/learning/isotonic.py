"""Isotonic calibration: which log-odds a score of a model means, learned from rows it did not see."""

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.models.calibration import NOT_CALIBRATED, Calibration, calibrated

#: Frauds of the rows that it is learned from, and of the later ones that show whether it helps.
#: A step that rests on fewer is chance.
FRAUDS_MIN: Final = 25
#: Rows that each step counts besides its own, at what the model said: one without a fraud stays finite.
_PRIOR: Final = 1.0
#: No chance is said to be further from a half than these log-odds.
_SURE: Final = 13.0

Numbers = npt.NDArray[np.float64]


class ScoredRows(NamedTuple):
    """Rows in the order of time: the log-odds that a model gave, which were fraud, and their weights."""

    log_odds: Numbers
    fraud: Numbers
    weight: Numbers

    def part(self, place: slice) -> "ScoredRows":
        """Return some of them."""
        return ScoredRows(self.log_odds[place], self.fraud[place], self.weight[place])


class _Step(NamedTuple):
    """Neighbours by log-odds: sums of their weights, and weighted of log-odds, frauds, and chances said."""

    weight: float
    log_odds: float
    frauds: float
    said: float

    @property
    def mean(self) -> float:
        return self.frauds / self.weight

    def with_next(self, other: "_Step") -> "_Step":
        return _Step(*map(sum, zip(self, other, strict=True)))

    def with_prior(self) -> "_Step":
        grown = (self.weight + _PRIOR) / self.weight
        return _Step(
            self.weight * grown,
            self.log_odds * grown,
            self.frauds + _PRIOR * self.said / self.weight,
            self.said * grown,
        )


def fit_isotonic(rows: ScoredRows) -> Calibration:
    """Return the monotone steps that fit best, as points (log-odds given, log-odds meant)."""
    _, group = np.unique(rows.log_odds, return_inverse=True)
    sums = [
        np.bincount(group, rows.weight * value)
        for value in (1.0, rows.log_odds, rows.fraud, chances(rows.log_odds))
    ]
    steps = _pool([_Step(*values) for values in zip(*(one.tolist() for one in sums), strict=True)])
    # Steps of few rows lean on what the model said, which may put their order wrong again.
    return tuple(
        (one.log_odds / one.weight, math.log(one.mean / (1 - one.mean)))
        for one in _pool([one.with_prior() for one in steps])
    )


def _pool(steps: list[_Step]) -> list[_Step]:
    """Join neighbours until the means rise (pool adjacent violators)."""
    found: list[_Step] = []
    for one in steps:
        found.append(one)
        while len(found) > 1 and found[-2].mean >= found[-1].mean:
            last = found.pop()
            found[-1] = found[-1].with_next(last)
    return found


def find_calibration(rows: ScoredRows) -> tuple[Calibration, ScoredRows]:
    """Return a calibration, if one helps, and rows by which the model is measured, with their meaning.

    Learned from the rows with the first half of the frauds, it has to tell the later ones better, which are
    then those that are shown; what serves is learned from all.
    """
    frauds = np.flatnonzero(rows.fraud)
    if len(frauds) < 2 * FRAUDS_MIN:
        return NOT_CALIBRATED, rows
    cut = int(frauds[len(frauds) // 2])
    found, later = fit_isotonic(rows.part(slice(0, cut))), rows.part(slice(cut, None))
    if not _helps(found, later):
        return NOT_CALIBRATED, rows
    return fit_isotonic(rows), later._replace(log_odds=apply(found, later.log_odds))


def _helps(found: Calibration, later: ScoredRows) -> bool:
    """Tell whether it fits rows that came later better, by more than chance: one standard error."""
    gain = losses(later.log_odds, later.fraud) - losses(apply(found, later.log_odds), later.fraud)
    mean = float(np.average(gain, weights=later.weight))
    spread = float(np.sqrt((later.weight**2 * (gain - mean) ** 2).sum()) / later.weight.sum())
    return mean > spread


def apply(found: Calibration, log_odds: Numbers) -> Numbers:
    """Return the log-odds that the scores of many rows mean."""
    return np.array([calibrated(found, one) for one in log_odds.tolist()], dtype=np.float64)


def losses(log_odds: Numbers, fraud: Numbers) -> Numbers:
    """Return the log loss of each row."""
    found: Numbers = np.logaddexp(0.0, np.where(fraud > 0, -log_odds, log_odds))
    return found


def chances(log_odds: Numbers) -> Numbers:
    """Return the probabilities of log-odds."""
    found: Numbers = 1 / (1 + np.exp(-np.clip(log_odds, -_SURE, _SURE)))
    return found
