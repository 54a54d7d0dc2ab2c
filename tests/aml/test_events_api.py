"""POST /aml/events and its poll: what is taken, what is answered, and that it happens once."""

import re
import threading
import time
from typing import Any

import pytest

from tests.live import Answer, Caller

PATH = "/api/v1/aml/events"


_numbers = iter(range(10**9))


def event(**members: Any) -> dict[str, Any]:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"e-{next(_numbers)}",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": "c-1"},
        "metadata": {"amount": 25, "direction": "out", "counterpartyId": "x"},
    }
    return {**body, **members}


def test_an_ordinary_event_is_clear_and_can_be_polled(officer: Caller) -> None:
    body = event()
    answer = officer.post(PATH, body)
    assert answer.status == 200
    assert answer.json["status"] == "CLEAR"
    assert answer.json["alerts"] == []
    assert answer.json["externalEventId"] == body["externalEventId"]
    assert answer.json["id"].startswith("evt_")
    assert answer.json["ruleVersion"] == {"version": "1"}, "the pack, before any rules were pushed"
    poll = officer.get(f"{PATH}/{body['externalEventId']}")
    assert poll.status == 200
    assert poll.json == answer.json


def test_a_transfer_to_a_call_for_action_country_alerts_with_its_figures(officer: Caller) -> None:
    for code in ("KP", "IRN", "MM"):
        body = event(metadata={"amount": "50.5", "direction": "out", "counterpartyCountry": code})
        answer = officer.post(PATH, body)
        assert answer.json["status"] == "ALERTED"
        alert = answer.json["alerts"][0]
        assert set(alert) == {"id", "severity", "summary", "ruleId", "createdAt"}
        assert alert["severity"] in ("HIGH", "CRITICAL")
        assert alert["ruleId"] == "call-for-action"
        fresh = event(customer={"externalId": f"n-{code}"}, metadata=body["metadata"])
        assert "50.50" in officer.post(PATH, fresh).json["alerts"][0]["summary"]


def test_three_amounts_just_below_the_threshold_alert(officer: Caller) -> None:
    statuses = []
    for amount in (9100, "9500.00", 9999.99):
        answer = officer.post(PATH, event(customer={"externalId": "split"}, metadata={"amount": amount}))
        statuses.append(answer.json["status"])
    assert statuses == ["CLEAR", "CLEAR", "ALERTED"]


def test_a_large_sum_to_a_high_risk_country_alerts(officer: Caller) -> None:
    metadata = {"amount": 10000, "counterparty_country": "HTI"}
    assert officer.post(PATH, event(metadata=metadata)).json["status"] == "ALERTED"
    less = event(customer={"externalId": "c-2"}, metadata=metadata | {"amount": 9999})
    assert officer.post(PATH, less).json["status"] == "CLEAR"


def test_the_same_payload_replays_and_another_one_is_a_conflict(officer: Caller) -> None:
    body = event(metadata={"amount": 1, "counterpartyCountry": "KP"})
    first = officer.post(PATH, body)
    shuffled = dict(reversed(body.items())) | {"metadata": {"counterpartyCountry": "KP", "amount": 1.0}}
    assert officer.post(PATH, shuffled).json == first.json
    assert officer.post(PATH, body | {"tenantId": "ten_other"}).json == first.json
    other = officer.post(PATH, body | {"metadata": {"amount": 2, "counterpartyCountry": "KP"}})
    assert other.status == 409
    assert other.json["error"]["code"] == "CONFLICT"
    assert other.json["error"]["details"]["reason"] == "payload_mismatch"
    assert officer.get(f"{PATH}/{body['externalEventId']}").json == first.json


def test_fifty_simultaneous_posts_are_one_event(officer: Caller) -> None:
    body = event(customer={"externalId": "fifty"}, metadata={"amount": 1, "counterpartyCountry": "IR"})
    answers = _at_once([body] * 50, officer)
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    alerts = officer.get("/api/v1/aml/alerts?customer=fifty").json
    assert alerts["total"] == 1
    assert alerts["data"][0]["events"] == 1


def test_of_two_payloads_posted_at_once_one_is_stored(officer: Caller) -> None:
    body = event()
    answers = _at_once([body, body | {"reference": "r"}] * 25, officer)
    assert sorted({answer.status for answer in answers}) == [200, 409]
    assert sum(answer.status == 200 for answer in answers) == 25
    assert len({answer.json["id"] for answer in answers if answer.status == 200}) == 1


def _at_once(bodies: list[dict[str, Any]], caller: Caller) -> list[Answer]:
    answers: list[Answer] = []
    start = threading.Barrier(len(bodies))

    def post(body: dict[str, Any]) -> None:
        start.wait()
        answers.append(caller.post(PATH, body))

    threads = [threading.Thread(target=post, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"eventName": None}, "eventName"),
        ({"eventName": ""}, "eventName"),
        ({"eventName": 7}, "eventName"),
        ({"externalEventId": None}, "externalEventId"),
        ({"externalEventId": 12}, "externalEventId"),
        ({"eventCategory": "PAYMENT"}, "eventCategory"),
        ({"eventCategory": 1}, "eventCategory"),
        ({"country": "ZZ"}, "country"),
        ({"country": "England"}, "country"),
        ({"customer": []}, "customer"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"k": "v" * 40_000}}, "metadata"),
        ({"customer": {"metadata": 1}}, "customer.metadata"),
        ({"sourceReportedAt": "yesterday"}, "sourceReportedAt"),
        ({"sourceReportedAt": -1}, "sourceReportedAt"),
        ({"sourceReportedAt": "1969-12-31T23:59:59Z"}, "sourceReportedAt"),
        ({"sourceReportedAt": "2999-01-01T00:00:00Z"}, "sourceReportedAt"),
        ({"timestamp": 32_000_000_000}, "timestamp"),
        ({"timestamp": "2026-01-01T00:00:00Z"}, "timestamp"),
        ({"sessionId": "s" * 2000}, "sessionId"),
    ],
)
def test_every_fault_of_a_well_formed_body_is_422(officer: Caller, change: Any, path: str) -> None:
    answer = officer.post(PATH, event(**change))
    assert answer.status == 422
    assert answer.json["error"]["code"] == "UNPROCESSABLE_ENTITY"
    assert path in answer.json["error"]["details"]


def test_all_faults_are_named_at_once(officer: Caller) -> None:
    answer = officer.post(PATH, {"eventCategory": "X", "country": "ZZ", "timestamp": "x"})
    details = set(answer.json["error"]["details"])
    assert details == {"eventName", "externalEventId", "eventCategory", "country", "timestamp"}


def test_what_is_no_object_is_422_and_what_is_no_json_is_400(officer: Caller) -> None:
    assert officer.post(PATH, b"[1]").status == 422
    assert officer.post(PATH, b"{").status == 400
    assert officer.post(PATH, b'{"eventName": NaN}').status == 400


def test_moments_are_taken_in_both_forms(officer: Caller) -> None:
    now = time.time()
    for moment in (int(now) - 90, now - 90.5, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 60))):
        assert officer.post(PATH, event(sourceReportedAt=moment)).status == 200
    assert officer.post(PATH, event(timestamp=int(now) - 5)).status == 200
    for code in ("GB", "GBR", "gb"):
        assert officer.post(PATH, event(country=code)).status == 200


def test_events_of_long_ago_are_watched_by_what_they_say_and_count_for_none_of_today(officer: Caller) -> None:
    days = ((2_000, "FR", "CLEAR"), (2_000.1, "FR", "CLEAR"), (1_000, "KP", "ALERTED"), (0, "FR", "CLEAR"))
    for ago, country, status in days:
        body = event(
            customer={"externalId": "archive"},
            metadata={"amount": 9512.34, "counterpartyCountry": country},
            sourceReportedAt=time.time() - ago * 86_400,
        )
        answer = officer.post(PATH, body).json
        assert answer["status"] == status, answer
        assert officer.get(f"{PATH}/{body['externalEventId']}").json == answer
    assert officer.post(PATH, event(timestamp=0)).status == 200


def test_a_tenant_without_the_product_is_refused(other: Caller) -> None:
    for answer in (other.post(PATH, event()), other.get(f"{PATH}/x"), other.get("/api/v1/aml/cases")):
        assert answer.status == 403
        assert answer.json["error"]["code"] == "FORBIDDEN"


def test_an_unknown_event_and_another_tenants_are_not_found(officer: Caller, other_officer: Caller) -> None:
    body = event()
    officer.post(PATH, body)
    unknown = other_officer.get(f"{PATH}/never")
    foreign = other_officer.get(f"{PATH}/{body['externalEventId']}")
    assert unknown.status == foreign.status == 404
    assert unknown.body == foreign.body


def test_an_id_with_a_slash_is_one_id(officer: Caller) -> None:
    officer.post(PATH, event(externalEventId="a/b+c d"))
    assert officer.get(f"{PATH}/a%2Fb+c%20d").json["externalEventId"] == "a/b+c d"


def test_aml_events_are_not_fraud_events(officer: Caller) -> None:
    answer = officer.post(PATH, event())
    assert officer.get(f"/api/v1/events/{answer.json['id']}").status == 404
    assert officer.get(f"/api/v1/decisions/{answer.json['id']}").status == 404
    listed = officer.get("/api/v1/events")
    if listed.status == 200:
        assert listed.json["total"] == 0


def test_a_summary_counts_one_thing_as_one(other_officer: Caller) -> None:
    summaries = None, " In the 60 days before: 1 customer.", " In the 60 days before: 2 customers."
    for number, summary in enumerate(summaries):
        body = event(
            eventName="card.added",
            eventCategory="PAYMENT_INSTRUMENT",
            customer={"externalId": f"shares-{number}"},
            metadata={"instrumentId": "shared-once"},
        )
        alerts = other_officer.post(PATH, body).json["alerts"]
        said = " ".join(one["summary"] for one in alerts)
        assert ("same card" in said) is (summary is not None)
        assert summary is None or summary in said


def test_sums_of_a_summary_are_of_earlier_events_in_their_currency(other_officer: Caller) -> None:
    metadata = {"amount": 600_000, "currency": "JPY", "channel": "cash", "direction": "in"}
    customer = {"externalId": "pays-in-yen", "metadata": {"segment": "person"}}
    answers = [other_officer.post(PATH, event(customer=customer, metadata=metadata)) for _ in range(3)]
    said = " ".join(alert["summary"] for answer in answers for alert in answer.json["alerts"])
    assert "; in the 4 days before: 1 such event." in said
    assert "; in the 3 days before: 2 such events, 1,200,000.00 JPY." in said


def test_a_summary_is_two_short_sentences_that_say_each_thing_once(other_officer: Caller) -> None:
    customer = {"externalId": "is-paid", "metadata": {"segment": "person"}}
    for number in range(5):
        metadata = {
            "amount": 2_000,
            "currency": "EUR",
            "direction": "in",
            "counterpartyId": f"payer-{number}",
        }
        answer = other_officer.post(PATH, event(customer=customer, metadata=metadata))
    for alert in answer.json["alerts"]:
        assert alert["summary"].count(". ") == 1
        assert len(alert["summary"]) < 260
        assert "that meet the rule's condition" not in alert["summary"]
    # Which rule comes first depends on how long the tenant has been watched.
    assert re.search(
        r"; in the [57] days before: 4 senders, 8,000\.00 EUR\.", answer.json["alerts"][0]["summary"]
    )
