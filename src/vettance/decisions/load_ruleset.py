"""Loads the rule set of a tenant that is in force, or the last one before it that can be compiled."""

import asyncio
from typing import Final

import msgspec

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.models.feature_set import compile_with_rules, read_feature_set
from vettance.models.serving_model import ModelMode
from vettance.models.sql import select_features
from vettance.rules.packs import load_pack_text
from vettance.rules.sql import DECIDING, RuleSets, document_digest
from vettance.telemetry.logs import logger

#: The version of a tenant none of whose rule sets can be compiled: the default pack decides for it.
PACK_VERSION: Final = 0
#: Versions before the newest that are tried; each takes milliseconds.
_TRIES: Final = 10

_log = logger()


class RuleLoader:
    """Compiles the rule sets of one kind before they are put into force.

    `impaired` are the tenants whose answers are not by what the store says, and the class of the error.
    """

    def __init__(self, store: Store, cache: RuleCache, sets: RuleSets, impaired: dict[str, str]) -> None:
        self._store = store
        self._cache = cache
        self._sets = sets
        self._impaired = impaired

    async def load(self, tenant: str, version: int, document: str) -> ActiveRules:
        """Compile a tenant's newest rule set. Where that fails, its last version that compiles takes over.

        A rule set passed the gate of the version of this service that it was saved by; a later one may refuse
        it. Without any that compiles, the default pack takes over. Raises `StoreDown`.
        """
        try:
            active = await prepare(self._cache, version, document)
        except Exception as error:  # noqa: BLE001  One tenant's rules must not keep a process from its start.
            active = await self._load_older(tenant, version)
            self._impaired[tenant] = type(error).__name__
            _log.exception("rules_not_in_force", tenant=tenant, version=version, instead=active.version)
        else:
            self._impaired.pop(tenant, None)
        return await self._with_features(tenant, active)

    async def _with_features(self, tenant: str, active: ActiveRules) -> ActiveRules:
        """Compile the features of a tenant with its rules; where they do not compile, it goes without."""
        if self._cache.schema is None or self._sets is not DECIDING:
            return active
        rows = await self._store.read(select_features(tenant))
        if not rows or not rows[0][0] or rows[0][1] == ModelMode.OFF:
            return active
        for serving in dict.fromkeys((rows[0][2], None)):
            try:
                features = read_feature_set(rows[0][0])
                if serving:
                    # The model in service is scored by what it was made from, also once that has changed.
                    features = features.with_those_of(read_feature_set(serving))
                schema = self._cache.schema
                compiled = await asyncio.to_thread(compile_with_rules, active.ruleset, features, schema)
            except Exception:  # noqa: BLE001  What a model would need must not keep the rules from deciding.
                _log.exception("features_not_in_force", tenant=tenant)
                continue
            return msgspec.structs.replace(active, features=compiled, recorded=features)
        return active

    async def _load_older(self, tenant: str, newest: int) -> ActiveRules:
        versions = [row[0] for row in await self._store.read(self._sets.select_once_active(tenant))]
        for version in [one for one in versions if one != newest][:_TRIES]:
            rows = await self._store.read(self._sets.select_version(tenant, version))
            try:
                return await prepare(self._cache, version, rows[0][0])
            except Exception:  # noqa: BLE001, S112  The one before it is tried.
                continue
        return await pack_rules(self._cache, self._sets)


async def prepare(cache: RuleCache, version: int, document: str) -> ActiveRules:
    """Return a version ready to run, compiled in a thread: a large one takes a third of a second.

    Events of others are decided meanwhile. Raises `RuleSetRefused` when this code no longer accepts it.
    """
    digest = document_digest(document)
    ready = cache.find(digest)
    if ready is None:
        ready = await asyncio.to_thread(cache.compile, version, document)
    return cache.keep(version, digest, ready)


async def find_version(
    store: Store, cache: RuleCache, tenant: str, version: int, sets: RuleSets = DECIDING
) -> ActiveRules:
    """Return a version of a tenant's rules, by default those of fraud. Raises `LookupError` without one."""
    if version == PACK_VERSION:
        return await pack_rules(cache, sets)
    rows = await store.read(sets.select_version(tenant, version))
    if not rows:
        raise LookupError(f"rule set version {version} is referred to by a decision and gone")
    return await prepare(cache, version, rows[0][0])


async def load_active(store: Store, cache: RuleCache, tenant: str, sets: RuleSets = DECIDING) -> ActiveRules:
    """Return a tenant's rules that are in force by the store, by default those of fraud.

    Where it has none, the default pack.
    """
    rows = await store.read(sets.select_active(tenant))
    if not rows:
        return await pack_rules(cache, sets)
    return await prepare(cache, rows[0][0], rows[0][1])


async def pack_rules(cache: RuleCache, sets: RuleSets) -> ActiveRules:
    """Return the default pack, ready to run."""
    return await prepare(cache, PACK_VERSION, load_pack_text(sets.pack))
