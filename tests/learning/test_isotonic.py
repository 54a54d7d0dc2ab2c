"""Which log-odds stand for what a model says: monotone, learned in time, and only where it helps."""

import itertools

import numpy as np
import pytest

from vettance.learning.isotonic import (
    FRAUDS_MIN,
    ScoredRows,
    apply,
    chances,
    find_calibration,
    fit_isotonic,
)
from vettance.learning.train import average_precision
from vettance.models.calibration import calibrated


def rows(count: int, stretch: float, shift: float = 0.0, seed: int = 3) -> ScoredRows:
    """Events whose model says `stretch` times the true log-odds, and some more."""
    draw = np.random.default_rng(seed)
    true = draw.normal(-3.0, 1.5, count)
    fraud = (draw.random(count) < chances(true)).astype(float)
    return ScoredRows(true * stretch + shift, fraud, np.ones(count))


def error(one: ScoredRows) -> float:
    """Return the calibration error in ten bins."""
    said = chances(one.log_odds)
    places = np.minimum((said * 10).astype(int), 9)
    parts = [places == place for place in set(places.tolist())]
    return float(sum(abs((said - one.fraud)[part].sum()) for part in parts) / len(said))


def test_what_is_said_too_surely_is_told_better_of_later_events() -> None:
    sure = rows(20_000, 2.0, 1.5)
    points, shown = find_calibration(sure)
    later = sure.log_odds[-len(shown.log_odds) :]
    assert error(shown) < 0.25 * error(shown._replace(log_odds=later))
    fresh = rows(20_000, 2.0, 1.5, seed=4)
    assert error(fresh._replace(log_odds=apply(points, fresh.log_odds))) < 0.01 < error(fresh)


def test_what_is_said_rightly_is_left_alone() -> None:
    right = rows(20_000, 1.0)
    assert find_calibration(right) == ((), right)


def test_few_frauds_calibrate_nothing() -> None:
    sure = rows(20_000, 2.0, 1.5)
    last = int(np.flatnonzero(sure.fraud)[2 * FRAUDS_MIN - 2]) + 1
    few = sure.part(slice(0, last))
    assert find_calibration(few) == ((), few)
    assert find_calibration(sure.part(slice(0, 10 * last)))[0]


def test_the_line_rises_and_keeps_the_order_of_events() -> None:
    sure = rows(5_000, 2.0, 1.5)
    points = fit_isotonic(sure)
    assert len(points) > 3
    for (low, low_meant), (high, high_meant) in itertools.pairwise(points):
        assert low < high
        assert low_meant < high_meant
    said = apply(points, sure.log_odds)
    assert (np.diff(said[np.argsort(sure.log_odds)]) >= 0).all()
    assert average_precision(sure.fraud, said, sure.weight) == pytest.approx(
        average_precision(sure.fraud, sure.log_odds, sure.weight)
    )


def test_equal_scores_are_one_step_and_weights_count() -> None:
    log_odds, fraud = np.array([-2.0, -2.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    points = fit_isotonic(ScoredRows(log_odds, fraud, np.array([30.0, 10.0, 10.0, 30.0])))
    assert [given for given, _ in points] == [-2.0, 1.0]
    # 10 of 40 and 30 of 40, with one row more at what was said.
    said = chances(np.array([meant for _, meant in points]))
    assert said.tolist() == pytest.approx([(10 + 0.1192) / 41, (30 + 0.7311) / 41], abs=1e-4)


def test_steps_without_a_fraud_or_with_nothing_else_stay_finite() -> None:
    log_odds = np.array([-40.0] * 50 + [40.0] * 50)
    fraud = np.array([0.0] * 50 + [1.0] * 50)
    points = fit_isotonic(ScoredRows(log_odds, fraud, np.ones(100)))
    assert np.isfinite(points).all()
    assert calibrated(points, -50.0) < points[0][1] < points[1][1] < calibrated(points, 50.0)
