"""Puts the parts of rule quality together."""

from typing import NamedTuple

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.load_ruleset import load_active
from vettance.quality.api import QualityDoors
from vettance.quality.count_decisions import DecisionLogs
from vettance.quality.count_rules import CountedLogs, RuleCounter
from vettance.quality.quality_desk import QualityDesk
from vettance.quality.quality_kind import FRAUD_QUALITY, QualityKind
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.sql import DECIDING, RuleSets


class QualityRules(NamedTuple):
    """One kind of rules: where its rule sets are, what compiles them, and what reads their conditions."""

    sets: RuleSets
    cache: RuleCache
    conditions: ConditionReader


class QualityParts(NamedTuple):
    """What counts what a question must not miss, what answers from it, the endpoint, and the rules."""

    counter: RuleCounter
    desk: QualityDesk
    doors: QualityDoors
    rules: QualityRules


def assemble_quality(store: Store, cache: RuleCache, conditions: ConditionReader) -> QualityParts:
    """Return the parts for fraud rules."""
    rules = QualityRules(DECIDING, cache, conditions)
    return quality_parts(store, DecisionLogs(store, cache), rules, FRAUD_QUALITY)


def quality_parts(store: Store, logs: CountedLogs, rules: QualityRules, kind: QualityKind) -> QualityParts:
    """Return the parts for one kind of rules, counted from its logs."""

    async def rules_of(tenant: str) -> ActiveRules:
        return await load_active(store, rules.cache, tenant, rules.sets)

    counter = RuleCounter(store, logs)
    desk = QualityDesk(store, logs, counter, rules_of, rules.conditions)
    return QualityParts(counter, desk, QualityDoors(desk, kind), rules)
