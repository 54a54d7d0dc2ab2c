"""When a model is trained: by how many labels of fraud came since, by the day, and when it was asked for."""

import pytest

from vettance.clock import DAY_MS
from vettance.learning.keep_learning import is_training_due
from vettance.models.sql import ModelSetting

NOW_MS = 100 * DAY_MS


def setting(trained_frauds: int, days_ago: float = 0.1, *, wanted: bool = False) -> ModelSetting:
    return ModelSetting(
        "t", trained_frauds=trained_frauds, trained_at_ms=int(NOW_MS - days_ago * DAY_MS), wanted=wanted
    )


@pytest.mark.parametrize(
    ("known", "frauds", "due"),
    [
        (ModelSetting("t"), 49, False),
        (ModelSetting("t"), 50, True),
        (setting(50), 74, False),
        (setting(50), 75, True),
        (setting(1_000), 1_099, False),
        (setting(1_000), 1_100, True),
        (setting(50, days_ago=1.1), 51, True),
        (setting(50, days_ago=1.1), 50, False),
        (setting(0, wanted=True), 3, True),
    ],
)
def test_when_a_model_is_trained(known: ModelSetting, frauds: int, due: bool) -> None:
    assert is_training_due(known, frauds, NOW_MS) is due
