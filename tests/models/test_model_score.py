"""The scale of scores, the reasons in words, and what a model may do to a decision."""

import math
from typing import Any

import pytest

from vettance.decisions.decision import Outcome, decide
from vettance.models.feature_set import Feature
from vettance.models.model_score import (
    TABLE,
    ModelResult,
    contributions_of,
    in_words,
    reasons_of,
    score_of,
    shown,
)
from vettance.rules.ruleset import read_ruleset

RULES = read_ruleset(
    "name: One\nrules:\n  - {id: large, name: Large, when: metadata.amount > 100, score: 20, "
    "reason: LARGE, explanation: A large payment.}\n"
)


def log_odds(probability: float) -> float:
    return math.log(probability / (1 - probability))


@pytest.mark.parametrize(("probability", "score"), TABLE)
def test_the_scale_is_the_published_table(probability: float, score: int) -> None:
    assert score_of(log_odds(probability)) == score


def test_the_score_rises_with_the_probability_and_stays_on_the_scale() -> None:
    scores = [score_of(place / 10) for place in range(-200, 200)]
    assert scores == sorted(scores)
    assert (scores[0], scores[-1]) == (0, 100)
    # Half way between two points in log-odds is half way between their scores.
    assert score_of((log_odds(0.1) + log_odds(0.3)) / 2) in (67, 68)


def said(probability: float, **more: Any) -> ModelResult:
    return ModelResult(
        3, more.pop("mode", "active"), more.pop("may_block", False), log_odds(probability), **more
    )


def test_a_model_in_shadow_changes_nothing() -> None:
    found = decide(RULES, 1, [0], (), model=said(0.9, mode="shadow"))
    assert found == decide(RULES, 1, [0], ())


def test_an_active_model_raises_the_score_and_never_lowers_it() -> None:
    assert decide(RULES, 1, [0], (), model=said(0.1)).score == 60
    assert decide(RULES, 1, [0], (), model=said(0.005)).score == 20


def test_a_model_that_may_not_block_stays_below_blocking() -> None:
    held = decide(RULES, 1, [], (), model=said(0.97))
    assert (held.outcome, held.score) == (Outcome.REVIEW, RULES.thresholds.block - 1)
    assert decide(RULES, 1, [], (), model=said(0.97, may_block=True)).outcome is Outcome.BLOCK


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (2_001_484.6, "time since the last fraud: 23 days"),
        (131_000.0, "time since the last fraud: 1.5 days"),
        (86_400.0, "time since the last fraud: 1 day"),
        (7_200.0, "time since the last fraud: 2 hours"),
        (61.0, "time since the last fraud: 1 minute"),
        (0.0, "time since the last fraud: 0 seconds"),
        (42.0, "time since the last fraud: 42 seconds"),
        (None, "seconds since the last fraud: unknown"),
        (-5.0, "seconds since the last fraud: -5"),
    ],
)
def test_a_time_since_is_said_in_its_unit(value: float | None, said: str) -> None:
    assert in_words("seconds since the last fraud", value) == said
    assert in_words("events within 1h", value) == f"events within 1h: {shown(value)}"


def test_reasons_are_the_families_that_raise_most() -> None:
    features = [
        Feature("a", "x", "amount", "amount against the mean"),
        Feature("b", "x", "amount", "amount"),
        Feature("c", "x", "history", "frauds of this card"),
        Feature("d", "x", "time", "hour"),
    ]
    found = contributions_of(features, [7.5, 300.0, 2.0, None], [0.4, 0.9, 2.0, -1.0])
    assert [one.feature for one in found] == ["c", "d", "b", "a"]
    assert found[1].text == "hour: unknown"
    reasons = reasons_of(features, found)
    assert reasons == (
        ("MODEL_HISTORY", "The model finds this event unusual: frauds of this card: 2."),
        ("MODEL_AMOUNT", "The model finds this event unusual: amount: 300."),
    )
    model = said(0.3, reasons=reasons)
    assert [one.code for one in decide(RULES, 1, [0], (), model=model).reasons] == [
        "LARGE",
        "MODEL_HISTORY",
        "MODEL_AMOUNT",
    ]


def test_a_huge_value_is_written_with_its_power_of_ten() -> None:
    assert [shown(value) for value in (None, 850.0, 7.749, 1e15, 1e308)] == [
        "unknown",
        "850",
        "7.75",
        "1e+15",
        "1e+308",
    ]
