"""A tenant that labels gets a model of its own: trained, served, explained, steered and taken back."""

import random
import time
from typing import Any

import pytest

from tests.learning.conftest import pay
from tests.live import Caller, Service
from tests.reviews.conftest import steering

ROOT = "/api/v1/models"


def shown(caller: Caller, event: str) -> Any:
    return caller.get(f"/api/v1/decisions/{event}").json


def awaited_model(caller: Caller, **wanted: Any) -> Any:
    """Have payments of a stolen card decided until the model says what is wanted; the last decision."""
    draw = random.Random(time.time_ns())
    until = time.monotonic() + 15
    while True:
        event, _ = pay(caller, 1_000, draw)
        found = shown(caller, event)
        model = found["outputs"]["model"] or {}
        if all(model.get(name) == value for name, value in wanted.items()):
            return found
        assert time.monotonic() < until, found["outputs"]["model"]
        time.sleep(0.2)


def test_a_decision_says_what_the_model_said_and_why(learner: Caller) -> None:
    champion = learner.service.cli("model", "show", "--tenant", learner.id, "--json")["champion"]
    found = awaited_model(learner, version=champion, mode="shadow")
    model = found["outputs"]["model"]
    assert model["probability"] > 0.5
    assert model["score"] >= 85
    assert "error" not in model
    odds = model["base"] + sum(one["effect"] for one in model["contributions"])
    assert 1 / (1 + 2.718281828459045**-odds) == pytest.approx(model["probability"], abs=1e-6)
    assert {"feature", "value", "effect", "text"} <= model["contributions"][0].keys()
    event = learner.get(f"/api/v1/events/{found['id']}").json
    assert event["outputs"]["model"]["probability"] == model["probability"]
    assert learner.service.cli("decisions", "replay", found["id"], "--tenant", learner.id, "--json")[
        "identical"
    ]


def test_an_active_model_acts_and_says_so(learner: Caller) -> None:
    passive = awaited_model(learner, mode="shadow")["outputs"]
    assert not [one for one in passive["reasonCodes"] if one["code"].startswith("MODEL_")]
    learner.service.cli("model", "set", "--tenant", learner.id, "--mode", "active", "--json")
    active = awaited_model(learner, mode="active")["outputs"]
    assert active["decision"] in ("review", "deny")
    points = sum(one["score"] for one in active["rules"] if one["matched"] and one["mode"] == "active")
    # What the model says stays below a block; the rules may go beyond.
    assert active["riskScore"] >= max(min(active["model"]["score"], 84), min(points, 84))
    reasons = [one for one in active["reasonCodes"] if one["code"].startswith("MODEL_")]
    assert 1 <= len(reasons) <= 3
    learner.service.cli("model", "set", "--tenant", learner.id, "--may-block", "on", "--json")
    learner.service.wait_for(
        lambda: awaited_model(learner, mode="active")["outputs"]["decision"] == "deny", seconds=10
    )
    learner.service.cli("model", "set", "--tenant", learner.id, "--mode", "shadow", "--may-block", "off")
    awaited_model(learner, mode="shadow")


def test_models_are_listed_with_their_cards(learner: Caller) -> None:
    page = learner.get(ROOT).json
    assert page["total"] == len(page["data"]) >= 1
    one = page["data"][0]
    whole = learner.get(f"{ROOT}/{one['version']}").json
    assert whole["card"]["frauds"] >= 50
    assert whole["card"]["from"] < whole["card"]["to"]
    assert whole["card"]["gain"]
    assert "gain" not in one["card"]
    assert {one["state"] for one in page["data"]} <= {"champion", "challenger"}
    for wrong in ("0", "01", "99999999999", "x", "-1", "+1"):
        assert learner.get(f"{ROOT}/{wrong}").status == 404


def test_another_tenant_sees_nothing_of_them(service: Service, learner: Caller) -> None:
    stranger = steering(Caller(service, *service.new_tenant("Stranger")))
    assert stranger.get(ROOT).json["data"] == []
    assert stranger.get(f"{ROOT}/1").status == 404
    assert Caller(service, *service.new_tenant("Plain")).get(ROOT).status == 403


def test_a_rule_may_ask_the_model(learner: Caller, tmp_path: Any) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        "extends: default\nrules:\n  - {id: by-model, name: By the model, when: model.probability > 0.2, "
        "score: 5, reason: BY_MODEL, explanation: The model is sure., mode: shadow}\n"
    )
    learner.service.cli("rules", "push", str(file), "--tenant", learner.id, "--yes", "--json")

    def fires() -> bool:
        found = awaited_model(learner, mode="shadow")
        rules = {one["ruleId"]: one["matched"] for one in found["outputs"]["rules"]}
        return rules.get("by-model", False) is True

    learner.service.wait_for(fires, seconds=60)
    found = awaited_model(learner, mode="shadow")
    replayed = learner.service.cli("decisions", "replay", found["id"], "--tenant", learner.id, "--json")
    assert replayed["identical"], replayed


def test_a_model_is_turned_off_taken_back_and_promoted(learner: Caller) -> None:
    cli = learner.service.cli
    champion = cli("model", "show", "--tenant", learner.id, "--json")["champion"]
    assert "Average precision" in cli("model", "card", "--tenant", learner.id).stdout
    assert any(
        one["name"] == "probability" for one in cli("model", "drift", "--tenant", learner.id, "--json")
    )
    cli("model", "off", "--tenant", learner.id, "--json")
    learner.service.wait_for(
        lambda: shown(learner, pay(learner, 1_000, random.Random(1))[0])["outputs"]["model"] is None,
        seconds=10,
    )
    said = cli("model", "mode", "shadow", "--tenant", learner.id, "--json")
    assert (said["mode"], said["champion"]) == ("shadow", champion)
    awaited_model(learner, version=champion)
    assert cli("model", "rollback", "--tenant", learner.id, "--json")["champion"] != champion
    assert cli("model", "promote", str(champion), "--tenant", learner.id, "--json")["champion"] == champion
    awaited_model(learner, version=champion)
    assert cli("model", "promote", "77", "--tenant", learner.id, ok=False).returncode == 1


def test_of_an_erased_customer_nothing_is_learned_any_more(learner: Caller) -> None:
    train = ("model", "train", "--tenant", learner.id, "--wait", "--json")
    learner.service.cli(*train)
    before = learner.get(ROOT).json["data"][0]
    learner.service.cli("customer", "erase", "--tenant", learner.id, "--external-id", "c7", "--json")
    learner.service.cli(*train)
    after = learner.get(ROOT).json["data"][0]
    assert after["version"] == before["version"] + 1
    assert 0 < before["card"]["rows"] - after["card"]["rows"] < 20
    assert after["card"]["frauds"] == before["card"]["frauds"]
