"""Holds the newest decisions against the model in service: on demand, and once a week for each tenant."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Clash, Store
from vettance.db.log_walk import END
from vettance.decisions.sql import record_of
from vettance.learning import drift_sql
from vettance.learning.drift import MeasuredDrift, find_drift
from vettance.models.feature_set import read_feature_set
from vettance.models.find_recorded import find_places
from vettance.models.serving_model import Places
from vettance.models.sql import StoredModel, select_model
from vettance.telemetry.logs import logger

DRIFT_ROWS: Final = 5_000
WEEK_MS: Final = 7 * DAY_MS
#: How often it is asked whether a week is over, and whether a new model has decided enough.
_LOOK_MS: Final = HOUR_MS
_PIECE: Final = 250

_log = logger()


async def drift_of(
    store: Store, tenant: str, model: StoredModel, now_ms: int, count: int = DRIFT_ROWS
) -> MeasuredDrift:
    """Return the drift over the newest decisions that this model scored, of the newest `count` of all."""
    features = read_feature_set(model.features)
    names = ("probability", *(one.name for one in features.features))
    rows: list[Sequence[float | None]] = []
    places: Places = {}
    before, left = END, count
    # In pieces: who decides meanwhile must not wait for thousands of records.
    while left > 0 and (
        found := await store.read(drift_sql.select_records(tenant, before, min(_PIECE, left)))
    ):
        before, left = found[-1][0], left - len(found)
        for _, _, stored in found:
            with contextlib.suppress(Exception):  # A damaged record tells nothing.
                record = record_of(stored)
                said = record.model
                if said is None or said.version != model.version or said.probability is None:
                    continue
                recorded = record.feature_set
                if recorded not in places:
                    places[recorded] = await find_places(store, tenant, features, recorded)
                if (at := places[recorded]) is not None:
                    rows.append((said.probability, *(record.features[place] for place in at)))
    distribution = msgspec.json.decode(model.card)["distribution"]
    values = await asyncio.to_thread(find_drift, distribution, names, rows)
    return MeasuredDrift(model.version, now_ms, len(rows), values)


class DriftWatcher:
    """Measures the drift of each tenant once a week, and of a new model as soon as it has decided enough."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_ms: dict[str, int] = {}

    async def look(self, tenant: str, champion: int, now_ms: int) -> MeasuredDrift | None:
        """Measure where it is due, and keep what was found."""
        if now_ms - self._looked_ms.get(tenant, -_LOOK_MS) < _LOOK_MS:
            return None
        self._looked_ms[tenant] = now_ms
        known = await self._store.read(drift_sql.select_drifts(tenant, 1))
        if known and known[0][1] == champion and now_ms - known[0][0] < WEEK_MS:
            return None
        rows = await self._store.read(select_model(tenant, champion))
        if not rows:
            return None
        found = await drift_of(self._store, tenant, StoredModel(*rows[0]), now_ms)
        if not found.is_enough:
            return None
        with contextlib.suppress(Clash):
            await self._store.write(
                drift_sql.insert_drift(tenant, found), drift_sql.forget_older_drifts(tenant, now_ms)
            )
        if found.warned:
            _log.warning(
                "model_drifts",
                tenant=tenant,
                version=champion,
                largest=found.largest,
                values=[one.name for one in found.warned[:10]],
            )
        return found
