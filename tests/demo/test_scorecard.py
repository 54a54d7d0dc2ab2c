"""The scorecard: counts, quantiles and average precision are what their definitions say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.demo.scorecard import Scorecard, quantiles_ms
from vettance.generate.generated_event import ORDINARY

OUTCOMES = st.tuples(st.booleans(), st.integers(0, 100))


def card_of(rows: list[tuple[bool, int]]) -> Scorecard:
    card = Scorecard()
    for fraud, score in rows:
        decision = "approve" if score < 60 else "review" if score < 85 else "deny"
        card.note(
            "takeover" if fraud else ORDINARY, "case_1" if fraud else "", decision, score, ["CODE"], 0.001
        )
    return card


@given(st.lists(OUTCOMES, min_size=1, max_size=60))
def test_average_precision_is_the_area_under_the_stepwise_curve(rows: list[tuple[bool, int]]) -> None:
    frauds = sum(fraud for fraud, _ in rows)
    expected, recall_before = 0.0, 0.0
    for bound in sorted({score for _, score in rows}, reverse=True):
        alarms = [fraud for fraud, score in rows if score >= bound]
        recall = sum(alarms) / frauds if frauds else 0.0
        expected += (recall - recall_before) * sum(alarms) / len(alarms)
        recall_before = recall
    found = card_of(rows).average_precision()
    if not frauds:
        assert found is None
    else:
        assert found == pytest.approx(expected)


def test_a_perfect_score_has_average_precision_one_and_a_constant_one_the_share_of_fraud() -> None:
    assert card_of([(True, 90), (False, 10), (False, 20)]).average_precision() == 1
    assert card_of([(True, 50), (False, 50), (False, 50), (False, 50)]).average_precision() == 0.25


@given(st.lists(OUTCOMES, max_size=60))
def test_every_decision_is_counted_once(rows: list[tuple[bool, int]]) -> None:
    card = card_of(rows)
    counted = sum(card.of(d, fraud=f) for d in ("approve", "review", "deny") for f in (True, False))
    assert counted == card.decided == len(rows)
    assert card.reasons["CODE"] == len(rows)


def test_a_case_is_stopped_when_one_of_its_events_is() -> None:
    card = Scorecard()
    for case, decision in (("a", "approve"), ("a", "review"), ("a", "approve"), ("b", "approve")):
        card.note("takeover", case, decision, 0, [], 0.001)
    (row,) = card.caught()
    assert (row.events, row.reviewed, row.blocked, row.cases, row.cases_stopped) == (4, 1, 0, 2, 1)


def test_precision_counts_what_was_stopped_only() -> None:
    card = card_of([(True, 90), (False, 70), (False, 10), (True, 5)])
    assert card.precision(blocked_only=False) == 0.5
    assert card.precision(blocked_only=True) == 1
    assert card_of([(False, 0)]).precision(blocked_only=False) is None


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_the_smallest_value_that_covers_its_part(values: list[float], part: float) -> None:
    (found,) = quantiles_ms(values, part)
    at_most = sum(value * 1000 <= found for value in values)
    below = sum(value * 1000 < found for value in values)
    assert at_most >= math.ceil(part * len(values))
    assert below < math.ceil(part * len(values))
