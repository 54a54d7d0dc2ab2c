"""What a model is trained on, and that the same rows give the same model."""

import random
from array import array

import pytest

from vettance.clock import DAY_MS
from vettance.feedback.maturity import timing_of
from vettance.learning.drift import find_drift
from vettance.learning.train import average_precision, np, train
from vettance.learning.training_rows import (
    DecidedRow,
    RowCollector,
    StandingLabel,
    TooFewLabels,
    TrainingRow,
    standing_labels,
)
from vettance.models.trees import write_trees

NAMES = ("amount", "frauds", "noise")


def rows(frauds: int, count: int = 3_000) -> list[TrainingRow]:
    draw = random.Random(5)
    made = []
    for number in range(count):
        fraud = number % (count // frauds) == 0
        values = (draw.gauss(200 if fraud else 60, 40), float(fraud and draw.random() < 0.7), draw.random())
        made.append(TrainingRow(number * 60_000, array("d", values).tobytes(), fraud, 1.0, 5, None))
    return made


def test_the_same_rows_give_the_same_model_byte_for_byte() -> None:
    first, second = (train(rows(60), NAMES, None) for _ in range(2))
    assert write_trees(first.trees) == write_trees(second.trees)
    assert first.card == second.card
    assert first.is_better
    assert first.card["averagePrecision"] > 0.8 > first.card["averagePrecisionBefore"]


def test_another_seed_gives_another_model() -> None:
    first, second = (train(rows(60), NAMES, None, seed=seed) for seed in (1, 2))
    assert write_trees(first.trees) != write_trees(second.trees)


def test_too_few_frauds_train_no_model() -> None:
    with pytest.raises(TooFewLabels, match="49 labelled frauds were decided since features are kept"):
        train(rows(50, 2_450)[1:], NAMES, None)


def test_frauds_alone_train_no_model() -> None:
    made = rows(60)
    frauds, legit = ([row for row in made if row.fraud is fraud] for fraud in (True, False))
    said = "9 decisions since features are kept are legitimate, by a label or by their age, 10 are needed"
    with pytest.raises(TooFewLabels, match=said):
        train([*legit[:9], *frauds], NAMES, None)
    # Enough are legitimate, but none of the newest, by which the model would be measured.
    assert not train([*legit[:10], *frauds], NAMES, None).is_better
    # Nor does one come into service whose candidate knew nothing but fraud: half of the newest are.
    newest = [row for pair in zip(frauds[30:], legit, strict=False) for row in pair]
    assert not train([*frauds[:30], *newest], NAMES, None).is_better


def test_a_model_that_is_worse_than_what_serves_is_not_promoted() -> None:
    known = [
        row._replace(log_odds=4.0 if row.fraud else -4.0, features=array("d", [1.0, 1.0, 1.0]).tobytes())
        for row in rows(60)
    ]
    assert not train(known, NAMES, 1).is_better


def test_average_precision_counts_equal_scores_together() -> None:
    weight = np.ones(4)
    assert average_precision(np.array([1.0, 0, 0, 0]), np.zeros(4), weight) == 0.25
    assert average_precision(
        np.array([1.0, 0, 1, 0]), np.array([0.9, 0.8, 0.7, 0.1]), weight
    ) == pytest.approx((1 + 2 / 3) / 2)


def collected(labels: dict[str, StandingLabel], *decided: DecidedRow) -> list[bool]:
    collector = RowCollector(labels, timing_of(30 * DAY_MS, [DAY_MS]))
    for one in decided:
        collector.take(one)
    return [row.fraud for row in collector.rows()]


def decided(event: str, day: float, *, denied: bool = False) -> DecidedRow:
    return DecidedRow(event, int(day * DAY_MS), (1.0,), denied, 0, None)


def test_what_nobody_labelled_is_legitimate_once_it_is_old_and_was_not_denied() -> None:
    # The maturity is seven days at least, though labels take one.
    asked = {"asked": StandingLabel(fraud=False, at_ms=0)}
    events = decided("old", 22), decided("new", 24), decided("asked", 24), decided("stopped", 2, denied=True)
    assert collected(asked, *events) == [False, False]
    labels = {"new": StandingLabel(fraud=True, at_ms=0), "stopped": StandingLabel(fraud=True, at_ms=0)}
    assert collected(labels, decided("new", 24), decided("stopped", 2, denied=True)) == [True, True]


@pytest.mark.parametrize(
    ("old_frauds", "labelled_legits", "rows"),
    [
        # Of 100 young events 20 are labelled, all of them frauds: that time is left out.
        (50, 0, 50 + 300),
        # As soon as half are labelled, what was labelled counts.
        (50, 30, 50 + 300 + 20 + 30),
        # With too few frauds before that, what nobody labelled for a day, as labels take, counts as well.
        (49, 0, 49 + 300 + 100),
    ],
)
def test_time_in_which_hardly_anything_but_fraud_is_labelled_is_left_out(
    old_frauds: int, labelled_legits: int, rows: int
) -> None:
    fraud, legit = StandingLabel(fraud=True, at_ms=0), StandingLabel(fraud=False, at_ms=0)
    labels = {f"old{number}": fraud for number in range(old_frauds)}
    labels |= {f"young{number}": fraud for number in range(20)}
    labels |= {f"young{number}": legit for number in range(20, 20 + labelled_legits)}
    old = [decided(f"old{number}", 1 + number / 1_000) for number in range(old_frauds + 300)]
    young = [decided(f"young{number}", 25 + number / 1_000) for number in range(100)]
    assert len(collected(labels, *old, *young)) == rows


def test_frauds_that_were_labelled_at_once_long_after_are_learned_from() -> None:
    # Sixty frauds of the last ten days are all labelled today: half of the labels took over five days.
    fraud = StandingLabel(fraud=True, at_ms=30 * DAY_MS)
    labels = {f"e{number}": fraud for number in range(0, 600, 10)}
    events = [decided(f"e{number}", 20 + number / 60) for number in range(600)]
    delays = [30 * DAY_MS - one.occurred_at_ms for one in events[::10]]
    collector = RowCollector(labels, timing_of(30 * DAY_MS, delays))
    for one in events:
        collector.take(one)
    assert [row.fraud for row in collector.rows()] == [number % 10 == 0 for number in range(600)]


def test_the_label_that_holds_in_the_end_counts() -> None:
    log = [("a", 1, 1, 10), ("b", 1, 1, 11), ("a", 1, -1, 10), ("a", 0, 1, 12)]
    found = standing_labels(log)
    assert (found["a"].fraud, found["b"].fraud) == (False, True)


def test_many_rows_are_sampled_with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vettance.learning.training_rows.ROWS_MAX", 300)
    monkeypatch.setattr("vettance.learning.training_rows.NEWEST_MAX", 200)
    labels = {f"e{number}": StandingLabel(number % 100 == 0, 0) for number in range(5_000)}
    collector = RowCollector(labels, timing_of(30 * DAY_MS, []))
    for number in range(5_000):
        collector.take(decided(f"e{number}", number / 1000))
    found = collector.rows()
    assert len(found) <= 300
    assert sum(row.fraud for row in found) == 50
    assert sum(row.weight for row in found) == pytest.approx(5_000, rel=0.01)
    assert [row.occurred_at_ms for row in found] == sorted(row.occurred_at_ms for row in found)


def test_drift_is_nothing_for_what_was_trained_on_and_large_for_other_values() -> None:
    made = rows(60)
    card = train(made, NAMES, None).card
    values = [tuple(array("d", row.features)) for row in made]
    same = {one.name: one for one in find_drift(card["distribution"], NAMES, values)}
    assert same["amount"].psi < 0.01
    other = find_drift(card["distribution"], NAMES, [(one[0] * 3, one[1], None) for one in values])
    assert {one.name for one in other if one.is_warned} == {"amount", "noise"}


def test_a_model_of_many_frauds_that_tells_later_ones_too_surely_is_calibrated() -> None:
    # What tells frauds in the older rows tells half as many in the newer ones.
    made = rows(600, 12_000)
    draw = random.Random(6)
    blurred = [
        row if draw.random() < 0.4 or number < 9_000 else row._replace(fraud=False)
        for number, row in enumerate(made)
    ]
    trained = train(blurred, NAMES, None)
    assert trained.card["calibrated"]
    assert trained.trees.calibration
    assert 0.5 < trained.card["predictedToTrue"] < 2
    assert not train(rows(60), NAMES, None).card["calibrated"]
