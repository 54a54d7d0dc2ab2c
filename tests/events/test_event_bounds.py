"""Free-form objects of an event are held to their bounds, however short the body is."""

import json

import pytest

from vettance.errors import Invalid, Refusal, Unprocessable
from vettance.events.event import read_event
from vettance.wire import JSON, OBJECT_BYTES_MAX, OBJECT_DEPTH_MAX, OBJECT_KEYS_MAX

NOW_MS = 1_800_000_000_000


def nested(depth: int) -> JSON:
    value: JSON = {}
    for _ in range(depth - 1):
        value = {"": value}
    return value


def fault(body: JSON) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read_event(body, len(json.dumps(body)), NOW_MS)
    return caught.value


@pytest.mark.parametrize("member", ["metadata", "custom_fields", "payload"])
def test_an_object_may_be_ten_levels_deep_and_no_deeper(member):
    body = {"eventName": "x", member: nested(OBJECT_DEPTH_MAX)}
    read_event(body, len(json.dumps(body)), NOW_MS)
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
