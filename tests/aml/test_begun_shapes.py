"""Alerts about half a shape: raised and renamed in their case when it becomes clear."""

from pathlib import Path
from typing import Any

from tests.aml.watched_money import EVENTS, bank_of, resolve
from tests.live import Caller, Service

RULES = """
name: Own
levels: {medium: 60, high: 75, critical: 95}
thresholds: {review: 40, block: 100}
rules:
  - id: begun
    name: Some
    when: amount >= 100
    score: 45
    reason: FAN_IN
    explanation: Some come.
    tests:
      - {name: some, event: {eventName: x, metadata: {amount: 150}}, fires: true}
      - {name: none, event: {eventName: x, metadata: {amount: 1}}, fires: false}
  - id: many
    name: Many
    when: 1000 <= amount < 5000
    score: 65
    reason: FAN_IN
    explanation: Many come.
    tests:
      - {name: some, event: {eventName: x, metadata: {amount: 1500}}, fires: true}
      - {name: none, event: {eventName: x, metadata: {amount: 1}}, fires: false}
  - id: smurfs
    name: Smurfs
    when: amount >= 5000
    score: 80
    reason: SMURFING
    explanation: They smurf.
    tests:
      - {name: some, event: {eventName: x, metadata: {amount: 5500}}, fires: true}
      - {name: none, event: {eventName: x, metadata: {amount: 1}}, fires: false}
"""
_numbers = iter(range(10**6))


def sent(caller: Caller, customer: str, amount: float) -> list[dict[str, Any]]:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"begun-{next(_numbers)}",
        "customer": {"externalId": customer},
        "metadata": {"amount": amount, "direction": "in"},
    }
    alerts: list[dict[str, Any]] = caller.post(EVENTS, body).json["alerts"]
    return alerts


def case_of(caller: Caller, customer: str) -> dict[str, Any]:
    (case,) = caller.get(f"/api/v1/aml/cases?customer={customer}&state=OPEN").json["data"]
    record: dict[str, Any] = caller.get(f"/api/v1/aml/cases/{case['id']}").json
    return {**record, "case": case}


def test_an_alert_is_raised_and_renamed_in_its_case(service: Service, tmp_path: Path) -> None:
    caller = bank_of(service, "Shapes that begin")
    file = tmp_path / "own.yaml"
    file.write_text(RULES)
    service.cli("aml", "push", str(file), "--tenant", caller.id, "--yes", "--json")

    (low,) = sent(caller, "renamed", 150)
    assert (low["severity"], low["ruleId"]) == ("LOW", "begun")
    assert case_of(caller, "renamed")["case"]["severity"] == "LOW"
    (same,) = sent(caller, "renamed", 200)
    assert same["id"] == low["id"]
    (whole,) = sent(caller, "renamed", 6000)
    assert (whole["id"], whole["severity"]) == (low["id"], "HIGH")
    assert "They smurf." in whole["summary"]
    record = case_of(caller, "renamed")
    assert (record["case"]["severity"], record["case"]["alertCount"]) == ("HIGH", 1)
    (alert,) = record["alerts"]
    assert (alert["typology"], alert["severity"], alert["events"]) == ("SMURFING", "HIGH", 3)
    assert [line["text"].partition(":")[0] for line in record["timeline"]][1:] == [
        "LOW",
        "LOW to HIGH, FAN_IN is SMURFING",
    ]

    (low,) = sent(caller, "raised", 150)
    (more,) = sent(caller, "raised", 1500)
    assert (more["id"], more["severity"]) == (low["id"], "MEDIUM")
    found = caller.get("/api/v1/aml/alerts?customer=raised").json["data"]
    assert [(alert["typology"], alert["severity"], alert["events"]) for alert in found] == [
        ("FAN_IN", "MEDIUM", 2)
    ]

    # What officers call a mistake while it is low keeps quiet what is as low, and nothing else.
    sent(caller, "mistaken", 150)
    resolve(caller, case_of(caller, "mistaken")["case"]["id"], is_true=False)
    assert sent(caller, "mistaken", 200) == []
    (woken,) = sent(caller, "mistaken", 1500)
    assert woken["severity"] == "MEDIUM"
