"""Puts the parts of the quality of AML rules together."""

from vettance.aml.quality.answers import AML_QUALITY
from vettance.aml.quality.count_alerts import WatchLogs
from vettance.aml.sql import RULE_SETS
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import RuleCache
from vettance.quality.quality_parts import QualityParts, QualityRules, quality_parts
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema


def assemble_aml_quality(store: Store, schema: Schema) -> QualityParts:
    """Return what answers from the counts of AML rules, and the endpoint."""
    cache = RuleCache(lambda document: compile_document(document, schema))
    rules = QualityRules(RULE_SETS, cache, ConditionReader(schema))
    return quality_parts(store, WatchLogs(store, cache), rules, AML_QUALITY)
