"""A model is held to the processor time that it takes, not to what other processes of the machine take."""

import time
from collections.abc import Callable
from typing import cast

import pytest

from vettance.models.feature_set import read_feature_set
from vettance.models.serving_model import TIME_NS_MAX, ModelMode, ServingModel
from vettance.models.trees import TreeModel

FEATURES = read_feature_set("amount: metadata.amount")


class _Trees:
    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def log_odds(self, _row: object) -> float:
        self._work()
        return -2.0


def said_after(work: Callable[[], object]) -> str | None:
    trees = cast("TreeModel", _Trees(work))
    model = ServingModel(1, ModelMode.SHADOW, may_block=False, features=FEATURES, trees=trees)
    return model.say(FEATURES.digest, (1.0,)).error


def test_an_answer_that_had_to_wait_for_the_processor_counts() -> None:
    assert said_after(lambda: time.sleep(3 * TIME_NS_MAX / 1e9)) is None


def test_processor_time_is_looked_at_only_once_the_time_has_gone_by(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr("time.thread_time_ns", lambda: looks.append(1) or 0)
    assert said_after(lambda: None) is None
    assert not looks
    assert said_after(lambda: time.sleep(3 * TIME_NS_MAX / 1e9)) is None
    assert len(looks) == 2


def test_a_model_that_computes_too_long_leaves_the_answer_to_the_rules() -> None:
    def compute() -> None:
        until_ns = time.thread_time_ns() + 2 * TIME_NS_MAX
        while time.thread_time_ns() < until_ns:
            pass

    assert said_after(compute) == "the model took too long"
