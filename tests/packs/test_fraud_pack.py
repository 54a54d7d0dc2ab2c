"""The default fraud pack as a document: complete, consistent, admitted, bounded."""

import ast
import os
import re
from pathlib import Path

import pytest

from tests.packs.stream import compiled, parse, ruleset
from vettance.decisions.features import fraud_schema
from vettance.events.kind import EventKind
from vettance.rules.packs import PackUnknown, load_pack, load_pack_text, pack_names
from vettance.rules.packs.fraud_manual import pack_page
from vettance.rules.ruleset import Rule, admit, read_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

FAMILIES = {
    "account-takeover",
    "login-novelty",
    "new-account",
    "payment",
    "device",
    "bot",
    "geography",
    "promotion",
    "history",
}
RULES = ruleset().rules
MANUAL = Path(__file__).parents[2] / "docs" / "default-pack.md"


def test_the_pack_passes_the_gate_that_every_rule_set_must_pass() -> None:
    admit(ruleset(), fraud_schema(), parse, MemoryVelocity)


def test_the_pack_is_one_document_that_reads_as_the_same_rule_set() -> None:
    assert read_ruleset(load_pack_text("fraud")) == ruleset()


def test_an_unknown_pack_is_named_with_those_there_are() -> None:
    assert "fraud" in pack_names()
    for name in ("none", "../fraud", ""):
        with pytest.raises(PackUnknown, match="fraud"):
            load_pack(name)


def test_every_family_has_several_rules_and_there_are_enough_in_all() -> None:
    counts = {family: sum(rule.family == family for rule in RULES) for family in FAMILIES}
    assert sum(counts.values()) == len(RULES) >= 45
    assert min(counts.values()) >= 5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.id)
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", rule.reason)
    assert rule.explanation.endswith(".")
    assert 20 <= len(rule.explanation) <= 160
    assert rule.action in ruleset().actions
    assert 1 <= rule.score <= 65
    assert {test.fires for test in rule.tests} == {True, False}


def test_every_described_action_is_recommended_by_some_rule() -> None:
    assert {rule.action for rule in RULES} == set(ruleset().actions)


def test_no_rule_blocks_by_itself() -> None:
    assert all(rule.score < ruleset().thresholds.block and rule.outcome is None for rule in RULES)


def test_what_the_pack_wants_remembered_is_bounded() -> None:
    plan = compiled().plan
    assert len(plan.keys) <= 19
    assert len(plan.series) <= 76
    assert len(plan.aggregates) <= 105


def test_a_full_payment_is_recorded_in_few_series() -> None:
    event = parse(
        {
            "eventName": "payment.attempt",
            "customer": {"externalId": "c", "email": "anna@example.com"},
            "device": {"fingerprint": "d"},
            "ip": "81.2.69.160",
            "country": "GB",
            "sessionId": "s",
            "metadata": {"amount": 12.5, "cardHash": "k", "merchantId": "m", "outcome": "approved"},
        },
        0,
    )
    observation = compiled().observe(compiled().facts(event))
    assert observation.mask.bit_count() <= 22


def test_rules_speak_of_kinds_and_keys_and_never_of_one_tenants_own_names() -> None:
    for rule in RULES:
        text = " ".join(rule.when.split())
        ast.parse(text, mode="eval")
        for name in ("event.name", "event_name", "customer.external_id", "device.fingerprint"):
            assert name not in text, rule.id


def test_the_manual_page_is_that_of_the_pack() -> None:
    page = pack_page("fraud", fraud_schema(), [kind.value for kind in EventKind])
    if os.environ.get("APPROVE"):
        MANUAL.write_text(page, "utf-8")
    assert MANUAL.read_text("utf-8") == page, "run APPROVE=1 pytest tests/packs"
