"""Rules tried on history: what was decided is decided again, and other rules are seen beside it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service

RULES = """
name: Shop
levels: {medium: 30, high: 60, critical: 85}
thresholds: {review: 60, block: 85}
rules:
  - id: fourth
    name: The fourth payment within the hour
    when: event_name == "payment" and count(by=customer.external_id, within="1h") >= 3
    score: LEVEL
    reason: MANY
    explanation: Many payments.
    tests:
      - name: many
        given: [{eventName: payment, customer: {externalId: c}, repeat: 3}]
        event: {eventName: payment, customer: {externalId: c}}
        fires: true
      - {name: one, event: {eventName: payment, customer: {externalId: c}}, fires: false}
"""
HOUR_AGO = int(time.time()) - 3600


def payment(customer: str, second: int, ip: str = "198.51.100.7") -> dict[str, Any]:
    return {
        "eventName": "payment",
        "customer": {"externalId": customer},
        "ip": ip,
        "occurredAt": HOUR_AGO + second,
    }


@pytest.fixture(scope="module")
def past(service: Service) -> tuple[Caller, list[str]]:
    """A tenant whose own rules held nothing, though one customer paid six times; one address is blocked."""
    caller = Caller(service, *service.new_tenant("Past"))
    blocked = {"type": "IP", "value": "203.0.113.9", "listType": "block"}
    assert caller.post("/api/v1/lists", blocked).status == 201
    bodies = [payment("busy", second * 10) for second in range(6)]
    bodies += [payment("calm", 70), payment("listed", 80, "203.0.113.9")]
    service.wait_for(lambda: caller.post("/api/v1/events", payment("x", 0)).status == 201)
    ids = [caller.post("/api/v1/events", body).json["eventId"] for body in bodies]
    for number, label in ((3, "FRAUD"), (4, "CHARGEBACK"), (4, "REFUND"), (5, "FRAUD"), (5, "LEGIT")):
        assert caller.post(f"/api/v1/feedback/event/{ids[number]}", {"label": label}).status == 201
    return caller, ids


def backtest(service: Service, caller: Caller, file: Path, *more: str) -> Any:
    return service.cli("rules", "backtest", str(file), "--tenant", caller.id, "--json", *more)


def counted(report: Any, events: str) -> dict[tuple[str, str], int]:
    return {
        (row["was"], now): row[f"now {now}"]
        for row in report["decisions"]
        if row["events"] == events
        for now in ("approve", "review", "deny")
        if row[f"now {now}"]
    }


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("LEVEL", "60"))
    return file


def test_rules_in_force_decide_again_what_they_decided(
    service: Service, past: tuple[Caller, list[str]], tmp_path: Path
) -> None:
    caller, _ = past
    file = tmp_path / "pulled.yaml"
    service.cli("rules", "pull", "--tenant", caller.id, "--output", str(file))
    out = tmp_path / "changed.ndjson"
    report = backtest(service, caller, file, "--out", str(out))
    assert counted(report, "all") == {("approve", "approve"): 8, ("deny", "deny"): 1}
    assert out.read_text() == ""


def test_other_rules_show_what_they_would_have_held(
    service: Service, past: tuple[Caller, list[str]], rules: Path, tmp_path: Path
) -> None:
    caller, ids = past
    out = tmp_path / "changed.ndjson"
    report = backtest(service, caller, rules, "--out", str(out))
    assert counted(report, "all") == {
        ("approve", "approve"): 5,
        ("approve", "review"): 3,
        ("deny", "deny"): 1,
    }
    assert report["rules"] == [
        {
            "rule": "fourth",
            "mode": "active",
            "score": 60,
            "fired": 3,
            "fraud": 2,
            "legit": 1,
            "alone": 3,
            "failed": 0,
        }
    ]
    changed = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["id"] for one in changed] == ids[3:6]
    assert [one["label"] for one in changed] == ["fraud", "fraud", "legit"]
    assert changed[0] | {"id": "", "occurredAt": ""} == {
        "id": "",
        "occurredAt": "",
        "label": "fraud",
        "was": "approve",
        "now": "review",
        "scoreWas": 0,
        "scoreNow": 60,
        "reasonCodesNow": ["MANY"],
    }


def test_labels_say_what_was_right(service: Service, past: tuple[Caller, list[str]], rules: Path) -> None:
    report = backtest(service, past[0], rules)
    assert counted(report, "labelled fraud") == {("approve", "review"): 2}
    assert counted(report, "labelled legit") == {("approve", "review"): 1}


def test_events_before_the_span_are_remembered_and_not_counted(
    service: Service, past: tuple[Caller, list[str]], rules: Path
) -> None:
    span = ("--from", str(HOUR_AGO + 40), "--to", str(HOUR_AGO + 50))
    assert counted(backtest(service, past[0], rules, *span), "all") == {("approve", "review"): 1}


def test_a_person_reads_tables(service: Service, past: tuple[Caller, list[str]], rules: Path) -> None:
    shown = service.cli("rules", "backtest", str(rules), "--tenant", past[0].id).stdout
    assert "now review" in shown
    assert "9 events decided anew, 3 of them otherwise." in shown
    assert "Every running rule fired." in shown
    later = ("--from", "2038-01-01T00:00:00Z")
    none = service.cli("rules", "backtest", str(rules), "--tenant", past[0].id, *later).stdout
    assert none == "There are no events of this time.\n"


def test_nothing_is_changed(service: Service, past: tuple[Caller, list[str]], rules: Path) -> None:
    before = past[0].get("/api/v1/decisions/stats").json
    backtest(service, past[0], rules)
    assert past[0].get("/api/v1/decisions/stats").json == before


def test_what_cannot_be_tried_is_refused(service: Service, other: Caller, rules: Path) -> None:
    unknown = service.cli("rules", "backtest", str(rules), "--tenant", "ten_x", ok=False)
    assert unknown.returncode == 1
    assert "there is no tenant ten_x" in unknown.stderr
    rules.write_text(RULES.replace("LEVEL", "60").replace("customer.external_id", "custmer.external_id"))
    broken = service.cli("rules", "backtest", str(rules), "--tenant", other.id, ok=False)
    assert broken.returncode == 1
    assert "did you mean customer.external_id?" in broken.stderr
