"""Fits the scores of rules to labels: never negative, in steps of five, as they are where little is known.

A logistic regression of fraud on the rules that acted, with the scores as its weights, each held to its
present value by a normal prior (MAP estimate). No score is negative, so that a further hit never makes an
event less suspicious. Solved by coordinate-wise Newton steps clipped to the bounds.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

SCORE_MAX: Final = 100.0
STEP: Final = 5
#: The standard deviation of the prior, in points of score.
_SPREAD: Final = 20.0
_SWEEPS: Final = 60
_SETTLED: Final = 0.05
_SLOPE_BOUNDS: Final = (0.02, 0.3)
_NEWTON_STEPS: Final = 50

Numbers = npt.NDArray[np.float64]


class FiredGroups(NamedTuple):
    """Events with the same rules, together: which acted (1 or 0), how many events, and how many are fraud."""

    acted: Numbers
    events: Numbers
    frauds: Numbers


def fit_scores(groups: FiredGroups, scores: Numbers) -> Numbers:
    """Return the scores that labels speak for, given the present ones."""
    if not len(groups.events):
        return scores
    fitted = scores.copy()
    base, slope = _calibrate(groups.acted @ scores, groups)
    total = groups.acted @ fitted
    members = [np.flatnonzero(groups.acted[:, place]) for place in range(len(scores))]
    for _ in range(_SWEEPS):
        moved = 0.0
        for place, rows in enumerate(members):
            if not len(rows):
                continue
            chance = _chance(base + slope * total[rows])
            gradient = slope * float((groups.events[rows] * chance - groups.frauds[rows]).sum())
            gradient += (fitted[place] - scores[place]) / _SPREAD**2
            bend = slope**2 * float((groups.events[rows] * chance * (1 - chance)).sum()) + 1 / _SPREAD**2
            step = float(np.clip(gradient / bend, -_SPREAD, _SPREAD))
            value = min(max(fitted[place] - step, 0.0), SCORE_MAX)
            total[rows] += value - fitted[place]
            moved = max(moved, abs(value - fitted[place]))
            fitted[place] = value
        base = _refit_base(base, slope, total, groups)
        if moved < _SETTLED:
            break
    rounded: Numbers = np.clip(np.round(fitted / STEP) * STEP, 0.0, SCORE_MAX)
    return rounded


def _chance(odds: Numbers) -> Numbers:
    found: Numbers = 1 / (1 + np.exp(-np.clip(odds, -40, 40)))
    return found


def _calibrate(total: Numbers, groups: FiredGroups) -> tuple[float, float]:
    """Return what a score says today: the log-odds of fraud at 0 and for each point (Platt, 1999)."""
    base, slope = -5.0, 0.08
    for _ in range(_NEWTON_STEPS):
        chance = _chance(base + slope * total)
        error = groups.events * chance - groups.frauds
        bend = groups.events * chance * (1 - chance) + 1e-9
        gradient = np.array([error.sum(), (error * total).sum()])
        hessian = np.array(
            [[bend.sum(), (bend * total).sum()], [(bend * total).sum(), (bend * total * total).sum()]]
        )
        step = np.clip(np.linalg.solve(hessian + 1e-6 * np.eye(2), gradient), -1.0, 1.0)
        base, slope = base - float(step[0]), float(np.clip(slope - step[1], *_SLOPE_BOUNDS))
        if float(np.abs(step).max()) < 1e-6:
            break
    return base, slope


def _refit_base(base: float, slope: float, total: Numbers, groups: FiredGroups) -> float:
    for _ in range(5):
        chance = _chance(base + slope * total)
        bend = float((groups.events * chance * (1 - chance)).sum()) + 1e-9
        base -= float(np.clip(float((groups.events * chance - groups.frauds).sum()) / bend, -1.0, 1.0))
    return base
