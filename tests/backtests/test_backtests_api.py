"""Backtests ordered over HTTP, watched, cancelled, and begun again after a crash."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import RULES, decided, holding_tenant, steering

ROOT = "/api/v1/backtests"
STRICTER = RULES.replace("metadata.amount > 100", "metadata.amount > 50").replace("amount: 2}", "amount: 1}")


@pytest.fixture(scope="module")
def past(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant with payments of 10 to 190, one of them fraud and one legitimate."""
    caller = steering(holding_tenant(service, tmp_path_factory.mktemp("rules"), "Past payments"))
    events = [decided(caller, amount)["correlationIds"]["eventId"] for amount in range(10, 200, 20)]  # type: ignore[index]
    for place, label in ((3, "FRAUD"), (7, "LEGIT")):
        assert caller.post(f"/api/v1/feedback/event/{events[place]}", {"label": label}).status == 201
    return caller


def ended(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Order a backtest and wait for its end."""
    answer = caller.post(ROOT, body)
    assert answer.status == 202, answer.body
    return awaited(caller, answer.json["backtestId"])


def awaited(caller: Caller, backtest_id: str, seconds: float = 120.0) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = caller.get(f"{ROOT}/{backtest_id}").json
        if found["state"] in ("completed", "failed", "cancelled"):
            return found
        assert found["state"] in ("queued", "running")
        assert 0 <= found["progress"] <= 1
        assert time.monotonic() < until, found
        time.sleep(0.1)


def test_a_document_is_tried_on_what_was_decided(past: Caller) -> None:
    found = ended(past, {"document": STRICTER})
    assert (found["state"], found["progress"], found["error"]) == ("completed", 1, None)
    result = found["result"]
    before, after = result["decisions"]["all"]["before"], result["decisions"]["all"]["after"]
    assert sum(before.values()) == sum(after.values()) == result["events"]
    more = after["review"] - before["review"]
    # Payments of 70 and 90; and those that waited for the rules to be in force, at 150.
    assert more == result["flips"]["count"] >= 2
    assert result["decisions"]["fraud"] == {
        "before": {"approve": 1, "review": 0, "deny": 0},
        "after": {"approve": 0, "review": 1, "deny": 0},
    }
    large = next(one for one in result["rules"] if one["ruleId"] == "large")
    assert (large["fraud"], large["legit"], large["alone"]) == (1, 1, large["fired"])
    assert large["precision"]["value"] == 0.5
    assert large["recall"]["value"] == 1
    flip = result["flips"]["samples"][-1]
    assert (flip["was"], flip["now"]) == ("approve", "review")
    assert sum(day["after"]["review"] for day in result["days"]) == after["review"]
    assert result["young"]["events"] == result["events"]


def test_the_rules_in_force_and_one_changed_rule(past: Caller) -> None:
    same = ended(past, {"version": 2, "from": "2020-01-01", "to": int(time.time()) + 60})["result"]
    waited = same["flips"]["count"]  # Decided before these rules were in force.
    assert {one["now"] for one in same["flips"]["samples"]} <= {"review"}
    other = ended(past, {"rule": {"id": "large", "score": 10}})["result"]
    assert other["decisions"]["all"]["after"]["review"] == 0
    assert other["flips"]["count"] >= 5 - waited
    some = ended(past, {"version": 2, "sample": 0.5})["result"]
    assert 0 < some["events"] < same["events"]


@pytest.mark.parametrize(
    ("body", "status", "member"),
    [
        ({}, 422, "version"),
        ({"version": 1, "rule": {"id": "large"}}, 422, "version"),
        ({"version": 1, "from": "soon"}, 400, "from"),
        ({"version": 1, "from": 2_000_000_000, "to": 1_000_000_000}, 422, "from"),
        ({"version": 1, "sample": 2}, 422, "sample"),
        ({"rule": {"score": 4}}, 400, "rule.id"),
    ],
)
def test_orders_that_make_no_sense_are_refused(
    past: Caller, body: dict[str, Any], status: int, member: str
) -> None:
    answer = past.post(ROOT, body)
    assert answer.status == status, answer.body
    assert member in answer.json["error"]["details"]


def test_a_number_that_is_no_version_is_told_so(past: Caller) -> None:
    refused = past.post(ROOT, {"version": -1})
    assert (refused.status, refused.json["error"]["details"]) == (422, {"version": "is no version"})


LOWER = {"id": "large", "when": "metadata.amount > 1"}


def test_a_trial_needs_no_tests_to_pass_and_says_which_fail(
    service: Service, past: Caller, tmp_path: Path
) -> None:
    found = ended(past, {"rule": LOWER})
    assert (found["state"], found["error"]) == ("completed", None)
    result = found["result"]
    (failed,) = result["failedTests"]
    assert (failed["ruleId"], failed["test"]) == ("large", "small")
    assert "small" in failed["message"]
    assert result["decisions"]["all"]["after"]["approve"] == 0
    added = {"id": "any", "name": "Any", "when": "metadata.amount > 0", "score": 1, "reason": "ANY"}
    lacking = ended(past, {"rule": {**added, "explanation": "Any."}})["result"]
    assert [one["ruleId"] for one in lacking["failedTests"]] == ["any", "any"]
    assert [one["test"] for one in lacking["failedTests"]] == [None, None]
    text = RULES.replace("metadata.amount > 100\n", "metadata.amount > 1\n")
    assert ended(past, {"document": text})["result"]["failedTests"] == result["failedTests"]
    draft = past.post("/api/v1/rulesets", {"document": text}).json
    assert draft["state"] == "draft"
    tried = ended(past, {"version": draft["version"]})["result"]
    assert tried["failedTests"] == result["failedTests"]
    assert tried["decisions"] == result["decisions"]
    broken = past.post("/api/v1/rulesets", {"document": text.replace("amount > 1\n", "amount >\n")}).json
    assert past.post(ROOT, {"version": broken["version"]}).status == 422
    assert ended(past, {"version": 2})["result"]["failedTests"] == []
    assert ended(past, {"version": 0})["state"] == "completed"
    file = tmp_path / "lower.yaml"
    file.write_text(text)
    here = service.cli("rules", "backtest", str(file), "--tenant", past.id, "--json")
    assert here["failedTests"] == result["failedTests"]
    shown = service.cli("rules", "backtest", str(file), "--tenant", past.id)
    assert "test 'small'" in shown.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"when": "metadata.amount >"},
        {"when": "metadata.amount > 'a'"},
        {"score": "many"},
        {"tests": "none"},
        {"unknown": 1},
        {"when": " or ".join(f"metadata.a{number} > 1" for number in range(600))},
    ],
)
def test_a_trial_of_rules_that_cannot_run_is_refused(past: Caller, change: dict[str, Any]) -> None:
    answer = past.post(ROOT, {"rule": {"id": "large", **change}})
    assert answer.status == 422, answer.body


def test_a_document_with_faults_is_refused(past: Caller) -> None:
    answer = past.post(ROOT, {"document": RULES.replace("metadata.amount", "metadata.")})
    assert answer.status == 422, answer.body
    assert past.post(ROOT, {"version": 4_000}).status == 404


def test_jobs_are_seen_by_their_tenant_only(past: Caller, other: Caller) -> None:
    backtest_id = past.post(ROOT, {"version": 2}).json["backtestId"]
    assert other.get(f"{ROOT}/{backtest_id}").json["error"]["details"]["scope"] == "rules"
    other = steering(other)
    assert other.get(f"{ROOT}/{backtest_id}").status == 404
    assert other.delete(f"{ROOT}/{backtest_id}").status == 404
    awaited(past, backtest_id)
    assert past.delete(f"{ROOT}/{backtest_id}").status == 409


def test_one_at_a_time_cancelled_and_begun_again_after_a_crash(own_service: Service, tmp_path: Path) -> None:
    caller = steering(holding_tenant(own_service, tmp_path, "Crashed"))
    first = caller.post(ROOT, {"version": 2}).json["backtestId"]
    assert caller.post(ROOT, {"version": 2}).status == 409
    cancelled = caller.delete(f"{ROOT}/{first}")
    assert (cancelled.status, cancelled.json["state"]) == (200, "cancelled")
    assert caller.delete(f"{ROOT}/{first}").json["state"] == "cancelled"
    second = caller.post(ROOT, {"version": 2}).json["backtestId"]
    own_service.stop(signal.SIGKILL)
    own_service.start()
    assert awaited(caller, second)["state"] == "completed"


def test_a_pipeline_holds_rules_to_expectations(service: Service, past: Caller, tmp_path: Path) -> None:
    file = tmp_path / "stricter.yaml"
    file.write_text(STRICTER)
    command = "rules", "backtest", str(file), "--tenant", past.id
    met = service.cli(
        *command, "--expect", "fraud.caught >= 1", "--expect", "legit.denied <= 0.001", "--json"
    )
    assert [one["met"] for one in met["expectations"]] == [True, True]
    missed = service.cli(*command, "--expect", "legit.caught < .5", ok=False)
    assert missed.returncode == 1
    assert "not met: legit.caught < .5 (1)" in missed.stdout
    wrong = service.cli(*command, "--expect", "fraud.found > 1", ok=False)
    assert wrong.returncode == 2
    assert "'found' is none of caught, reviewed, denied, approved" in wrong.stderr
