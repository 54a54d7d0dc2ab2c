"""History that is imported later is decided as on a fresh tenant, and so again by a backtest."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.test_exchange import history
from tests.live import Caller, Service, run_cli

DAY = 86_400
NOW = int(time.time())


@pytest.fixture(scope="module")
def traffic(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fortnight of a small shop, 250 days ago, as the generator writes it."""
    folder = tmp_path_factory.mktemp("traffic")
    start = time.strftime("%Y-%m-%d", time.gmtime(NOW - 250 * DAY))
    options = ("--customers", "30", "--days", "14", "--seed", "2", "--start", start, "--out", str(folder))
    run_cli(folder, "generate", "fraud", *options, data=False)
    return folder


def imported(service: Service, caller: Caller, traffic: Path) -> dict[str, Any]:
    command = ("import", str(traffic / "events.ndjson"), "--labels", str(traffic / "truth.ndjson"))
    told: dict[str, Any] = service.cli(*command, "--tenant", caller.id, "--wait", "--json")
    return told


def frauds_by_decision(service: Service, caller: Caller) -> dict[str, int]:
    rows = service.rows(
        "SELECT decision.decision, COUNT(*) FROM decision JOIN feedback ON feedback.target = decision.id "
        f"WHERE decision.tenant = '{caller.id}' AND feedback.label = 'FRAUD' GROUP BY decision.decision"
    )
    return dict(rows)


def test_as_many_frauds_are_found_in_old_history_as_on_a_fresh_tenant(
    service: Service, traffic: Path, tmp_path: Path
) -> None:
    fresh = Caller(service, *service.new_tenant("Fresh"))
    running = Caller(service, *service.new_tenant("Running"))
    body = {"eventName": "login", "customer": {"externalId": "cus_00000001"}, "ip": "203.0.113.9"}
    for _ in range(3):
        assert running.post("/api/v1/events", body).status == 201
    events = len((traffic / "events.ndjson").read_bytes().splitlines())
    frauds = (traffic / "truth.ndjson").read_text().count('"FRAUD"')
    for caller in (fresh, running):
        told = imported(service, caller, traffic)
        assert (told["accepted"], told["labelled"], told["refused"]) == (events, events, 0)
    found = frauds_by_decision(service, fresh)
    assert sum(found.values()) == frauds > 50
    assert found.get("BLOCK", 0) > frauds / 3
    assert frauds_by_decision(service, running) == found
    rules = tmp_path / "rules.yaml"
    service.cli("rules", "pull", "--tenant", running.id, "--output", str(rules))
    changed = tmp_path / "changed.ndjson"
    service.cli("rules", "backtest", str(rules), "--tenant", running.id, "--out", str(changed), "--json")
    assert changed.read_bytes() == b""


def test_a_file_is_decided_in_the_order_of_its_own_time(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Order"))
    body = {"eventName": "payment.attempt", "customer": {"externalId": "old"}}
    lines = [{"event": body, "occurredAt": NOW - days * DAY} for days in (1, 120, 80, 100, 200)]
    file = history(tmp_path / "h.ndjson", lines)
    service.cli("import", str(file), "--tenant", caller.id, "--wait", "--json")
    rows = service.rows(
        f"SELECT occurred_at_ms FROM event WHERE tenant = '{caller.id}' AND source = 'import' ORDER BY seq"
    )
    assert len(rows) == 5
    assert rows == sorted(rows)


def test_a_late_event_beyond_what_the_memory_holds_says_what_is_not_exact(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Late"))
    body = {
        "eventName": "payment.attempt",
        "customer": {"externalId": "late"},
        "ip": "203.0.113.9",
        "metadata": {"amount": 5, "cardHash": "card"},
    }
    now = caller.post("/api/v1/events", body).json["eventId"]
    late = caller.post("/api/v1/events", {**body, "occurredAt": NOW - 200 * DAY}).json["eventId"]
    assert "inexact" not in caller.get(f"/api/v1/decisions/{now}").json["outputs"]
    found = caller.get(f"/api/v1/decisions/{late}").json
    zeros = {name for name, value in found["inputs"]["features"].items() if value == 0 and "within=" in name}
    assert zeros
    assert zeros <= set(found["outputs"]["inexact"])


def test_the_same_file_again_is_said_to_be_known(service: Service, traffic: Path, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Known"))
    file = tmp_path / "events.ndjson"
    file.write_bytes(b"".join((traffic / "events.ndjson").read_bytes().splitlines(keepends=True)[:40]))
    first = service.cli("import", str(file), "--tenant", caller.id)
    assert "40 events accepted, 0 refused." in first.stdout
    told = service.cli("import", str(file), "--tenant", caller.id, "--json")
    assert (told["accepted"], told["known"]) == (40, 40)
    again = service.cli("import", str(file), "--tenant", caller.id)
    assert "was imported already: 40 events known, 0 new." in again.stdout


def test_refusals_are_told_with_their_lines_and_counted_by_reason(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Reasons"))
    good = {"eventName": "login", "occurredAt": NOW - DAY}
    lines = [good, *({"eventName": "no.time"} for _ in range(7)), {"occurredAt": NOW}]
    file = history(tmp_path / "h.ndjson", lines)
    done = service.cli("import", str(file), "--tenant", caller.id, ok=False)
    assert done.returncode == 1
    assert "  line 2: occurredAt is required" in done.stdout
    assert "        7  occurredAt is required" in done.stdout
    told = json.loads(
        service.cli("import", str(file), "--tenant", caller.id, "--dry-run", "--json", ok=False).stdout
    )
    assert [one["rows"] for one in told["reasons"]] == [7, 1]


def test_labels_may_stand_in_a_file_beside_the_events(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Beside"))
    events = [
        {"eventName": "login", "occurredAt": NOW - DAY + number, "metadata": {"reference": f"r{number}"}}
        for number in range(4)
    ]
    file = history(tmp_path / "h.ndjson", events)
    truth = history(
        tmp_path / "t.ndjson", [{"reference": "r2", "label": "FRAUD"}, {"line": 4, "label": "LEGIT"}]
    )
    command = ("import", str(file), "--labels", str(truth), "--tenant", caller.id, "--wait")
    told = service.cli(*command, "--json")
    assert (told["labelled"], told["labelsUnused"]) == (2, 0)
    data = caller.get("/api/v1/events?sortOrder=asc").json["data"]
    labels = {one["metadata"]["reference"]: [said["label"] for said in one["feedback"]] for one in data}
    assert labels == {"r0": [], "r1": [], "r2": ["FRAUD"], "r3": ["LEGIT"]}
    others = history(
        tmp_path / "o.ndjson",
        [
            {"reference": "r2", "label": "FRAUD"},
            {"reference": "x", "label": "FRAUD"},
            {"line": 9, "label": "LEGIT"},
        ],
    )
    again = (*command[:3], str(others), *command[4:-1], "--dry-run")
    assert "Of the labels, 2 belong to no event of this file." in service.cli(*again).stdout
    bad = history(tmp_path / "bad.ndjson", [{"reference": "r2", "label": "SCAM"}])
    refused = service.cli("import", str(file), "--labels", str(bad), "--tenant", caller.id, ok=False)
    assert refused.returncode == 1
    assert "bad.ndjson, line 1: label must be one of" in refused.stderr
