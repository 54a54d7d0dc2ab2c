"""Puts the parts of rule quality together."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.load_ruleset import load_active
from vettance.quality.api import QualityDoors
from vettance.quality.count_rules import RuleCounter
from vettance.quality.quality_desk import QualityDesk
from vettance.rules.rule_reads import ConditionReader


class QualityParts(NamedTuple):
    """What counts behind the log, what answers from the counts, and the endpoint."""

    counter: RuleCounter
    desk: QualityDesk
    doors: QualityDoors


def assemble_quality(
    store: Store, cache: RuleCache, conditions: ConditionReader, tenants: Callable[[], Iterable[str]]
) -> QualityParts:
    """Return the parts."""

    async def rules_of(tenant: str) -> ActiveRules:
        return await load_active(store, cache, tenant)

    counter = RuleCounter(store, cache, tenants)
    desk = QualityDesk(store, counter, rules_of, conditions)
    return QualityParts(counter, desk, QualityDoors(desk))
