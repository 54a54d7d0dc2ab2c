"""Names the numbers in the records of AML events, by the rules that each was watched by."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from vettance.aml.sql import RULE_SETS, AmlRecord
from vettance.db.engine import Store
from vettance.errors import Refusal
from vettance.learning.alert_values import numbers_of
from vettance.rules.compiler import CompiledRules
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema

#: Versions whose names are kept.
_VERSIONS_MAX: Final = 64
_record_of: Final = msgspec.json.Decoder(AmlRecord).decode


def facts_of(record: AmlRecord, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers of a record: facts of the event, then what was counted, as `names` call them."""
    return numbers_of(zip(names, (*record.facts, *record.answers), strict=False))


def names_of(compiled: CompiledRules) -> tuple[str, ...]:
    """Return what records call the facts and aggregates of some rules."""
    return (*compiled.fact_names, *compiled.plan.aggregate_names)


class AlertFacts:
    """Reads the numbers of records. What cannot be read tells nothing."""

    def __init__(self, store: Store, schema: Schema) -> None:
        self._store = store
        self._schema = schema
        self._names: dict[tuple[str, int], tuple[str, ...]] = {}

    async def read(self, tenant: str, record: bytes | None) -> dict[str, float]:
        """Return the numbers of a record of a tenant by name."""
        if record is None:
            return {}
        try:
            found = _record_of(record)
        except msgspec.MsgspecError:
            return {}
        return facts_of(found, await self._names_of(tenant, found.ruleset_version))

    async def _names_of(self, tenant: str, version: int) -> tuple[str, ...]:
        known = self._names.pop((tenant, version), None)
        if known is None:
            known = await self._compile(tenant, version)
        self._names[tenant, version] = known
        while len(self._names) > _VERSIONS_MAX:
            del self._names[next(iter(self._names))]
        return known

    async def _compile(self, tenant: str, version: int) -> tuple[str, ...]:
        rows = await self._store.read(RULE_SETS.select_version(tenant, version))
        if not rows:
            return ()
        try:
            _, compiled = await asyncio.to_thread(compile_document, rows[0][0], self._schema)
        except Refusal:
            return ()  # This code no longer accepts it.
        return names_of(compiled)
