"""What rules are worth, asked over HTTP and on the command line."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import decided, holding_tenant, steering

ROOT = "/api/v1/rules/quality"


@pytest.fixture(scope="module")
def judged(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant with three held payments, one denied one and six others; two are fraud and two legitimate."""
    caller = steering(holding_tenant(service, tmp_path_factory.mktemp("rules"), "Judged"))
    amounts = [150, 200, 300, 5000, *[5] * 6]
    events = [decided(caller, amount)["correlationIds"]["eventId"] for amount in amounts]  # type: ignore[index]
    for event, label in zip(events[2:6], ("FRAUD", "FRAUD", "LEGIT", "LEGIT"), strict=True):
        assert caller.post(f"/api/v1/feedback/event/{event}", {"label": label}).status == 201
    assert caller.post(f"/api/v1/feedback/event/{events[0]}", {"label": "FRAUD"}).status == 201
    assert caller.post(f"/api/v1/feedback/event/{events[0]}", {"label": "LEGIT"}).status == 201
    return caller


def rule_of(answer: Any, rule: str) -> Any:
    return next(one for one in answer["rules"] if one["ruleId"] == rule)


def test_each_rule_is_told_what_it_did(judged: Caller) -> None:
    answer = judged.get(ROOT).json
    asked = answer["decisions"] - 10  # Those that waited for the rules to be in force.
    assert asked >= 1
    assert (answer["held"], answer["fraud"], answer["legit"]) == (asked + 4 - _waited(answer), 2, 3)
    large, huge = rule_of(answer, "large"), rule_of(answer, "huge")
    assert (huge["hits"], huge["alone"], huge["held"], huge["fraud"], huge["legit"]) == (1, 0, 1, 1, 0)
    assert huge["amounts"] == {"EUR": 5000}
    assert huge["overlap"] == [{"ruleId": "large", "hits": 1, "share": 1.0}]
    assert large["alone"] == large["hits"] - 1
    assert (large["fraud"], large["legit"]) == (2, 1)
    assert large["precision"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert 0.2 < large["precision"]["low"] < large["precision"]["value"] < large["precision"]["high"] < 0.95
    assert large["recall"]["value"] == 1.0
    assert large["lastHitAt"] >= answer["from"]
    assert large["costUs"] > 0
    assert large["trend"] == {"hitsBefore": 0, "change": None}
    assert (large["mode"], large["failures"], large["shadow"]["hits"]) == ("active", 0, 0)


def _waited(answer: Any) -> int:
    """Decisions from before the rules were in force, which held none of them."""
    return int(answer["decisions"] - 6 - rule_of(answer, "large")["hits"])


def test_a_span_without_decisions_is_empty(judged: Caller) -> None:
    answer = judged.get(f"{ROOT}?from=1600000000&to=1600086400").json
    assert (answer["decisions"], answer["fraud"]) == (0, 0)
    assert {one["hits"] for one in answer["rules"]} == {0}
    assert answer["from"].startswith("2020-09-13")
    hour = int(time.time()) // 3600 * 3600
    assert judged.get(f"{ROOT}?from={hour - 3600}&to={hour + 3600}").json["fraud"] == 2


def test_a_span_that_ends_before_it_begins_is_refused(judged: Caller) -> None:
    assert judged.get(f"{ROOT}?from=1700000000&to=1600000000").status == 400


def test_conditions_are_not_timed_anew_for_each_who_asks(judged: Caller) -> None:
    costs = [
        [(one["ruleId"], one["costUs"]) for one in judged.get(ROOT).json["rules"] if one["costUs"]]
        for _ in range(3)
    ]
    assert costs[0] == costs[1] == costs[2] != []


def test_another_tenant_sees_nothing_of_it(service: Service, judged: Caller, tmp_path: Path) -> None:
    other = steering(Caller(service, *service.new_tenant("Other")))
    answer = other.get(ROOT).json
    assert answer["decisions"] == 0
    assert "large" not in {one["ruleId"] for one in answer["rules"]}


def test_the_command_says_the_same(service: Service, judged: Caller) -> None:
    over_http = judged.get(ROOT).json
    said = service.cli("rules", "quality", "--tenant", judged.id, "--json")
    for one in (*over_http["rules"], *said["rules"]):
        one["costUs"] = None
    assert said["rules"] == over_http["rules"]
    shown = service.cli("rules", "quality", "--tenant", judged.id).stdout
    assert "67% (21% to 94%)" in shown
