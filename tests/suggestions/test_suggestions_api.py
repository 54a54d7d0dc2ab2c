"""Suggestions ordered over HTTP and on the command line, watched, cancelled and refused."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live import Caller, Service
from tests.reviews.conftest import RULES, decided, holding_tenant, steering

ROOT = "/api/v1/rules/suggestions"


@pytest.fixture(scope="module")
def labelled(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant whose small payments from one kind of channel are fraud that no rule stops."""
    caller = steering(holding_tenant(service, tmp_path_factory.mktemp("rules"), "Labelled"))
    for number in range(240):
        is_fraud = number % 3 == 0
        amount = 1 + number % 7 if is_fraud else 5 + number % 140
        channel = "kiosk" if is_fraud or number % 40 == 1 else ("web", "app")[number % 2]
        decide_and_label(
            caller,
            amount,
            is_fraud=is_fraud,
            customer={"externalId": f"c{number % 50}"},
            metadata={"amount": amount, "currency": "EUR", "channel": channel},
        )
    return caller


def decide_and_label(caller: Caller, amount: float, *, is_fraud: bool, **sent: Any) -> None:
    """Have an event decided, and say what it was."""
    answer: dict[str, Any] = decided(caller, amount, **sent)
    event = answer["correlationIds"]["eventId"]
    label = {"label": "FRAUD" if is_fraud else "LEGIT"}
    assert caller.post(f"/api/v1/feedback/event/{event}", label).status == 201


def ended(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Order a suggestion and wait for its end."""
    answer = caller.post(ROOT, body)
    assert answer.status == 202, answer.body
    until = time.monotonic() + 60
    while True:
        found: dict[str, Any] = caller.get(f"{ROOT}/{answer.json['suggestionId']}").json
        if found["state"] in ("completed", "failed", "cancelled"):
            return found
        assert 0 <= found["progress"] <= 1
        assert time.monotonic() < until, found
        time.sleep(0.1)


def test_a_rule_is_suggested_and_its_draft_can_be_proposed(labelled: Caller) -> None:
    found = ended(labelled, {"kind": "rules"})
    assert (found["state"], found["kind"], found["error"]) == ("completed", "rules", None)
    result = found["result"]
    assert result["learned"]["to"] < result["measured"]["from"]
    assert result["learned"]["frauds"] + result["measured"]["frauds"] == 80
    best = result["suggestions"][0]
    assert "in_person" in best["rule"]["when"] or "kiosk" in best["rule"]["when"]
    assert best["precision"]["value"] >= 0.9
    assert best["precision"]["low"] < best["precision"]["value"]
    assert best["recall"]["value"] >= 0.9
    assert best["adds"]["fraud"] == best["fraud"]
    assert best["rule"]["mode"] == "shadow"
    assert len(result["suggestions"]) <= 10
    body = {"document": result["draft"], "note": "suggested", "propose": True}
    drafted = labelled.post("/api/v1/rulesets", body)
    assert (drafted.status, drafted.json["state"]) == (201, "proposed"), drafted.body
    assert labelled.get("/api/v1/rulesets/active").json["version"] != drafted.json["version"]


def test_a_count_that_no_rule_asked_for_is_found(service: Service, tmp_path: Path) -> None:
    caller = steering(holding_tenant(service, tmp_path, "Ringed"))
    for number in range(240):
        is_fraud = number % 3 == 0
        decide_and_label(
            caller,
            5 + number % 140,
            is_fraud=is_fraud,
            customer={"externalId": f"c{number % 120}"},
            device={"fingerprint": f"ring{number % 2}" if is_fraud else f"d{number % 120}"},
        )
    found = ended(caller, {"kind": "rules"})
    best = found["result"]["suggestions"][0]
    assert "by=device.key, within=" in best["rule"]["when"]
    assert best["precision"]["value"] >= 0.9
    assert best["recall"]["value"] >= 0.9
    drafted = caller.post("/api/v1/rulesets", {"document": found["result"]["draft"], "propose": True})
    assert (drafted.status, drafted.json["state"]) == (201, "proposed"), drafted.body


def test_the_curve_of_a_threshold_reaches_what_is_wished(labelled: Caller) -> None:
    found = ended(labelled, {"kind": "threshold", "ruleId": "large", "load": 3})
    one = found["result"]["comparisons"][0]
    assert (one["expression"], one["sign"], one["current"]) == ("metadata.amount", ">", 100)
    points = one["points"]
    assert [each["value"] for each in points] == sorted(each["value"] for each in points)
    assert [each["hits"] for each in points] == sorted((each["hits"] for each in points), reverse=True)
    present = next(each for each in points if each["value"] == 100)
    assert present["fraud"] == 0
    assert present["legit"] >= 20
    assert one["suggested"]["reviewsPerDay"] <= 3
    assert one["suggested"]["when"].startswith("metadata.amount > ")
    strict = ended(labelled, {"kind": "threshold", "ruleId": "large", "precision": 0.99})
    assert strict["result"]["comparisons"][0]["suggested"] is None


def test_scores_are_fitted_and_the_changed_decisions_counted(labelled: Caller) -> None:
    result = ended(labelled, {"kind": "weights"})["result"]
    rules = {one["ruleId"]: one for one in result["rules"]}
    # Everything that it hit was legitimate.
    assert rules["large"]["suggested"] < rules["large"]["score"]
    assert all(one["suggested"] >= 0 and one["suggested"] % 5 == 0 for one in rules.values())
    both = result["decisions"]["all"]
    assert sum(both["before"].values()) == sum(both["after"].values())
    assert both["after"]["review"] < both["before"]["review"]
    assert result["changed"]["all"] == both["before"]["review"] - both["after"]["review"]
    assert yaml.safe_load(result["draft"])["rules"][0]["score"] == rules["large"]["suggested"]


@pytest.mark.parametrize(
    ("body", "status", "member"),
    [
        ({}, 400, "kind"),
        ({"kind": "luck"}, 400, "kind"),
        ({"kind": "threshold"}, 422, "ruleId"),
        ({"kind": "rules", "load": 3}, 422, "load"),
        ({"kind": "threshold", "ruleId": "large", "precision": 2}, 422, "precision"),
        ({"kind": "threshold", "ruleId": "large", "precision": 0.9, "load": 2}, 422, "load"),
        ({"kind": "rules", "from": 20, "to": 10}, 422, "from"),
        ({"kind": "threshold", "ruleId": "nobody"}, 422, "ruleId"),
        ({"kind": "threshold", "ruleId": "nobody", "from": 20, "to": 10}, 422, "from"),
    ],
)
def test_what_cannot_be_suggested_is_refused(
    labelled: Caller, body: dict[str, Any], status: int, member: str
) -> None:
    answer = labelled.post(ROOT, body)
    assert answer.status == status, answer.body
    assert member in answer.json["error"]["details"]


@pytest.fixture(scope="module")
def fixed(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant one of whose rules compares with no number, and another is off."""
    caller = steering(holding_tenant(service, tmp_path_factory.mktemp("fixed"), "Fixed"))
    members = "score: 10, reason: R, explanation: R."
    document = f"""name: Fixed
rules:
  - {{id: euro, name: E, when: metadata.currency == "EUR", mode: shadow, {members}}}
  - {{id: asleep, name: A, when: metadata.amount > 10, mode: 'off', {members}}}
"""
    body = {"document": document, "note": "Fixed", "activate": True}
    assert caller.post("/api/v1/rulesets", body).status == 201
    return caller


MISSING = "is no rule of the rules in force"
UNMOVED = "compares nothing with a number that could be moved"


@pytest.mark.parametrize(("rule", "said"), [("nobody", MISSING), ("asleep", MISSING), ("euro", UNMOVED)])
def test_a_rule_without_a_threshold_is_refused_at_once(
    fixed: Caller, service: Service, rule: str, said: str
) -> None:
    answer = fixed.post(ROOT, {"kind": "threshold", "ruleId": rule})
    assert (answer.status, answer.json["error"]["code"]) == (422, "UNPROCESSABLE_ENTITY")
    assert answer.json["error"]["details"] == {"ruleId": said}
    assert not service.rows(f"SELECT id FROM backtest WHERE tenant = '{fixed.id}'")
    done = service.cli("rules", "suggest", "--tenant", fixed.id, "--threshold", rule, ok=False)
    assert (done.returncode, f"{rule} {said}." in done.stderr) == (1, True), done.stderr
    done = service.cli("rules", "suggest", "--tenant", fixed.id, "--threshold", rule, "--json", ok=False)
    assert json.loads(done.stdout)["error"]["ruleId"] == said


def test_rules_that_this_release_refuses_are_left_to_the_job(service: Service, tmp_path: Path) -> None:
    caller = steering(holding_tenant(service, tmp_path, "Refused"))
    service.rows(f"UPDATE ruleset SET document = 'name: [' WHERE tenant = '{caller.id}'")
    found = ended(caller, {"kind": "threshold", "ruleId": "large"})
    assert (found["state"], "RuleSetRefused" in found["error"]) == ("failed", True)


def test_a_span_with_too_few_frauds_fails_with_a_reason(labelled: Caller) -> None:
    found = ended(labelled, {"kind": "rules", "to": "2020-01-01"})
    assert found["state"] == "failed"
    assert found["error"].startswith("0 labelled frauds can be learned from, 50 are needed.")


def test_too_few_labels_are_refused_at_once(service: Service, tmp_path: Path) -> None:
    caller = steering(holding_tenant(service, tmp_path, "Unlabelled"))
    answer = caller.post(ROOT, {"kind": "rules"})
    assert answer.status == 422
    assert answer.json["error"]["details"]["reason"] == "too_few_labels"
    assert caller.post(ROOT, {"kind": "weights"}).status == 422


def test_nobody_sees_the_suggestions_of_another(labelled: Caller, service: Service, tmp_path: Path) -> None:
    suggestion = ended(labelled, {"kind": "weights"})["suggestionId"]
    stranger = steering(holding_tenant(service, tmp_path, "Stranger"))
    assert stranger.get(f"{ROOT}/{suggestion}").status == 404
    assert stranger.delete(f"{ROOT}/{suggestion}").status == 404
    assert labelled.get(f"/api/v1/backtests/{suggestion}").status == 404
    answer = labelled.delete(f"{ROOT}/{suggestion}")
    assert (answer.status, answer.json["error"]["details"]["reason"]) == (409, "backtest_ended")


def test_a_key_without_the_scope_suggests_nothing(service: Service) -> None:
    tenant_id, key = service.new_tenant("Deciding only")
    answer = Caller(service, tenant_id, key).post(ROOT, {"kind": "rules"})
    assert (answer.status, answer.json["error"]["details"]["scope"]) == (403, "rules")


def test_the_command_suggests_and_writes_the_draft(
    labelled: Caller, service: Service, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.yaml"
    found = service.cli("rules", "suggest", "--tenant", labelled.id, "--output", str(draft), "--json")
    added = [rule for rule in yaml.safe_load(draft.read_text())["rules"] if rule["mode"] == "shadow"]
    assert [rule["id"] for rule in added] == [one["rule"]["id"] for one in found["suggestions"]]
    assert len(yaml.safe_load(draft.read_text())["rules"]) == len(yaml.safe_load(RULES)["rules"]) + len(added)
    curve = service.cli("rules", "suggest", "--tenant", labelled.id, "--threshold", "large", "--json")
    assert curve["comparisons"][0]["current"] == 100
