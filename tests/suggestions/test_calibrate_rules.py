"""Calibration: numbers that hold a wished share, in the core, over HTTP and on the command line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.commands.test_remote import Pipeline
from tests.live import Caller, Service
from tests.reviews.conftest import decided, holding_tenant, steering
from tests.suggestions.test_suggestions_api import ended
from vettance.rules.rule import Rule, RuleSet
from vettance.suggestions.held_traffic import HeldEvent, HeldTraffic, RuleNumber, lower_review

VALUES = st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50).map(float), min_size=1, max_size=40)


def rule(number: int, score: int) -> Rule:
    return Rule(id=f"r{number}", name="r", when="true", score=score, reason="R", explanation="r.")


@given(VALUES, st.sampled_from([">", ">=", "<", "<="]), st.integers(1, 40))
def test_a_number_lets_no_more_than_so_many_values_pass_and_is_no_laxer(
    values: list[float], sign: str, count: int
) -> None:
    number = RuleNumber(0, sign, -1e7 if sign in (">", ">=") else 1e7)
    found = number.keeping(values, count)
    assert sum(number.holds(each, found) for each in values) <= max(count, 0)
    assert all(number.holds(each, number.bound) for each in values)


def test_numbers_of_counts_stay_whole_and_others_have_few_digits() -> None:
    assert RuleNumber(0, ">=", 5).keeping([5, 6, 6, 7, 9], 2) == 7
    assert RuleNumber(0, ">", 5).keeping([6, 7, 8, 9], 2) == 7
    assert RuleNumber(0, ">", 0.75).keeping([1.23456, 2.34567, 3.45678], 1) == 2.35
    assert RuleNumber(0, "<", 60).keeping([10, 20, 30], 1) == 20


def test_rules_give_up_the_same_share_of_what_they_hold_and_no_more_than_needed() -> None:
    ruleset = RuleSet(name="r", rules=(rule(0, 60), rule(1, 60), rule(2, 60)))
    events = [HeldEvent((0,), ((0, float(value)),), (), None, fraud=False) for value in range(6, 106)]
    events += [HeldEvent((1,), ((1, float(value)),), (), None, fraud=False) for value in range(20, 30)]
    events += [HeldEvent((2,), (), (), None, fraud=False)] * 5
    events += [HeldEvent((0,), ((0, 200.0),), (), None, fraud=True)]
    held = HeldTraffic(ruleset, (RuleNumber(0, ">", 5), RuleNumber(1, ">=", 20)), events, 1.0)
    found = held.tighten(60)
    assert 55 <= found.held <= 60
    assert found.frauds == 1
    assert 52 <= found.bounds[0] <= 60
    assert found.bounds[1] in (25, 26)
    assert held.tighten(60, frozenset({1})).bounds.keys() == {0}


def test_where_numbers_are_not_enough_the_score_of_a_review_goes_up() -> None:
    ruleset = RuleSet(name="r", rules=(rule(0, 60), rule(1, 70)))
    events = [HeldEvent((0,), (), (), None, fraud=False)] * 50 + [
        HeldEvent((1,), (), (), None, fraud=False)
    ] * 5
    held = HeldTraffic(ruleset, (), events, 1.0)
    found = held.tighten(10)
    assert (found.review, found.held, found.bounds) == (61, 5, {})
    assert held.tighten(2).held == 0


def test_a_score_of_a_review_is_lowered_while_no_more_than_asked_are_held() -> None:
    passed = [900, *[0] * 99, 0]
    passed[10], passed[35], passed[40] = 60, 8, 5
    assert lower_review(60, passed, 10, 25) == 35
    assert lower_review(60, passed, 10, 16) == 40
    assert lower_review(60, passed, 10, 10) == 60


@pytest.fixture(scope="module")
def busy(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant that holds payments above 100, which every fifth is."""
    caller = steering(holding_tenant(service, tmp_path_factory.mktemp("rules"), "Busy"))
    for number in range(200):
        decided(caller, 101 + number if number % 5 == 0 else 5 + number % 90)
    return caller


def test_a_calibration_meets_the_share_and_its_draft_can_be_proposed(busy: Caller) -> None:
    found = ended(busy, {"kind": "calibration", "hold": 0.1})
    assert (found["state"], found["kind"], found["error"]) == ("completed", "calibration", None)
    result = found["result"]
    assert result["held"]["before"] > 0.15
    assert 0.05 < result["held"]["after"] <= 0.1
    assert result["reached"] is True
    large = next(one for one in result["rules"] if one["ruleId"] == "large")
    assert large["number"]["current"] == 100
    assert large["number"]["suggested"] > 150
    assert large["number"]["when"] == f"metadata.amount > {large['number']['suggested']:g}"
    assert large["held"] >= large["alone"] >= large["aloneAfter"] > 0
    draft = yaml.safe_load(result["draft"])
    assert next(one for one in draft["rules"] if one["id"] == "large")["when"] == large["number"]["when"]
    body = {"document": result["draft"], "note": "calibrated", "propose": True}
    proposed = busy.post("/api/v1/rulesets", body)
    assert (proposed.status, proposed.json["state"]) == (201, "proposed"), proposed.body


def test_a_share_that_is_kept_anyway_changes_no_number(busy: Caller) -> None:
    result = ended(busy, {"kind": "calibration", "hold": 0.9})["result"]
    assert result["reached"] is True
    assert all(
        one["number"] is None or one["number"]["suggested"] == one["number"]["current"]
        for one in result["rules"]
    )


def test_the_command_writes_a_proposal_that_the_gate_takes_and_says_the_same_of_a_server(
    service: Service, busy: Caller, tmp_path: Path
) -> None:
    out = tmp_path / "calibrated.yaml"
    asked = ("rules", "calibrate", "--tenant", busy.id, "--hold", "10%")
    text = service.cli(*asked, "--output", str(out)).stdout
    assert "asked for 10.00%" in text
    assert f"The proposal is in {out}." in text
    checked = service.cli("rules", "propose", str(out), "--tenant", busy.id, "--json")
    assert checked["state"] == "proposed"
    local = service.cli(*asked, "--json")
    assert local["kind"] == "calibration"
    remote = Pipeline(service, tmp_path, busy.id, busy.key).ask("rules", "calibrate", "--hold", "0.1")
    assert remote == local
    assert "must be a share above 0 and below 1" in service.cli(*asked[:-1], "150%", ok=False).stderr
    assert "there are no events of this time" in service.cli(*asked, "--to", "2020-01-01", ok=False).stderr


def test_amounts_beyond_all_others_move_no_number(service: Service, tmp_path: Path) -> None:
    caller = steering(holding_tenant(service, tmp_path, "Largest amounts"))
    for amount in (*[1.7e308] * 10, *range(5, 35)):
        decided(caller, amount)
    found = ended(caller, {"kind": "calibration", "hold": 0.1})
    assert (found["state"], found["error"]) == ("completed", None)
    large = next(one for one in found["result"]["rules"] if one["ruleId"] == "large")
    assert large["number"] is None or large["number"]["suggested"] == 100


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"kind": "calibration"}, "hold"),
        ({"kind": "calibration", "hold": 0}, "hold"),
        ({"kind": "calibration", "hold": 1}, "hold"),
        ({"kind": "rules", "hold": 0.1}, "hold"),
        ({"kind": "calibration", "hold": 0.1, "ruleId": "large"}, "ruleId"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(busy: Caller, body: dict[str, Any], member: str) -> None:
    answer = busy.post("/api/v1/rules/suggestions", body)
    assert answer.status == 422, answer.body
    assert member in answer.json["error"]["details"]


def test_another_tenants_calibration_is_not_found(busy: Caller, service: Service) -> None:
    found = ended(busy, {"kind": "calibration", "hold": 0.2})
    other = steering(Caller(service, *service.new_tenant("Other")))
    assert other.get(f"/api/v1/rules/suggestions/{found['suggestionId']}").status == 404
