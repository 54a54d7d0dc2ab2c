"""The learning benchmark: labels that are late, missing or wrong, what is measured, and a stream in small."""

import itertools
from pathlib import Path

import pytest

from bench.learning.http_stream import StreamOrder, run_http
from bench.learning.labelled_stream import (
    LabelledEvent,
    ScoredEvent,
    generated,
    labels_of,
    measure,
    moved_to,
)
from bench.learning.offline_stream import OfflineStream
from vettance import clock
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


def test_what_is_caught_at_the_load_of_the_rules_is_counted_by_both_scores() -> None:
    # The rules hold 20 events with 2 of 20 frauds; the model puts half of the frauds before all others.
    last = EVENTS[-200:]
    frauds = [place for place, one in enumerate(last) if one.fraud]
    held = {*frauds[:2], *[place for place, one in enumerate(last) if not one.fraud][:18]}
    scored = [
        ScoredEvent(0.9 if place in frauds[10:] else 0.1, 80 if place in frauds[10:] else 10, place in held)
        for place in range(200)
    ]
    load = measure(last, scored, 10).load
    assert load is not None
    assert load[:3] == (20, 20, 2)
    assert load.both >= 10
    assert measure(last, [one._replace(held=None) for one in scored], 10).load is None


@pytest.mark.slow
def test_a_stream_over_http_is_cut_off_and_says_how_far_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = moved_to(generated(customers=6, days=4, seed=3), clock.now_ms() - DAY_MS)
    scored = run_http(tmp_path / "whole", events[:12], [], StreamOrder())
    assert [one.probability for one in scored] == [None] * 12
    assert not capsys.readouterr().err
    assert len(run_http(tmp_path / "cut", events, [], StreamOrder(seed=2, seconds_max=0))) == 1
    assert "cut off after 1 of" in capsys.readouterr().err
