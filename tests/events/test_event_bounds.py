"""Free-form objects of an event are held to their bounds, however short the body is."""

import json

import pytest

from vettance.aml.aml_event import read_aml_event, read_taken_aml_event
from vettance.errors import Invalid, Refusal, Unprocessable
from vettance.events.event import read_event, read_taken_event
from vettance.wire.payload import JSON, OBJECT_BYTES_MAX, OBJECT_DEPTH_MAX, OBJECT_KEYS_MAX

NOW_MS = 1_800_000_000_000


def nested(depth: int) -> JSON:
    value: JSON = {}
    for _ in range(depth - 1):
        value = {"": value}
    return value


def fault(body: JSON) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read_event(body, json.dumps(body).encode(), NOW_MS)
    return caught.value


@pytest.mark.parametrize("member", ["metadata", "custom_fields", "payload"])
def test_an_object_may_be_ten_levels_deep_and_no_deeper(member):
    body = {"eventName": "x", member: nested(OBJECT_DEPTH_MAX)}
    read_event(body, json.dumps(body).encode(), NOW_MS)
    refusal = fault({"eventName": "x", member: nested(OBJECT_DEPTH_MAX + 1)})
    assert isinstance(refusal, Unprocessable)
    assert list(refusal.details) == [member]


def test_nested_lists_count_as_levels():
    refusal = fault({"eventName": "x", "payload": {"": json.loads("[" * 10 + "]" * 10)}})
    assert list(refusal.details) == ["payload"]


@pytest.mark.parametrize("holder", ["customer", "device"])
@pytest.mark.parametrize("value", [1, "s", [], [None], True])
def test_inner_metadata_that_is_no_object_is_a_fault_of_shape(holder, value):
    for body in ({holder: {"metadata": value}}, {"eventName": "x", holder: {"metadata": value}}):
        refusal = fault(body)
        assert isinstance(refusal, Invalid)
        assert f"{holder}.metadata" in refusal.details


def test_too_many_keys_and_too_many_bytes_are_faults_of_meaning():
    keys = fault({"eventName": "x", "metadata": {str(key): 0 for key in range(OBJECT_KEYS_MAX + 1)}})
    size = fault({"eventName": "x", "metadata": {"a": "y" * OBJECT_BYTES_MAX}})
    assert isinstance(keys, Unprocessable)
    assert isinstance(size, Unprocessable)


def lists(depth: int):
    return json.loads("[" * depth + "]" * depth)


READERS = {"fraud": read_event, "aml": read_aml_event}
BODY = {"eventName": "x", "externalEventId": "e"}


def refused(reader: str, body: JSON) -> dict[str, str]:
    with pytest.raises(Unprocessable) as caught:
        READERS[reader](body, json.dumps(body).encode(), NOW_MS)
    return caught.value.details


def placed(place: str, member: JSON) -> JSON:
    """An event with these members beyond the declared ones at a place of it."""
    return {**BODY, **member} if not place else {**BODY, place: member}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", ["", "customer", "device"])
def test_members_that_are_not_declared_are_taken_whatever_they_hold(reader, place):
    basket = [{"sku": f"s-{line}", "name": "Socks", "price": 4.5, "count": line} for line in range(3_000)]
    for members in (
        {"note": "y" * 900_000},
        {"basket": basket},
        {"note": lists(100)},
        {"note": [0] * 100_000},
        {str(key): 0 for key in range(100_000)},
        {"a": {"b": {"c": [{"d": {"e": ["f"]}}]}}, "x:y": "{[{[{[{[{[{[{[" * 5_000},
    ):
        body = placed(place, members)
        READERS[reader](body, json.dumps(body).encode(), NOW_MS)


@pytest.mark.parametrize("reader", READERS)
def test_a_location_has_any_form_within_the_bounds(reader):
    for location in ("Cork", [1, 2], {"city": {"name": "Cork"}}, 7):
        body = {**BODY, "location": location}
        READERS[reader](body, json.dumps(body).encode(), NOW_MS)
    for location in ("y" * OBJECT_BYTES_MAX, [[]] * OBJECT_BYTES_MAX, {"a": "y" * OBJECT_BYTES_MAX}):
        assert list(refused(reader, {**BODY, "location": location})) == ["location"]


def test_what_was_taken_under_wider_bounds_is_read_again_from_the_log():
    body = {**BODY, "note": "y" * 500_000, "customer": {"externalId": "c", "note": lists(100)}}
    assert read_taken_event(body, NOW_MS).extra["note"] == body["note"]
    assert read_taken_aml_event(body, NOW_MS).customer_id == "c"
