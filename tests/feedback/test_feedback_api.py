"""The feedback endpoints, called as a tenant calls them."""

from typing import Any

import pytest

from tests.live import Caller, Service

LABELS = ("FRAUD", "LEGIT", "CHARGEBACK", "REFUND", "FALSE_POSITIVE", "TRUE_POSITIVE")


def decided(tenant: Caller) -> str:
    answer = tenant.post("/api/v1/events", {"eventName": "payment.attempt"})
    assert answer.status == 201, answer.body
    event_id: str = answer.json["eventId"]
    return event_id


def said(tenant: Caller, event_id: str, word: str = "decision", **body: Any) -> Any:
    return tenant.post(f"/api/v1/feedback/{word}/{event_id}", {"label": "FRAUD", **body})


@pytest.mark.parametrize("label", LABELS)
def test_each_label_is_taken_and_answered_whole(tenant: Caller, label: str) -> None:
    event_id = decided(tenant)
    answer = said(tenant, event_id, label=label, notes="seen", externalCaseId="case-7")
    assert answer.status == 201
    record = answer.json
    assert record["id"].startswith("fbk_")
    assert record["createdAt"] == record["updatedAt"]
    assert {name: record[name] for name in ("type", "targetId", "label", "notes", "externalCaseId")} == {
        "type": "DECISION",
        "targetId": event_id,
        "label": label,
        "notes": "seen",
        "externalCaseId": "case-7",
    }


def test_what_was_not_said_is_left_out(tenant: Caller) -> None:
    record = said(tenant, decided(tenant), notes=None).json
    assert set(record) == {"id", "type", "targetId", "label", "createdAt", "updatedAt"}


def test_feedback_on_either_address_shows_on_the_decision_and_on_the_event(tenant: Caller) -> None:
    event_id = decided(tenant)
    given = [said(tenant, event_id).json, said(tenant, event_id, "event", label="CHARGEBACK").json]
    assert [record["type"] for record in given] == ["DECISION", "EVENT"]
    assert tenant.get(f"/api/v1/decisions/{event_id}").json["feedback"] == given
    assert tenant.get(f"/api/v1/events/{event_id}").json["feedback"] == given


def test_feedback_on_another_tenants_event_is_not_found(tenant: Caller, other: Caller) -> None:
    event_id = decided(tenant)
    absent = said(other, "evt_" + "0" * 32)
    foreign = said(other, event_id)
    assert foreign.status == absent.status == 404
    assert foreign.json == absent.json
    assert tenant.get(f"/api/v1/events/{event_id}").json["feedback"] == []


@pytest.mark.parametrize("event_id", ["x", "evt_1", "lst_" + "0" * 32, "evt_" + "0" * 32])
def test_an_unknown_or_malformed_target_is_not_found(tenant: Caller, event_id: str) -> None:
    assert said(tenant, event_id).status == 404


def test_without_a_key_nothing_is_said(tenant: Caller, service: Service) -> None:
    answer = service.post(f"/api/v1/feedback/decision/{decided(tenant)}", {"label": "FRAUD"}, key=None)
    assert answer.status == 401


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"label": None}, 400, "label"),
        ({"label": ""}, 400, "label"),
        ({"label": 7}, 400, "label"),
        ({"label": "fraud"}, 422, "label"),
        ({"label": "SCAM"}, 422, "label"),
        ({"notes": 7}, 400, "notes"),
        ({"notes": "x" * 4001}, 422, "notes"),
        ({"externalCaseId": "x" * 1025}, 400, "externalCaseId"),
        ({"externalCaseId": ["x"]}, 400, "externalCaseId"),
    ],
)
def test_a_faulty_member_is_named(tenant: Caller, body: dict[str, Any], status: int, field: str) -> None:
    answer = said(tenant, decided(tenant), **body)
    assert answer.status == status
    assert list(answer.json["error"]["details"]) == [field]


def test_notes_of_four_thousand_characters_are_taken_and_every_fault_is_named(tenant: Caller) -> None:
    event_id = decided(tenant)
    assert said(tenant, event_id, notes="ä" * 4000).status == 201
    answer = said(tenant, event_id, label="SCAM", notes=1)
    assert answer.status == 400
    assert set(answer.json["error"]["details"]) == {"label", "notes"}


def test_the_body_is_judged_before_the_existence_of_the_target(tenant: Caller) -> None:
    assert said(tenant, "evt_" + "0" * 32, label="SCAM").status == 422
    assert tenant.post("/api/v1/feedback/event/evt_x", b"[]").status == 400


def test_an_event_has_a_hundred_pieces_of_feedback_at_most(tenant: Caller) -> None:
    event_id, other_id = decided(tenant), decided(tenant)
    for number in range(100):
        assert said(tenant, event_id, "event" if number % 2 else "decision").status == 201
    for word in ("event", "decision"):
        refused = said(tenant, event_id, word)
        assert (refused.status, refused.json["error"]["code"]) == (422, "UNPROCESSABLE_ENTITY")
        assert "100" in refused.json["error"]["details"]["id"]
    assert len(tenant.get(f"/api/v1/events/{event_id}").json["feedback"]) == 100
    assert said(tenant, other_id).status == 201
