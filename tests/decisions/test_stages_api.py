"""Roll-outs, dates and hold-outs in decisions: recorded, explained, and computed again as they were."""

from typing import Any

import pytest

from tests.live import Caller, Service
from vettance.rules.rollout import is_within

EVALUATE = "/api/v1/decisions/evaluate"
RULE = """  - id: {id}
    name: A rule
    when: metadata.amount > 10
    score: {score}
    reason: {reason}
    explanation: It is above ten.
    {more}
    tests:
      - {{name: it fires, event: {{eventName: a, metadata: {{amount: 11}}}}, fires: true}}
      - {{name: it does not, event: {{eventName: a, metadata: {{amount: 10}}}}, fires: false}}
"""
STAGED = "name: staged\nexplore: {percent: 50, below: 1000}\nrules:\n" + "".join(
    RULE.format(id=name, score=score, reason=name.upper(), more=more)
    for name, score, more in (
        ("part", 20, "rollout: 40"),
        ("old", 50, "until: 2020-01-01"),
        ("new", 50, "from: 2030-01-01"),
        ("now", 70, "from: 2020-01-01"),
    )
)
INSIDE, OUTSIDE = (
    [one for one in (f"c-{n}" for n in range(200)) if is_within(50, "explore", one) is held]
    for held in (True, False)
)


@pytest.fixture(scope="module")
def staged(service: Service) -> Caller:
    tenant = Caller(service, *service.new_tenant("Staged"))
    made = service.cli("key", "create", "--tenant", tenant.id, "--scope", "rules", "--json")
    rules = Caller(service, tenant.id, made["apiKey"])
    pushed = rules.post("/api/v1/rulesets", {"document": STAGED, "activate": True})
    assert pushed.status == 201, pushed.body
    service.wait_for(lambda: decided(tenant, OUTSIDE[0], 5)["ruleVersion"]["version"] == "2")
    return tenant


def decided(tenant: Caller, customer: str, amount: float) -> Any:
    body = {"eventName": "a", "customer": {"externalId": customer}, "metadata": {"amount": amount}}
    return tenant.post(EVALUATE, body).json


def explained(tenant: Caller, decision: Any) -> Any:
    return tenant.get(f"/api/v1/decisions/{decision['correlationIds']['eventId']}").json["outputs"]


def is_identical(tenant: Caller, decision: Any) -> Any:
    """Compute a decision again from its record."""
    event_id = decision["correlationIds"]["eventId"]
    return tenant.service.cli("decisions", "replay", event_id, "--tenant", tenant.id, "--json")["identical"]


def test_a_rule_acts_for_its_share_and_in_its_time(staged: Caller) -> None:
    for share in (True, False):
        customer = next(one for one in OUTSIDE if is_within(40, "part", one) is share)
        decision = decided(staged, customer, 20)
        assert (decision["decision"], decision["riskScore"]) == (("deny", 90) if share else ("review", 70))
        assert {one["code"] for one in decision["reasonCodes"]} == ({"PART", "NOW"} if share else {"NOW"})
        outputs = explained(staged, decision)
        rules = {one["ruleId"]: one for one in outputs["rules"]}
        assert rules["part"]["matched"] is True
        assert rules["part"]["mode"] == ("active" if share else "shadow")
        assert rules["part"].get("withheld") == (None if share else "rollout")
        for name in ("old", "new"):
            assert (rules[name]["matched"], rules[name]["mode"]) == (False, "off")
        assert outputs["riskScore"] == decision["riskScore"]
        assert "heldOut" not in outputs
        assert is_identical(staged, decision)


def test_a_hold_out_lets_some_through_and_says_what_they_would_have_been(staged: Caller) -> None:
    customer = next(one for one in INSIDE if is_within(40, "part", one))
    decision = decided(staged, customer, 20)
    assert (decision["decision"], decision["riskScore"]) == ("approve", 59)
    assert decision["recommendedActions"] == []
    outputs = explained(staged, decision)
    assert (outputs["heldOut"], outputs["withoutHoldOut"]) == (True, "deny")
    assert outputs["decision"] == "approve"
    assert is_identical(staged, decision)
    above = decided(staged, customer, 1_000.01)
    assert above["decision"] == "deny"
    fingerprint = "fp-held-out"
    assert staged.post("/api/v1/lists/device", {"fingerprint": fingerprint}).status == 201

    def listed() -> Any:
        body = {"eventName": "a", "customer": {"externalId": customer}, "metadata": {"amount": 20}}
        return staged.post(EVALUATE, {**body, "device": {"fingerprint": fingerprint}}).json["decision"]

    staged.service.wait_for(lambda: listed() == "deny")
