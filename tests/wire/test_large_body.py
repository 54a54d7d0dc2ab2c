"""Large bodies are parsed in steps of bounded work, and mean what they mean when parsed at once."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.aml.aml_event import AmlEventBody
from vettance.errors import Invalid, Refusal, Unprocessable
from vettance.events.event import EventBody
from vettance.wire.declared import hold_bounds
from vettance.wire.large_body import (
    PIECE_BYTES_MIN,
    UNDECLARED_VALUES_MAX,
    UNREAD_MEMBER,
    parse_body,
    parse_in_steps,
)
from vettance.wire.payload import BODY_BYTES_MAX, OBJECT_BYTES_MAX, Faults, parse_object

BLANKS = b" " * 70_000


def parsed(body: bytes, shape: type | None = EventBody) -> Any:
    steps = parse_in_steps(body, shape)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def values() -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.floats(allow_nan=False)
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


names = st.sampled_from(("eventName", "metadata", "customer", "location", "ip", "note", "x")) | st.text()


@pytest.mark.slow
@given(st.dictionaries(names, values()), st.sampled_from((EventBody, AmlEventBody, None)))
def test_a_body_means_what_it_means_when_it_is_parsed_at_once(body: Any, shape: type | None) -> None:
    sent = json.dumps(body).encode()[:-1] + BLANKS + b"}"
    assert outcome(lambda: parsed(sent, shape)) == outcome(lambda: parse_object(sent))


def outcome(parse: Callable[[], Any]) -> Any:
    """What was parsed, or with which status and details it was refused."""
    try:
        return parse()
    except Refusal as refusal:
        return refusal.status, refusal.details


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_what_is_no_object_is_refused_as_it_is_at_once(body: bytes) -> None:
    sent = body + BLANKS
    at_once, in_steps = outcome(lambda: parse_object(sent)), outcome(lambda: parsed(sent))
    # Of what is neither an object nor JSON either may be said.
    assert in_steps == at_once or (in_steps[0] == at_once[0] == 400)


def fill(element: bytes, total: int) -> bytes:
    """An object with a list of one element again and again, of so many bytes as JSON without blanks."""
    count = (total - len(b'{"a":[""]}')) // (len(element) + 1)
    inside = b",".join([element] * count) + b","
    rest = total - len(b'{"a":[""]}') - len(inside)
    return b'{"a":[' + inside + b'"' + b"x" * rest + b'"]}'


FREE = ("metadata", "custom_fields", "payload")


@pytest.mark.parametrize("element", [b"[]", b"{}", b"0", b'""', b'",[{"', b'"\\\\\\""', b"[[[0]]]"])
def test_all_that_is_within_the_bounds_is_taken_though_it_is_large(element: bytes) -> None:
    value = fill(element, OBJECT_BYTES_MAX)
    if b"\\" not in element:
        assert len(value) == len(json.dumps(json.loads(value), separators=(",", ":")))
    inner = b'{"metadata":' + value + b"}"
    members = [b'"%s":%s' % (name.encode(), value) for name in FREE]
    members += [b'"customer":' + inner, b'"device":' + inner, b'"location":' + value]
    sent = (
        b'{"eventName":"x",'
        + b",".join(members)
        + b',"more":'
        + fill(b'"' + b"x" * 20 + b'"', 200_000)
        + b"}"
    )
    body = parsed(sent)
    assert body == json.loads(sent)
    faults = Faults()
    hold_bounds(body, EventBody, faults)
    assert not faults.meaning
    over = sent.replace(b'"metadata":' + value, b'"metadata":' + value[:-2] + b",0]}", 1)
    hold_bounds(parse_object(over), EventBody, faults)
    assert faults.meaning


MEGABYTE = BODY_BYTES_MAX - 200
#: Values of a megabyte of which each takes long to be parsed, and what is said of them.
HEAVY = {
    "lists": b"[" + b"[]," * 131_000 + b"0]",
    "objects": b"[" + b"{}," * 131_000 + b"0]",
    "numbers": b"[" + b"1," * (MEGABYTE // 2) + b"1]",
    "texts": b"[" + b'"a",' * (MEGABYTE // 4) + b"1]",
    "keys": b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}",
    "objects with keys": b"[" + b'{"a":1},' * 130_000 + b"0]",
}


def made_in_steps(steps: Iterator[None]) -> int:
    """Return how many blocks of memory the step that made most has made."""
    most, before = 0, sys.getallocatedblocks()
    try:
        while True:
            next(steps)
            most, before = max(most, sys.getallocatedblocks() - before), sys.getallocatedblocks()
    except (Refusal, StopIteration):
        return max(most, sys.getallocatedblocks() - before)


#: More than any step makes: members and their values, and what holds them while they are put apart.
STEP_BLOCKS_MAX = 4 * UNDECLARED_VALUES_MAX


@pytest.mark.parametrize("place", ["metadata", "customer.metadata", "location", "ip"])
@pytest.mark.parametrize("kind", HEAVY)
def test_no_step_makes_more_values_than_one_member_may_hold(kind: str, place: str) -> None:
    outer, _, inner = place.partition(".")
    held = b'{"%s":%s}' % (inner.encode(), HEAVY[kind]) if inner else HEAVY[kind]
    body = b'{"eventName":"x","%s":%s}' % (outer.encode(), held)
    assert made_in_steps(parse_in_steps(body, EventBody)) < STEP_BLOCKS_MAX
    with pytest.raises(Unprocessable) as refused:
        parsed(body)
    [(named, message)] = refused.value.details.items()
    assert named == place
    assert message


@pytest.mark.parametrize("place", ["", "customer", "device"])
@pytest.mark.parametrize("kind", HEAVY)
def test_an_undeclared_member_of_too_many_values_is_kept_as_its_text(kind: str, place: str) -> None:
    members = b'"small":[1],"note":%s,"after":{"a":2}' % HEAVY[kind]
    body = b'{"eventName":"x",%s}' % (b'"%s":{%s}' % (place.encode(), members) if place else members)
    assert made_in_steps(parse_in_steps(body, EventBody)) < STEP_BLOCKS_MAX
    value = parsed(body)
    assert value["eventName"] == "x"
    holder = value[place] if place else value
    assert holder["note"] == HEAVY[kind].decode()
    assert (holder["small"], holder["after"]) == ([1], {"a": 2})
    assert parse_body(body, EventBody) == value


@pytest.mark.parametrize("place", ["", "customer"])
def test_undeclared_members_beyond_those_that_are_read_are_kept_as_one_text(place: str) -> None:
    members = {f"k{number}": [number] for number in range(60_000)}
    sent = {"eventName": "x", place: members} if place else {"eventName": "x", **members}
    body = json.dumps({**sent, "ip": "192.0.2.1"}).encode()
    assert made_in_steps(parse_in_steps(body, EventBody)) < STEP_BLOCKS_MAX
    value = parsed(body)
    assert (value["eventName"], value["ip"]) == ("x", "192.0.2.1")
    holder = value[place] if place else value
    unread = json.loads(holder[UNREAD_MEMBER])
    assert {name: holder.get(name, unread.get(name)) for name in members} == members
    assert UNDECLARED_VALUES_MAX / 4 < len(holder) <= UNDECLARED_VALUES_MAX + 5


def test_a_member_called_as_what_is_not_read_is_kept_with_it() -> None:
    members = {f"k{number}": number for number in range(20_000)}
    value = parsed(json.dumps({"eventName": "x", UNREAD_MEMBER: "mine", **members}).encode())
    unread = json.loads(value[UNREAD_MEMBER])
    assert unread[UNREAD_MEMBER] == "mine"
    assert {name: value.get(name, unread.get(name)) for name in members} == members


def test_an_object_that_begins_with_a_comma_is_no_json() -> None:
    members = ",".join(f'"k{number}":{{"a":{{"b":1}}}}' for number in range(6_000))
    with pytest.raises(Invalid):
        parsed(b"{" + b" " * 17_000 + b"," + members.encode() + b"}")


@pytest.mark.parametrize("levels", [250, 900])
def test_an_undeclared_member_that_is_too_deep_is_kept_as_its_text(levels: int) -> None:
    deep = "[" * levels + "]" * levels
    for blanks in ("", " " * 70_000):
        sent = f'{{"eventName":"x","note":{deep},"customer":{{"more":{deep}}}}}{blanks}'.encode()
        value = parse_body(sent, EventBody)
        assert (value["note"], value["customer"]["more"]) == (deep, deep)


@pytest.mark.parametrize(
    "end", [",", ",,", "", " ", "}", "]", ',"a"', ',"a":', ',"a":1,', '"', "\\", '{"a":1}']
)
def test_an_object_that_is_put_apart_in_pieces_is_as_valid_as_it_is_at_once(end: str) -> None:
    members = [f'"k{number:06}":{number % 10}' for number in range(10_000)]
    a_piece = 1 + PIECE_BYTES_MIN // len(members[0] + ",")
    for place in (1, *range(a_piece - 2, a_piece + 260, 13), 9_999):
        broken = [*members[:place], members[place] + end, *members[place + 1 :]]
        sent = f"{{{','.join(broken)}}}".encode() + BLANKS
        at_once = outcome(lambda sent=sent: parse_object(sent))
        assert outcome(lambda sent=sent: parsed(sent)) == at_once
    for around in ("%s,", "%s%s", "[%s]", "%s}", " %s ", "%s x"):
        sent = around.replace("%s", "{" + ",".join(members) + "}").encode() + BLANKS
        assert type(outcome(lambda sent=sent: parsed(sent))) is type(
            outcome(lambda sent=sent: parse_object(sent))
        )


def test_members_that_are_large_together_are_parsed_one_by_one() -> None:
    value = fill(b"[]", OBJECT_BYTES_MAX)
    members = b",".join(b'"%s":%s' % (name.encode(), value) for name in FREE)
    sent = b'{"eventName":"x","location":' + value + b"," + members + b"}"
    at_once = sys.getallocatedblocks()
    kept = parse_object(sent)
    at_once = sys.getallocatedblocks() - at_once
    assert kept
    assert made_in_steps(parse_in_steps(sent, EventBody)) < at_once / 2


def test_a_member_that_is_too_deep_is_named_whether_it_can_be_parsed_or_not() -> None:
    for levels in (250, 20_000, 60_000):
        sent = b'{"eventName":"x","metadata":' + b"[" * levels + b"]" * levels + b"}" + BLANKS
        with pytest.raises(Unprocessable) as refused:
            parsed(sent)
        assert list(refused.value.details) == ["metadata"]


def test_a_member_that_is_too_deep_by_its_keys_is_named() -> None:
    for levels in (20_000, 50_000):
        sent = b'{"eventName":"x","payload":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}" + BLANKS
        with pytest.raises(Unprocessable) as refused:
            parsed(sent)
        assert refused.value.details == {"payload": "is nested too deeply"}


def test_escaped_quotes_and_backslashes_hide_no_structure_and_make_none() -> None:
    text = b'"' + b'\\\\\\"[{,:' * 20_000 + b'"'
    sent = b'{"eventName":"x","metadata":{"a":' + text + b"}}"
    assert parsed(sent) == json.loads(sent)
    hidden = b'{"eventName":"x","metadata":{"a":"\\\\","b":[' + b"[]," * 60_000 + b"0]}}"
    with pytest.raises(Unprocessable):
        parsed(hidden)


def test_values_that_no_store_can_keep_are_refused_in_large_bodies_too() -> None:
    for value in (b'"\\u0000"', b"99999999999999999999", b'"\\ud800"', b'"\xff"'):
        with pytest.raises(Invalid):
            parsed(b'{"eventName":"x","metadata":{"a":' + value + b"}}" + BLANKS)
    run = b"\\\\" * 200_000
    assert parsed(b'{"eventName":"x","note":"' + run + b'u0000"}')["note"].endswith("\\u0000")
    with pytest.raises(Invalid):
        parsed(b'{"eventName":"x","note":"' + run + b'\\u0000"}')
