"""Snoozes: a rule does nothing for one entity, over HTTP, on the command line and in a backtest."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import decided, holding_tenant, steering

ROOT = "/api/v1/rules/snoozes"


@pytest.fixture(scope="module")
def holding(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    return steering(holding_tenant(service, tmp_path_factory.mktemp("rules"), "Snoozing"))


def snooze(caller: Caller, **members: Any) -> Any:
    body = {"ruleId": "large", "type": "CUSTOMER", "value": "anna", "until": time.time() + 3600, **members}
    return caller.post(ROOT, body)


def paid(caller: Caller, **more: Any) -> dict[str, Any]:
    return decided(caller, 150, **more)


@pytest.mark.parametrize(
    ("kind", "value", "event"),
    [
        ("CUSTOMER", "anna", {"customer": {"externalId": "anna"}}),
        ("EMAIL", " Anna@Shop.example ", {"customer": {"email": "anna@shop.example"}}),
        ("DEVICE", "fp-77", {"device": {"fingerprint": "fp-77"}}),
        ("IP", "::ffff:203.0.113.9", {"ip": "203.0.113.9"}),
        ("SESSION", "s-1", {"sessionId": "s-1"}),
    ],
)
def test_a_snoozed_rule_is_recorded_and_does_nothing(
    holding: Caller, kind: str, value: str, event: dict[str, Any]
) -> None:
    assert paid(holding, **event)["decision"] == "review"
    made = snooze(holding, type=kind, value=value, reason="A kiosk.")
    assert made.status == 201, made.body
    assert set(made.json) == {"id", "ruleId", "type", "value", "until", "reason", "author", "createdAt"}
    found = paid(holding, **event)
    assert found["decision"] == "approve"
    decision = holding.get(f"/api/v1/decisions/{found['correlationIds']['eventId']}").json
    rule = next(one for one in decision["outputs"]["rules"] if one["ruleId"] == "large")
    assert (rule["matched"], rule["withheld"]) == (True, "snoozed")
    assert paid(holding, customer={"externalId": "berta"})["decision"] == "review"
    assert made.json["id"] in {one["id"] for one in holding.get(ROOT).json["data"]}
    assert holding.delete(f"{ROOT}/{made.json['id']}").status == 200
    assert holding.delete(f"{ROOT}/{made.json['id']}").status == 404
    assert paid(holding, **event)["decision"] == "review"


def test_ending_one_of_two_snoozes_promises_nothing_of_the_rule(holding: Caller) -> None:
    first, second = (snooze(holding, value="gina", reason=one).json["id"] for one in ("Tests.", "A kiosk."))
    ended = holding.delete(f"{ROOT}/{first}").json
    assert ended == {"success": True, "message": "The snooze has ended."}
    assert paid(holding, customer={"externalId": "gina"})["decision"] == "approve"
    assert holding.delete(f"{ROOT}/{second}").status == 200
    assert paid(holding, customer={"externalId": "gina"})["decision"] == "review"


def test_the_same_snooze_again_is_the_one_in_force(service: Service, holding: Caller) -> None:
    members = {"value": "hugo", "until": "2099-01-01T00:00:00Z", "reason": "Tests."}
    made = snooze(holding, **members)
    again = snooze(holding, **{**members, "value": " hugo "})
    assert (made.status, again.status) == (201, 200)
    assert again.json == made.json
    what = "--type", "customer", "--value", "hugo", "--until", "2099-01-01", "--reason", "Tests.", "--json"
    assert service.cli("rules", "snooze", "large", "--tenant", holding.id, *what) == made.json
    assert [one["id"] for one in holding.get(ROOT).json["data"] if one["value"] == "hugo"] == [
        made.json["id"]
    ]
    assert holding.delete(f"{ROOT}/{made.json['id']}").status == 200
    anew = snooze(holding, **members)
    assert anew.status == 201
    assert holding.delete(f"{ROOT}/{anew.json['id']}").status == 200


def test_the_same_snooze_sent_many_times_at_once_is_one(holding: Caller) -> None:
    members = {"value": "ines", "until": "2099-01-01T00:00:00Z"}
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: snooze(holding, **members), range(8)))
    assert sorted(one.status for one in answers) == [*[200] * 7, 201]
    assert len({one.json["id"] for one in answers}) == 1
    assert [one["id"] for one in holding.get(ROOT).json["data"] if one["value"] == "ines"] == [
        answers[0].json["id"]
    ]
    assert holding.delete(f"{ROOT}/{answers[0].json['id']}").status == 200


def test_a_snooze_ends_by_itself(holding: Caller) -> None:
    assert snooze(holding, value="carl", until=time.time() + 1.5).status == 201
    assert paid(holding, customer={"externalId": "carl"})["decision"] == "approve"
    time.sleep(1.6)
    assert paid(holding, customer={"externalId": "carl"})["decision"] == "review"
    assert "carl" not in str(holding.get(ROOT).json)


@pytest.mark.parametrize(
    ("members", "status", "member"),
    [
        ({"ruleId": "none"}, 422, "ruleId"),
        ({"until": 1_000_000_000}, 422, "until"),
        ({"until": "soon"}, 400, "until"),
        ({"type": "HOUSE"}, 400, "type"),
        ({"type": "IP", "value": "anna"}, 422, "value"),
        ({"value": " "}, 422, "value"),
        ({"value": None}, 400, "value"),
    ],
)
def test_what_makes_no_sense_is_refused(
    holding: Caller, members: dict[str, Any], status: int, member: str
) -> None:
    answer = snooze(holding, **members)
    assert answer.status == status, answer.body
    assert member in answer.json["error"]["details"]


def test_another_tenant_neither_sees_nor_ends_it(service: Service, holding: Caller, other: Caller) -> None:
    made = snooze(holding, value="dora").json
    stranger = steering(other)
    assert stranger.get(ROOT).json["data"] == []
    assert stranger.delete(f"{ROOT}/{made['id']}").status == 404
    assert other.get(ROOT).json["error"]["details"]["scope"] == "rules"


def test_the_command_line_snoozes_and_a_running_service_follows(service: Service, holding: Caller) -> None:
    whose = "--tenant", holding.id
    what = "--type", "customer", "--value", "emil", "--until", "2099-01-01", "--json"
    made = service.cli("rules", "snooze", "large", *whose, *what)
    emil = {"customer": {"externalId": "emil"}}
    service.wait_for(lambda: paid(holding, **emil)["decision"] == "approve")
    assert made["id"] in {one["id"] for one in service.cli("rules", "snoozes", *whose, "--json")}
    service.cli("rules", "unsnooze", made["id"], *whose)
    service.wait_for(lambda: paid(holding, **emil)["decision"] == "review")
    wrong = service.cli("rules", "snooze", "nothing", *whose, *what, ok=False)
    assert wrong.returncode == 1
    assert "ruleId is no rule of the rules in force" in wrong.stderr + wrong.stdout


def test_a_backtest_counts_snoozes_as_they_were(service: Service, holding: Caller, tmp_path: Path) -> None:
    snooze(holding, value="fritz")
    begun = int(time.time()) + 1
    time.sleep(begun - time.time())
    paid(holding, customer={"externalId": "fritz"})
    file = tmp_path / "rules.yaml"
    service.cli("rules", "pull", "--tenant", holding.id, "--output", str(file))
    found = service.cli(
        *("rules", "backtest", str(file), "--tenant", holding.id),
        *("--from", str(begun), "--json"),
    )
    rows = [row for row in found["decisions"] if row["events"] == "all" and row["was"] == "approve"]
    assert rows[0]["now review"] == 0
    assert rows[0]["now approve"] >= 1


def test_aml_rules_are_snoozed_alike(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Money"))
    service.cli("tenant", "set", caller.id, "--aml", "on")
    root = "/api/v1/aml/rules/snoozes"
    steerer = steering(caller)
    service.wait_for(lambda: steerer.get(root).status == 200)

    def status(number: int, customer: str) -> Any:
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"e-{number}",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": customer},
            "metadata": {"amount": 50, "direction": "out", "counterpartyCountry": "KP"},
        }
        return steerer.post("/api/v1/aml/events", body).json["status"]

    body = {
        "ruleId": "call-for-action",
        "type": "CUSTOMER",
        "value": "embassy",
        "until": "2099-01-01T00:00:00Z",
    }
    # Before the first event of this tenant, too.
    made = steerer.post(root, body)
    assert made.status == 201, made.body
    assert status(2, "embassy") == "CLEAR"
    assert status(3, "somebody") == "ALERTED"
    assert steerer.delete(f"{root}/{made.json['id']}").status == 200
    assert status(4, "embassy") == "ALERTED"
    assert "ruleId" in steerer.post(root, {**body, "ruleId": "none"}).json["error"]["details"]


@pytest.mark.parametrize("root", ["/api/v1", "/api/v1/aml"])
def test_a_rule_is_snoozed_as_soon_as_its_version_is_in_force(service: Service, root: str) -> None:
    caller = steering(Caller(service, *service.new_tenant("Hurry")))
    service.cli("tenant", "set", caller.id, "--aml", "on")
    service.wait_for(lambda: caller.get("/api/v1/aml/rules/snoozes").status == 200)
    rule = {"id": "new-rule", "name": "New", "reason": "NEW", "explanation": "It is new.", "score": 10}
    document = json.dumps({"extends": "default", "rules": [{**rule, "mode": "shadow", "when": "true"}]})
    body = {"ruleId": "new-rule", "type": "CUSTOMER", "value": "anna", "until": "2099-01-01T00:00:00Z"}
    refused = caller.post(f"{root}/rules/snoozes", body)
    assert refused.json["error"]["details"] == {"ruleId": "is no rule of the rules in force"}
    proposed = caller.post(f"{root}/rulesets", {"document": document, "note": "New.", "propose": True})
    assert proposed.status == 201, proposed.body
    assert caller.post(f"{root}/rulesets/{proposed.json['version']}/activate", {}).status == 200
    assert caller.post(f"{root}/rules/snoozes", body).status == 201
    assert caller.post(f"{root}/rulesets/rollback", {}).status == 201
    gone = caller.post(f"{root}/rules/snoozes", {**body, "value": "berta"})
    assert gone.json["error"]["details"] == {"ruleId": "is no rule of the rules in force"}
