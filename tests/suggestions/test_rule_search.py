"""What is found in made-up columns: planted rules, curves, and scores that are never negative."""

import numpy as np
import pytest

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.rules.language import check
from vettance.rules.schema import Type
from vettance.suggestions.candidate_conditions import CandidateCondition, condition_table
from vettance.suggestions.logged_values import facts_reader
from vettance.suggestions.rule_search import LENGTH_MAX, search_rules
from vettance.suggestions.threshold_curve import (
    CurveBase,
    SwayedEvent,
    best_point,
    comparisons_of,
    curve,
    with_bound,
)
from vettance.suggestions.value_columns import ColumnCollector, ValueSource
from vettance.suggestions.weight_fit import FiredGroups, fit_scores
from vettance.wire.payload import encode

AMOUNT, CHANNEL, NOISE = (
    ValueSource("metadata.amount", Type.NUMBER),
    ValueSource("metadata.channel", Type.TEXT),
    ValueSource("hour", Type.NUMBER),
)


def planted(count: int = 6_000) -> tuple[ColumnCollector, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Rows of which those of small amounts at a kiosk are fraud; neither alone says much."""
    draw = np.random.default_rng(3)
    collector = ColumnCollector([AMOUNT, CHANNEL, NOISE])
    rows = [
        (
            float(draw.integers(1, 400)),
            ("web", "app", "kiosk")[draw.integers(0, 3)],
            int(draw.integers(0, 24)),
        )
        for _ in range(count)
    ]
    collector.take(rows)
    return collector, np.array([amount < 20 and channel == "kiosk" for amount, channel, _ in rows])


def test_a_planted_rule_is_found_with_all_that_it_takes() -> None:
    collector, frauds = planted()
    table = condition_table(collector.columns(), frauds, frauds)
    best = search_rules(table, 1.0)[0]
    abouts = {table.conditions[place].source.text for each in best.alternatives for place in each}
    assert {"metadata.amount", "metadata.channel"} <= abouts
    assert best.missed >= 0.9 * frauds.sum()
    assert best.rest <= 0.1 * best.missed
    assert all(sum(map(len, one.alternatives)) <= LENGTH_MAX for one in search_rules(table, 1.0))


def test_nothing_is_found_where_fraud_looks_like_the_rest() -> None:
    collector, _ = planted()
    frauds = np.random.default_rng(9).random(6_000) < 0.02
    assert search_rules(condition_table(collector.columns(), frauds, frauds), 1.0) == []


def test_as_many_names_as_an_event_may_have_are_read_at_once() -> None:
    names = [f"metadata.{'long_' * 6}{number}" for number in range(150)]
    read = facts_reader([*names, "ip"], fraud_schema())
    sent = {"eventName": "x", "ip": "203.0.113.9", "metadata": {names[149][9:]: 7}}
    assert read(read_event(sent, encode(sent), 1_000)) == (*[None] * 149, 7, "203.0.113.9")


@pytest.mark.parametrize(
    "condition",
    [
        CandidateCondition(AMOUNT, "<=", 12.5),
        CandidateCondition(CHANNEL, "in", listed=("app", 'we"b')),
        CandidateCondition(ValueSource("signals.webdriver", Type.BOOL), "is", 0.0),
        CandidateCondition(ValueSource("metadata.flag", Type.BOOL), "is", 1.0),
        CandidateCondition(
            ValueSource('metadata.amount / max(metadata.amount, by=ip, within="1d")', Type.NUMBER), ">=", 3
        ),
    ],
)
def test_a_condition_reads_in_the_rule_language(condition: CandidateCondition) -> None:
    assert check(condition.text, fraud_schema()).expression.type is Type.BOOL


def test_what_is_unknown_fulfils_nothing() -> None:
    for flag in (0.0, 1.0):
        condition = CandidateCondition(ValueSource("signals.webdriver", Type.BOOL), "is", flag)
        assert condition.holds([None, 1, "true"]).tolist() == [False] * 3
    assert CandidateCondition(AMOUNT, "<=", 5).holds([None, True, "3", 5, 6]).tolist() == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_the_numbers_of_a_rule_are_found_and_replaced() -> None:
    expression = check(
        'event.moves_money and (5 < metadata.amount or not count(hour > 3, by=ip, within="1h") <= 2)',
        fraud_schema(),
    ).expression
    found = comparisons_of(expression)
    assert [(one.sign, one.bound) for one in found] == [(">", 5), ("<=", 2)]
    text = with_bound(expression, found[1], 7)
    assert "<= 7" in text
    assert "hour > 3" in text
    assert check(text, fraud_schema())


def test_a_curve_counts_what_each_number_hits() -> None:
    comparison = comparisons_of(check("metadata.amount > 5", fraud_schema()).expression)[0]
    swayed = [
        SwayedEvent(
            float(value),
            fires_on=True,
            truth=int(value > 6),
            weight=1.0,
            review_if=value > 3,
            review_if_not=False,
        )
        for value in range(1, 11)
    ]
    points = curve(comparison, swayed, CurveBase(0, 0.0, 0.0, 0.0, 0.0, 4, 2.0))
    at = {one.value: one for one in points}
    assert (at[5].hits, at[5].fraud, at[5].reviews_per_day) == (5, 4, 2.5)
    assert at[6].precision is not None
    assert at[6].precision.value == 1
    best = best_point(points, 0.9, None)
    assert best is not None
    assert best.value == 6
    assert best_point(points, None, 0.0) == at[10]


def test_scores_follow_labels_and_are_never_negative() -> None:
    acted = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    events, frauds = np.array([400.0, 400.0, 40_000.0]), np.array([396.0, 1.0, 40.0])
    good, bad = fit_scores(FiredGroups(acted, events, frauds), np.array([30.0, 60.0]))
    assert good > 30
    assert 0 <= bad < 60
    assert good % 5 == bad % 5 == 0
