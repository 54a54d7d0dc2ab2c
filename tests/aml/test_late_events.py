"""Late events of AML: what they complete alerts, in whatever order it was reported."""

import datetime
import itertools

import pytest

from tests.aml.test_events_api import PATH, event
from tests.live import Caller


def hours_ago(hours: float) -> str:
    moment = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=hours)
    return moment.isoformat(timespec="milliseconds")


@pytest.mark.parametrize("order", list(itertools.permutations((40, 20, 1))))
def test_three_such_amounts_alert_in_whatever_order_they_come(
    other_officer: Caller, order: tuple[float, ...]
) -> None:
    customer = {"externalId": f"order {order}"}
    answers = [
        other_officer.post(
            PATH, event(customer=customer, metadata={"amount": 9500}, sourceReportedAt=hours_ago(hours))
        ).json
        for hours in order
    ]
    assert [one["status"] for one in answers] == ["CLEAR", "CLEAR", "ALERTED"]
    (alert,) = answers[2]["alerts"]
    # Only before the newest of them, both others are earlier.
    said, unsaid = (
        ("in the 2 days before", "within the") if order[2] == 1 else ("within the 2 days", "before:")
    )
    assert f"{said}: 2 such events" in alert["summary"]
    assert unsaid not in alert["summary"]


def test_several_senders_alert_in_whatever_order_they_come(other_officer: Caller) -> None:
    alerts = [
        other_officer.post(
            PATH,
            event(
                customer={"externalId": "collector"},
                metadata={
                    "amount": 8123,
                    "direction": "in",
                    "counterpartyId": f"sender {hours}",
                    "segment": "person",
                },
                sourceReportedAt=hours_ago(hours),
            ),
        ).json["alerts"]
        for hours in (70, 1, 30)
    ]
    assert alerts[:2] == [[], []]
    assert [alert["ruleId"] for alert in alerts[2]] == ["smurfing"]


def test_a_late_amount_is_none_of_a_window_that_does_not_reach_back_to_it(other_officer: Caller) -> None:
    customer = {"externalId": "weeks apart"}
    for hours in (20, 1, 24 * 20):
        body = event(customer=customer, metadata={"amount": 9500}, sourceReportedAt=hours_ago(hours))
        assert other_officer.post(PATH, body).json["status"] == "CLEAR"
