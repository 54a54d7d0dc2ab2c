"""Reads the newest decisions and holds them against the model in service."""

import contextlib

import msgspec

from vettance.db.engine import Store
from vettance.decisions.sql import record_of
from vettance.learning import sql
from vettance.learning.drift import DriftedValue, find_drift
from vettance.models.feature_set import read_feature_set
from vettance.models.sql import StoredModel


async def drift_of(store: Store, tenant: str, model: StoredModel, count: int) -> list[DriftedValue]:
    """Return the drift of the probability and of each feature over the newest decisions."""
    features = read_feature_set(model.features)
    names = ("probability", *(one.name for one in features.features))
    rows = []
    for _, stored in await store.read(sql.select_newest_records(tenant, count)):
        with contextlib.suppress(Exception):  # A damaged record tells nothing.
            record = record_of(stored)
            if record.feature_set == features.digest and record.model is not None:
                rows.append((record.model.probability, *record.features))
    return find_drift(msgspec.json.decode(model.card)["distribution"], names, rows)
