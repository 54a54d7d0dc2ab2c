"""The AML pack: admitted by the gate, complete, bounded, and documented as it is."""

import os
import re
from pathlib import Path

import pytest

from vettance.aml.features import aml_schema
from vettance.aml.pack_manual import CATALOGUE_RULES, TYPOLOGY_RULES, aml_pack_page
from vettance.aml.rule_trial import Trial
from vettance.rules.packs import load_pack
from vettance.rules.rule import Rule
from vettance.rules.ruleset import admit, compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

PACK = load_pack("aml")
PAGE = Path(__file__).parents[2] / "docs" / "aml-pack.md"


def test_the_pack_passes_the_gate_that_every_rule_set_must_pass() -> None:
    trial = Trial(MemoryVelocity())
    admit(PACK, aml_schema(), trial.parse, trial.maker())


@pytest.mark.parametrize("rule", PACK.rules, ids=lambda rule: rule.id)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.id)
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", rule.reason)
    assert rule.explanation.endswith(".")
    assert rule.action in PACK.actions
    assert {test.fires for test in rule.tests} == {True, False}


@pytest.mark.parametrize(
    "typology",
    [
        *("STRUCTURING", "SMURFING", "FAN_IN", "FAN_OUT", "CYCLE", "SCATTER_GATHER", "GATHER_SCATTER"),
        *("BIPARTITE", "LAYERING", "RAPID_IN_OUT", "DORMANT_ACCOUNT", "HIGH_RISK_JURISDICTION"),
        *("ROUND_AMOUNTS", "VELOCITY_BURST", "PROFILE_MISMATCH", "MULE_ACCOUNT", "TRADE_MISPRICING"),
        *("FUNNEL_ACCOUNT", "MANY_COUNTERPARTIES", "EARLY_REPAYMENT", "NEW_INSTRUMENT", "SHARED_INSTRUMENT"),
        *("CALL_FOR_ACTION_JURISDICTION", "SANCTIONED_JURISDICTION"),
    ],
)
def test_every_typology_alerts_by_a_rule_of_its_own(typology: str) -> None:
    strong = [rule for rule in PACK.rules if rule.reason == typology and rule.mode == "active"]
    assert any(rule.score >= PACK.thresholds.review or rule.outcome == "REVIEW" for rule in strong)


def test_the_tables_of_typologies_and_of_the_catalogue_name_rules_that_are_there() -> None:
    ids = {rule.id for rule in PACK.rules}
    for _, rules in TYPOLOGY_RULES:
        assert ids.issuperset(rules)
    for _, _, rules in CATALOGUE_RULES:
        assert ids.issuperset(rules)
    numbers = ", ".join(number for number, _, _ in CATALOGUE_RULES).split(", ")
    assert len(numbers) == len(set(numbers)) == 33


def test_what_the_pack_wants_remembered_is_bounded() -> None:
    plan = compile_ruleset(PACK, aml_schema()).plan
    assert len(plan.keys) <= 12
    assert len(plan.series) <= 66
    assert len(plan.aggregates) <= 109


def test_the_manual_page_is_that_of_the_pack() -> None:
    page = aml_pack_page()
    if os.environ.get("APPROVE"):
        PAGE.write_text(page, "utf-8")
    assert PAGE.read_text("utf-8") == page, "run APPROVE=1 pytest tests/aml"
