"""What a model that orders alerts reads: nothing that was not known when the alert was raised."""

import math
from array import array

import msgspec
import pytest

from vettance.aml.case import NO_PRIORITY
from vettance.aml.evidence import Figures
from vettance.clock import DAY_MS
from vettance.learning.alert_values import AlertTable, OrderedAlert, numbers_of, priority_of
from vettance.learning.train_alerts import train_on
from vettance.learning.training_rows import TooFewLabels
from vettance.models.trees import TreeModel, log_odds_of, text_digest, write_trees

FIGURES = msgspec.json.encode(Figures("r", "R", {}, ("customer:a", "customer:b"), ("other",)))


def alert(
    number: int, day: float, resolution: str | None = None, closed: float | None = None, **changed: object
) -> OrderedAlert:
    known = OrderedAlert(
        *(f"alr_{number:05}", "c", "STRUCTURING", "r", "HIGH", "rule", FIGURES, int(day * DAY_MS)),
        *(NO_PRIORITY, resolution, None if closed is None else int(closed * DAY_MS), None),
    )
    return known._replace(**changed)  # type: ignore[arg-type]


def value(table: AlertTable, name: str) -> list[float]:
    names = (*table.names(), name)
    return [array("d", row.features)[-1] for row in table.rows(names)]


def test_what_officers_said_counts_from_when_they_said_it() -> None:
    table = AlertTable()
    table.take(alert(1, 1, "TRUE_MATCH", 5), {})
    table.take(alert(2, 2, "FALSE_POSITIVE", 3), {})
    table.take(alert(3, 4, "TRUE_MATCH", 9), {})
    table.take(alert(4, 6, "TRUE_MATCH", 9), {})
    assert value(table, "rule.confirmed") == [0, 0, 0, 1]
    assert value(table, "rule.mistaken") == [0, 0, 1, 1]
    assert value(table, "customer.confirmed") == [0, 0, 0, 1]
    assert value(table, "customer.alerts_30d") == [0, 1, 2, 3]
    assert value(table, "customer.confirmed_days_ago")[3] == 1
    assert math.isnan(value(table, "customer.confirmed_days_ago")[2])


def test_open_alerts_teach_nothing_and_count_as_alerts_of_their_customer() -> None:
    table = AlertTable()
    table.take(alert(1, 1), {})
    table.take(alert(2, 2, "TRUE_MATCH", 3, customer="other"), {})
    table.take(alert(3, 4, "FALSE_POSITIVE", 5), {})
    assert (table.matches, table.mistakes) == (1, 1)
    assert value(table, "customer.alerts_30d") == [0, 1]


def test_figures_that_cannot_be_read_leave_the_rest() -> None:
    table = AlertTable()
    table.take(alert(1, 1, "TRUE_MATCH", 2, figures=b"\xff"), {})
    table.take(alert(2, 1, "TRUE_MATCH", 2, figures=b"[]", origin="screening"), {})
    table.take(alert(3, 1, "TRUE_MATCH", 2), {})
    assert value(table, "alert.severity") == [2, 2, 2]
    assert value(table, "alert.parties")[2] == 2


def test_only_numbers_and_flags_of_an_event_are_read() -> None:
    pairs = [("a", 1), ("b", True), ("c", "x"), ("d", None), ("e", math.inf), ("f", [1])]
    assert numbers_of(pairs) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("probability", "priority"), [(0.5, 500), (0.00001, 0), (0.99999, 1_000), (0.873, 873)]
)
def test_a_priority_is_a_probability_in_thousandths(probability: float, priority: int) -> None:
    assert priority_of(log_odds_of(probability)) == priority


def closed(count: int, priority: int = NO_PRIORITY) -> AlertTable:
    """Alerts of which the large ones are true, every third."""
    table = AlertTable()
    for number in range(count):
        is_true = number % 3 == 0
        said = "TRUE_MATCH" if is_true else "FALSE_POSITIVE"
        facts = {"worth": 9_000.0 + number if is_true else 100.0 + number, 'sum(worth, within="7d")': 1.0}
        one = alert(number, number / 10, said, number / 10 + 3, customer=f"c{number}", priority=priority)
        table.take(one, facts)
    return table


def test_the_learner_of_events_learns_the_order_of_alerts() -> None:
    made = train_on(closed(240), None)
    assert made.is_better
    assert made.card["averagePrecision"] > 0.9 > made.card["averagePrecisionBefore"]
    text = write_trees(made.trees)
    trees = TreeModel(text, text_digest(text))
    rows = [[20_000.0 if name == "worth" else None for name in trees.features]]
    rows.append([50.0 if name == "worth" else None for name in trees.features])
    high, low = (priority_of(trees.log_odds(row)) for row in rows)
    assert high > 800 > 200 > low


def test_a_later_model_is_held_against_the_priorities_before() -> None:
    table = closed(240, priority=500)
    assert train_on(table, 1).card["averagePrecisionBefore"] == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize(("count", "words"), [(147, "49 alerts were confirmed, 50 are needed")])
def test_too_few_confirmed_alerts_train_no_model(count: int, words: str) -> None:
    with pytest.raises(TooFewLabels, match=words):
        train_on(closed(count), None)


def test_alerts_that_were_all_confirmed_order_nothing() -> None:
    table = AlertTable()
    for number in range(60):
        table.take(alert(number, number, "TRUE_MATCH", number + 1), {})
    with pytest.raises(TooFewLabels, match="0 alerts were closed as false positives, 10 are needed"):
        train_on(table, None)
