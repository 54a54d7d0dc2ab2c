"""Which decisions of earlier feature sets training reads, and where their values are in the records."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vettance.models.feature_set import FeatureSet, set_of


class SetsTaken(NamedTuple):
    """The features that a model is made from, and where they are in the records of each set, by its digest.

    These are the features that all sets have. One that only the newest decisions have would tell how old a
    decision is, and of the newest hardly any counts but those that were labelled.
    """

    features: FeatureSet
    places: Mapping[str, tuple[int, ...]]

    def values(self, digest: str, recorded: Sequence[float | None]) -> tuple[float | None, ...] | None:
        """Return the values of the features in a record of a set; None of a set that is not taken."""
        places = self.places.get(digest)
        return None if places is None else tuple(recorded[place] for place in places)


def take_sets(sets: Sequence[FeatureSet]) -> SetsTaken:
    """Take the decisions of these sets, the first of which is in force."""
    features, *earlier = sets
    known = [{(one.name, one.value) for one in each.features} for each in earlier]
    common = [one for one in features.features if all((one.name, one.value) in each for each in known)]
    made_from = features if len(common) == len(features.features) else set_of(common)
    found = ((each.digest, each.places_of(made_from)) for each in sets)
    return SetsTaken(made_from, {digest: places for digest, places in found if places is not None})
