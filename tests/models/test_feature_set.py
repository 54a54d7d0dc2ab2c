"""Feature sets: what is found in a tenant's events, and what is refused."""

from typing import Any

import pytest

from vettance.decisions.features import fraud_schema
from vettance.errors import Invalid
from vettance.models.discovery import KEYS_MAX, discover, features_of
from vettance.models.feature_set import (
    check_features,
    compile_with_rules,
    read_feature_set,
    write_feature_set,
)
from vettance.rules.ruleset import RuleSet

SCHEMA = fraud_schema()


def event(number: int, **metadata: Any) -> dict[str, Any]:
    return {"customer": {"externalId": f"c{number % 40}"}, "metadata": {"amount": number, **metadata}}


def test_keys_numbers_and_flags_are_found() -> None:
    bodies = [
        event(
            number,
            terminalId=f"t{number % 60}",
            merchant_id=number % 50,
            currency="EUR",
            channel=("web", "app")[number % 2],
            reference=f"only-once-{number}",
            distance=number / 7,
            recurring=number % 3 == 0,
        )
        for number in range(500)
    ]
    found = discover(bodies)
    names = [name for name, _ in found.keys]
    assert names[0] == "customer.key"
    assert set(names[1:]) == {"metadata.terminalId", "metadata.merchant_id"}
    assert found.numbers == ("distance",)
    assert found.flags == ("recurring",)
    assert found.has_amount


def test_every_feature_that_comes_along_compiles_for_any_members() -> None:
    bodies = [
        {
            "customer": {"email": "a@example.com"},
            "device": {"fingerprint": "f"},
            "ip": "192.0.2.1",
            "metadata": {f"key{place}": f"v{number % 20}" for place in range(60)}
            | {"amount": 1, "odd name": 2},
        }
        for number in range(200)
    ]
    found = discover(bodies)
    assert len(found.keys) == KEYS_MAX
    features = read_feature_set(write_feature_set(features_of(found)))
    compiled = compile_with_rules(RuleSet(name=""), features, SCHEMA)
    facts = tuple(None for _ in compiled.asked.fact_names)
    answers = tuple(None for _ in compiled.asked.plan.aggregates)
    values, failures = compiled.compute(facts, answers)
    assert len(values) == len(features.features)
    assert failures == []


def test_what_labels_say_of_a_key_is_a_share_that_no_single_label_makes_certain() -> None:
    found = discover(event(number, terminalId=f"t{number % 60}") for number in range(500))
    features = {one.name: one for one in features_of(found)}
    share = features["terminalId_fraud_share_14d"]
    assert share.family == "history"
    assert share.value.endswith("+ 1)")
    assert 'within="14d"' in share.value
    assert {f"customer_amount_{word}_{window}" for word in ("avg", "max") for window in ("7d", "30d")} <= set(
        features
    )


def test_odd_events_are_looked_through() -> None:
    found = discover([{}, {"metadata": None}, {"metadata": []}, {"customer": 7, "metadata": {"amount": "7"}}])
    assert found.keys == ()
    assert features_of(found)


def test_a_document_may_be_short() -> None:
    features = read_feature_set(
        "ratio: metadata.amount / avg(metadata.amount, by=customer.key, within='30d')\n"
    )
    assert [name for name, _ in check_features(features, SCHEMA)] == ["ratio"]


@pytest.mark.parametrize(
    ("document", "member"),
    [
        ("a: [", "features"),
        ("a: {value: hour, family: none}", "a"),
        ("a: {family: time}", "a"),
    ],
)
def test_what_is_no_feature_set_is_refused(document: str, member: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_feature_set(document)
    assert member in refused.value.details


@pytest.mark.parametrize("value", ["metadata.amount >", "nosuch", "hour > 3", "model.score + 1"])
def test_an_expression_that_gives_no_number_is_refused(value: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_features(read_feature_set(f"a: {value!r}"), SCHEMA)
    assert "a" in refused.value.details


@pytest.mark.parametrize("document", ["", "[]", "{}"])
def test_an_empty_document_is_refused(document: str) -> None:
    with pytest.raises(Invalid):
        read_feature_set(document)
