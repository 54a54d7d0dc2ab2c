"""Finds the places of the features of a model in the values that a decision's record has."""

from vettance.db.engine import Store
from vettance.errors import Invalid
from vettance.models import feature_version_sql, sql
from vettance.models.feature_set import FeatureSet, read_feature_set, serving_model_of, set_in_force


async def find_places(
    store: Store, tenant: str, features: FeatureSet, recorded: str
) -> tuple[int, ...] | None:
    """Return the places of a model's features in the values of a record; None where that is not known.

    `recorded` is the digest that the record names: of the set that was in force then, and of the model's own
    features where that set had not all of them.
    """
    digest = set_in_force(recorded)
    if digest == features.digest:
        return tuple(range(len(features.features)))
    in_force = await _find_set(store, tenant, digest)
    if in_force is None:
        return None
    places = in_force.places_of(features)
    if places is None and serving_model_of(recorded) == features.digest:
        places = in_force.with_those_of(features).places_of(features)
    return places


async def _find_set(store: Store, tenant: str, digest: str) -> FeatureSet | None:
    rows = await store.read(feature_version_sql.select_features_by_digest(tenant, digest))
    rows += await store.read(sql.select_features(tenant))
    for document, *_ in rows:
        try:
            found = read_feature_set(document)
        except Invalid:
            continue
        if found.digest == digest:
            return found
    return None
