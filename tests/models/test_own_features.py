"""Features of a tenant's own: added, replaced, left out; and a model among more than its own."""

import pytest

from tests.models.test_serving import model
from vettance.errors import Invalid
from vettance.models.feature_set import Feature, FeatureSet, serving_model_of, set_in_force
from vettance.models.feature_version import find_changes, read_changes, write_changes
from vettance.models.own_features import add_own, own_document, read_own

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
        ("- hour", "an object of named expressions"),
        ("a: [", "this is not YAML"),
        ("nosuch: null", "no feature of that name comes along"),
        ("a: {family: time}", "has no expression"),
        ("a: {value: hour, family: nosuch}", "its family is one of"),
        ("hour: null\namount: null", "1 to 400"),
        ("a: &x hour\nb: *x", "anchors and aliases"),
    ],
)
def test_what_is_no_set_of_own_features_is_refused(document: str, word: str) -> None:
    with pytest.raises(Invalid) as refused:
        add_own(FOUND, document)
    assert word in str(refused.value.details)


def test_the_places_of_features_among_more_of_them() -> None:
    few = FeatureSet(tuple(FOUND), "few")
    more = FeatureSet((*FOUND[::-1], Feature("odd", "hour * 2", "time", "odd")), "more")
    assert more.places_of(few) == (1, 0)
    assert few.places_of(more) is None
    assert more.places_of(FeatureSet((FOUND[1]._replace(value="metadata.amount + 1"),), "other")) is None


def test_what_a_model_needs_is_computed_behind_the_set_in_force() -> None:
    model = FeatureSet(tuple(FOUND), "model")
    in_force = FeatureSet((FOUND[1]._replace(value="1"), Feature("odd", "hour * 2", "time", "odd")), "new")
    beside = in_force.with_those_of(model)
    assert [one.value for one in beside.features] == ["1", "hour * 2", "hour", "metadata.amount"]
    assert (set_in_force(beside.digest), serving_model_of(beside.digest)) == ("new", "model")
    assert beside.places_of(model) == (2, 3)
    assert beside.places_of(in_force) == (0, 1)
    assert model.with_those_of(model) is model
    assert (set_in_force("new"), serving_model_of("new")) == ("new", "")


def test_a_model_finds_its_own_among_more_values() -> None:
    served = model()._replace(places={})
    own = served.features.features[0]
    more = FeatureSet((*FOUND[:1], own._replace(value="metadata.other"), own), "more")
    assert served.say("more", [None, 1.0, 300.0], more).log_odds == served.say("digest", [300.0]).log_odds
    assert served.say("more", [None, 300.0, 3.0], more).log_odds == -2.0
    others = FeatureSet(more.features[:2], "others")
    for _ in range(2):
        said = served.say("others", [None, 1.0], others)
        assert said.error == "the model was made from other features"


def test_a_document_is_made_of_what_a_set_has_otherwise() -> None:
    made = add_own(FOUND, "odd: {value: hour * 2, family: time, text: twice the hour}\namount: 1\nhour: null")
    assert add_own(FOUND, own_document(FOUND, made)) == made
    assert own_document(FOUND, add_own(FOUND, "")) == ""


def test_every_fault_of_a_document_is_named_with_its_place() -> None:
    document = (
        "huor: null\n"
        "b: {value: hour, famly: time}\n"
        "c: {value: hour, family: tiem, text: ''}\n"
        "d: [1]\n"
        "not a name: hour\n"
        "e: true\n"
    )
    faults = read_own(FOUND, document).faults
    assert [(one.where, one.line) for one in faults] == [
        ("huor", 1),
        ("b", 2),
        ("c", 3),
        ("c", 3),
        ("d", 4),
        ("not a name", 5),
        ("e", 6),
    ]
    hints = [one.hint for one in faults]
    assert hints[:3] == ["did you mean hour?", "did you mean family?", "did you mean time?"]


def test_what_is_different_between_two_sets_is_told() -> None:
    before = FeatureSet(tuple(FOUND), "before")
    after = FeatureSet((FOUND[0]._replace(text="hour"), Feature("odd", "hour * 2", "time", "odd")), "after")
    changes = find_changes(before, after)
    assert [(one.kind, one.name) for one in changes] == [
        ("changed", "hour"),
        ("added", "odd"),
        ("removed", "amount"),
    ]
    assert read_changes(write_changes(changes)) == changes
    assert [one.kind for one in find_changes(None, before)] == ["added", "added"]
