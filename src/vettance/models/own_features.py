"""Features that a tenant writes itself, in addition to or instead of those that come along."""

from collections.abc import Sequence
from typing import Any

import yaml

from vettance.errors import Invalid
from vettance.models.feature_set import Feature, FeatureSet, read_feature_set, write_feature_set
from vettance.wire.payload import JSON


def add_own(found: Sequence[Feature], document: str) -> FeatureSet:
    """Return the features that come along, changed by a document of a tenant's own. Raises `Invalid`.

    `name: expression` adds a feature, or takes the place of the one of that name; `name: null` leaves it out.
    """
    own = _read_own(document)
    left_out = {name for name, said in own.items() if said is None}
    added = {name: said for name, said in own.items() if said is not None}
    known = {one.name for one in found}
    if unknown := sorted(left_out - known):
        raise Invalid(
            "The feature set leaves out what does not come along.",
            dict.fromkeys(unknown, "no feature of that name comes along; `vettance model features show`"),
        )
    features = {one.name: one for one in found if one.name not in left_out}
    if added:
        written = yaml.safe_dump(added, sort_keys=False, allow_unicode=True)
        features |= {one.name: one for one in read_feature_set(written).features}
    return read_feature_set(write_feature_set(list(features.values())))


def _read_own(document: str) -> JSON:
    try:
        own: Any = yaml.safe_load(document)
    except yaml.YAMLError as error:
        raise Invalid("The feature set is no YAML.", {"features": str(error).splitlines()[0]}) from None
    if own is None:
        return {}
    if not isinstance(own, dict):
        raise Invalid("A feature set is an object of named expressions.", {})
    return {str(name): said for name, said in own.items()}


def places_in(of: FeatureSet, among: FeatureSet) -> tuple[int, ...] | None:
    """Return the places of the features of one set in another; None where one is not in it."""
    places = {(one.name, one.value): place for place, one in enumerate(among.features)}
    found = [places.get((one.name, one.value)) for one in of.features]
    return None if None in found else tuple(place for place in found if place is not None)


def are_among(document: str, among: str) -> bool:
    """Tell whether one document of features has all those of another."""
    return document == among or places_in(read_feature_set(document), read_feature_set(among)) is not None
