"""The learning benchmark: labels that are late, missing or wrong, what is measured, and a stream in small."""

import itertools

import pytest

from bench.learning.labelled_stream import (
    LabelledEvent,
    ScoredEvent,
    generated,
    labels_of,
    measure,
    moved_to,
)
from bench.learning.offline_stream import OfflineStream
from vettance.clock import DAY_MS

EVENTS = [
    LabelledEvent(number * DAY_MS // 20, {"metadata": {"amount": 1}}, number % 10 == 0)
    for number in range(1_000)
]


def test_every_label_comes_after_the_delay_in_the_order_of_the_stream() -> None:
    labels = labels_of(EVENTS, delay_days=3)
    assert [one.place for one in labels] == [*range(1_000)]
    assert all(one.at_ms == EVENTS[one.place].at_ms + 3 * DAY_MS for one in labels)
    assert all(one.fraud is EVENTS[one.place].fraud for one in labels)


def test_missing_and_wrong_labels_are_as_many_as_asked_for_and_the_same_each_time() -> None:
    labels = labels_of(EVENTS, missing=0.5, wrong=0.1)
    wrong = [one for one in labels if one.fraud is not EVENTS[one.place].fraud]
    assert len(labels) == 1_000 - 50
    assert sum(one.fraud for one in wrong) == sum(not one.fraud for one in wrong) == 5
    assert labels == labels_of(EVENTS, missing=0.5, wrong=0.1)
    assert labels != labels_of(EVENTS, missing=0.5, wrong=0.1, seed=2)


def test_the_last_days_are_measured_and_what_no_model_scored_counts_as_nothing() -> None:
    scored = [ScoredEvent(0.9 if one.fraud else 0.1, 80 if one.fraud else 0) for one in EVENTS]
    figures = measure(EVENTS, scored, 10)
    assert (figures.events, figures.frauds, figures.without) == (200, 20, 0)
    assert figures.probability == figures.score == 1
    assert figures.calibration_error == pytest.approx(0.1)
    none = measure(EVENTS, [ScoredEvent(None, 0)] * len(EVENTS), 10)
    assert (none.probability, none.without) == (0.1, 200)


def test_a_stream_moved_by_whole_weeks_keeps_hours_and_days_of_the_week() -> None:
    moved = moved_to(EVENTS, 100 * 7 * DAY_MS)
    assert 100 * 7 * DAY_MS - 7 * DAY_MS < moved[-1].at_ms <= 100 * 7 * DAY_MS
    assert {(one.at_ms - before.at_ms) % (7 * DAY_MS) for one, before in zip(moved, EVENTS, strict=True)} == {
        0
    }


def test_a_stream_is_decided_with_features_from_its_first_label_on() -> None:
    events = moved_to(generated(customers=12, days=6, seed=3), 1_790_000_000_000)
    run = OfflineStream(events)
    scored = list(itertools.islice(run.steps(labels_of(events, delay_days=2)), len(events)))
    assert len(scored) == len(events)
    assert run.width > 20
    assert not run.trained  # So few frauds train no model.
