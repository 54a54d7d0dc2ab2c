"""Features of a tenant's own: added, replaced, left out; and a model among more than its own."""

import pytest

from tests.models.test_serving import model
from vettance.errors import Invalid
from vettance.models.feature_set import Feature, FeatureSet
from vettance.models.own_features import add_own, are_among, places_in

FOUND = [
    Feature("hour", "hour", "time", "hour of the day (UTC)"),
    Feature("amount", "metadata.amount", "amount", "amount"),
]


def test_own_features_are_added_replaced_and_left_out() -> None:
    made = add_own(FOUND, "odd: {value: hour * 2, family: time, text: twice the hour}\namount: 1\nhour: null")
    assert made.features == (
        Feature("amount", "1", "behaviour", "amount"),
        Feature("odd", "hour * 2", "time", "twice the hour"),
    )
    assert add_own(FOUND, "").features == tuple(FOUND)
    assert add_own(FOUND, "{}").digest == add_own(FOUND, "").digest != made.digest


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ("- hour", "object"),
        ("a: [", "no YAML"),
        ("nosuch: null", "does not come along"),
        ("a: {family: time}", "not well-formed"),
        ("a: {value: hour, family: nosuch}", "not well-formed"),
        ("hour: null\namount: null", "1 to 400"),
    ],
)
def test_what_is_no_set_of_own_features_is_refused(document: str, word: str) -> None:
    with pytest.raises(Invalid, match=word):
        add_own(FOUND, document)


def test_the_places_of_features_among_more_of_them() -> None:
    more = FeatureSet((*FOUND[::-1], Feature("odd", "hour * 2", "time", "odd")), "more")
    assert places_in(FeatureSet(tuple(FOUND), "few"), more) == (1, 0)
    assert places_in(more, FeatureSet(tuple(FOUND), "few")) is None
    other = FeatureSet((FOUND[0], FOUND[1]._replace(value="metadata.amount + 1")), "other")
    assert places_in(other, more) is None
    assert are_among("amount: metadata.amount", "hour: hour\namount: metadata.amount")
    assert not are_among("hour: hour\namount: metadata.amount", "amount: metadata.amount")


def test_a_model_finds_its_own_among_more_values() -> None:
    served = model()._replace(picked=("more", (2,)))
    assert served.say("more", [None, 1.0, 300.0]).log_odds == served.say("digest", [300.0]).log_odds == 2.0
    assert served.say("more", [None, 1.0, 3.0]).log_odds == -2.0
    assert served.say("others", [None, 1.0, 3.0]).error == "the model was made from other features"
