"""Trees are served and explained exactly as the library that trained them does."""

import math
import subprocess
import sys

import lightgbm
import numpy as np
import pytest

from vettance.learning.train import trees_of
from vettance.models.calibration import calibrated
from vettance.models.trees import TreeModel, TreeText, probability_of, text_digest, write_trees

NAMES = [f"f{place}" for place in range(12)]


@pytest.fixture(scope="module", params=[0.0, 0.15], ids=["all known", "some unknown"])
def trained(request: pytest.FixtureRequest) -> tuple[lightgbm.Booster, np.ndarray]:
    draw = np.random.default_rng(3)
    values = draw.normal(size=(4_000, len(NAMES)))
    values[:, 3] = draw.integers(0, 5, len(values))
    values[draw.random(values.shape) < request.param] = np.nan
    known = np.nan_to_num(values)
    fraud = known[:, 0] + known[:, 1] * known[:, 2] + 0.5 * known[:, 3] + draw.normal(size=len(values)) > 2
    settings = {"objective": "binary", "num_leaves": 7, "verbose": -1, "num_threads": 1, "seed": 1}
    return lightgbm.train(settings, lightgbm.Dataset(values, fraud.astype(float)), 120), values[:300]


def rows_of(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in values.tolist()]


def served(booster: lightgbm.Booster) -> TreeModel:
    text = write_trees(trees_of(booster, NAMES))
    return TreeModel(text, text_digest(text))


def test_log_odds_are_those_of_the_library(trained: tuple[lightgbm.Booster, np.ndarray]) -> None:
    booster, values = trained
    model = served(booster)
    expected = booster.predict(values, raw_score=True)
    assert [model.log_odds(row) for row in rows_of(values)] == pytest.approx(expected, abs=1e-9)


def test_contributions_are_shap_values_and_add_up(trained: tuple[lightgbm.Booster, np.ndarray]) -> None:
    booster, values = trained
    model = served(booster)
    expected = booster.predict(values, pred_contrib=True)
    for row, effects in zip(rows_of(values), expected, strict=True):
        found = model.contributions(row)
        assert found == pytest.approx(effects[:-1], abs=1e-9)
        assert sum(found) + model.base == pytest.approx(model.log_odds(row), abs=1e-9)


def test_a_text_that_does_not_fit_its_digest_is_refused() -> None:
    text = write_trees(TreeText(("a",), 0.0, [[1.0, 5]]))
    assert TreeModel(text, text_digest(text)).log_odds([None]) == 1.0
    with pytest.raises(ValueError, match="digest"):
        TreeModel(text.replace("1.0", "2.0"), text_digest(text))


@pytest.mark.parametrize(
    "tree",
    [
        "[]",
        '[0,"__import__",true,[1.0,1],[2.0,1],2]',
        "[7,1.0,true,[1.0,1],[2.0,1],2]",
        "[0,1.0,true,[1.0,1]]",
        '["x",1]',
    ],
)
def test_a_damaged_tree_is_refused(tree: str) -> None:
    text = f'{{"features":["a"],"base":0.0,"trees":[{tree}]}}'
    with pytest.raises(ValueError, match="damaged"):
        TreeModel(text, text_digest(text))


def test_probabilities_are_safe_at_both_ends() -> None:
    assert (probability_of(-800.0), probability_of(0.0), probability_of(800.0)) == (0.0, 0.5, 1.0)


def test_serving_needs_no_library_of_machine_learning() -> None:
    code = "import sys, vettance.server.application; assert 'lightgbm' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_contributions_of_calibrated_log_odds_add_up(trained: tuple[lightgbm.Booster, np.ndarray]) -> None:
    booster, values = trained
    points = ((-3.0, -4.0), (0.0, -1.0), (2.0, 0.5))
    plain, text = served(booster), write_trees(trees_of(booster, NAMES, points))
    model = TreeModel(text, text_digest(text))
    known = [(plain.log_odds(row), model.log_odds(row), row) for row in rows_of(values)]
    for before, after, row in known:
        assert after == calibrated(points, before)
        assert sum(model.contributions(row)) + model.base == pytest.approx(after, abs=1e-9)
    assert sorted(known, key=lambda one: one[0]) == sorted(known, key=lambda one: one[1])


def test_the_line_of_a_calibration_goes_on_beyond_its_points() -> None:
    points = ((-3.0, -4.0), (0.0, -1.0), (2.0, 0.5))
    given = (-5.0, -3.0, -1.5, 0.0, 1.0, 2.0, 3.0)
    assert [calibrated(points, one) for one in given] == [-6.0, -4.0, -2.5, -1.0, -0.25, 0.5, 1.5]
    assert calibrated((), 1.25) == 1.25


@pytest.mark.parametrize("points", ["[[0.0,1.0],[1.0,1.0]]", "[[1.0,0.0],[0.0,1.0]]", "[[0.0,1e300]]"])
def test_a_damaged_calibration_is_refused(points: str) -> None:
    text = f'{{"features":["a"],"base":0.0,"trees":[[1.0,1]],"calibration":{points}}}'
    with pytest.raises(ValueError, match="calibration"):
        TreeModel(text, text_digest(text))


def test_a_model_stored_without_a_calibration_says_what_its_trees_do() -> None:
    text = '{"features":["a"],"base":0.0,"trees":[[1.0,1]]}'
    assert TreeModel(text, text_digest(text)).log_odds([None]) == 1.0
    assert write_trees(TreeText(("a",), 0.0, [[1.0, 1]])) == text
