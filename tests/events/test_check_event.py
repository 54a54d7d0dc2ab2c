"""Checking an event says what reading it says, whatever it looks like."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.errors import Refusal
from vettance.events.event import Category, check_event, read_event
from vettance.wire.payload import (
    JSON,
    OBJECT_BYTES_MAX,
    OBJECT_DEPTH_MAX,
    OBJECT_KEYS_MAX,
    STRING_CHARS_MAX,
    parse_object,
)

NOW_MS = 1_800_000_000_000
texts = st.sampled_from(["", "x", "a b", "é" * STRING_CHARS_MAX, "x" * (STRING_CHARS_MAX + 1)])
moments = st.sampled_from(
    [None, NOW_MS // 1000, NOW_MS / 1000, "2027-01-15T08:00:00Z", "1999-01-01", "soon", True]
)
strangers = st.sampled_from([None, 0, 1.5, True, "s", [], ["x"], {}, {"a": {"b": [1]}}])
objects = st.dictionaries(
    st.sampled_from(["a", "occurredAt", "occurred_at", "sessionId", "location"]), moments | strangers
)
parties = st.fixed_dictionaries(
    {},
    optional={
        "externalId": texts | strangers,
        "email": texts,
        "fingerprint": texts,
        "metadata": objects | strangers,
    },
)
bodies = st.fixed_dictionaries(
    {"eventName": texts | st.just("login")},
    optional={
        "eventCategory": st.sampled_from([*Category, "login", None, 7]),
        "customer": parties | strangers,
        "device": parties,
        "ip": texts | strangers,
        "userAgent": texts,
        "country": texts,
        "sessionId": texts | strangers,
        "location": strangers,
        "occurredAt": moments,
        "metadata": objects | strangers,
        "custom_fields": objects | strangers,
        "payload": objects,
        "stranger": strangers,
    },
)


def said(body: JSON, *, checked: bool) -> object:
    """Return the name of the event, or what is wrong with it."""
    sent = json.dumps(body).encode()
    body = parse_object(sent)
    try:
        return check_event(body, sent, NOW_MS) if checked else read_event(body, sent, NOW_MS).name
    except Refusal as refusal:
        return refusal.status, refusal.details


@given(bodies)
def test_an_event_is_checked_as_it_is_read(body: JSON) -> None:
    assert said(body, checked=True) == said(body, checked=False)


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": "y" * OBJECT_BYTES_MAX},
        {str(key): 0 for key in range(OBJECT_KEYS_MAX)},
        {str(key): 0 for key in range(OBJECT_KEYS_MAX + 1)},
        {"a": json.loads("[" * (OBJECT_DEPTH_MAX - 1) + "]" * (OBJECT_DEPTH_MAX - 1))},
        {"a": json.loads("[" * OBJECT_DEPTH_MAX + "]" * OBJECT_DEPTH_MAX)},
    ],
)
def test_what_is_checked_is_held_to_the_same_bounds(metadata: JSON) -> None:
    for member in ("metadata", "payload"):
        body = {"eventName": "x", member: metadata}
        assert said(body, checked=True) == said(body, checked=False)
