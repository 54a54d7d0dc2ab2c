"""Finds, checks and changes the features that are recorded for a tenant."""

import contextlib
from typing import Any, Final

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.features import fraud_schema
from vettance.decisions.load_ruleset import load_active
from vettance.errors import Invalid
from vettance.learning import sql
from vettance.models.discovery import discover, features_of
from vettance.models.feature_set import Feature, FeatureSet, compile_with_rules, write_feature_set
from vettance.models.own_features import add_own
from vettance.rules.plan_builder import TooManyAggregates
from vettance.rules.ruleset import compile_document
from vettance.wire.payload import decode

#: Events that are looked through for keys and numbers.
EVENTS_LOOKED_THROUGH: Final = 2_000


async def find_features(store: Store, tenant: str) -> list[Feature]:
    """Return the features that come along for the keys and numbers of a tenant's newest events.

    None where it has no events yet.
    """
    rows = await store.read(sql.select_recent_bodies(tenant, EVENTS_LOOKED_THROUGH))
    bodies: list[Any] = []
    for _, sent in rows:
        with contextlib.suppress(Exception):
            bodies.append(decode(sent))
    return features_of(discover(bodies)) if bodies else []


async def check_own(store: Store, tenant: str, document: str) -> FeatureSet:
    """Return what a document of own features makes of those that come along. Raises `Invalid`.

    Each expression is checked as those of rules are, and all are compiled together with the rules in force.
    """
    features = add_own(await find_features(store, tenant), document)
    schema = fraud_schema()
    cache = RuleCache(lambda text: compile_document(text, schema), schema=schema)
    active = await load_active(store, cache, tenant)
    try:
        compile_with_rules(active.ruleset, features, schema)
    except TooManyAggregates as many:
        raise Invalid("Rules and features together ask for too much.", {"features": str(many)}) from None
    return features


def document_of(features: FeatureSet) -> str:
    """Return a set of features as it is stored."""
    return write_feature_set(features.features)
