"""Large bodies, in steps: what no member may hold is refused before it is parsed, the others one by one.

To parse a megabyte of text takes half a millisecond, to parse one of brackets or short keys forty: a value
is made of each, and nothing else goes on meanwhile. What is outside of texts tells how many there are, in the
time of a copy, and it is a lower bound of what a member takes as JSON. No member that is not declared refuses
a body: beyond a number of values they are kept as the text that they were sent as.
"""

import itertools
import re
from collections.abc import Generator, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from vettance.errors import Unprocessable
from vettance.wire.declared import Declared, declared
from vettance.wire.payload import (
    BODY_DEPTH_MAX,
    JSON,
    OBJECT_BYTES_MAX,
    Faults,
    bound_exceeded,
    decode_member,
    decode_text,
    encode,
    hold_storable,
    is_deeper,
    not_json,
    parse_object,
    run_steps,
    shown_name,
    split_members,
    too_deep,
)

#: So many values of undeclared members, of all places of a body together, are made: that takes a few
#: milliseconds, in which a process does nothing else, and as long each time the event is read again. A basket
#: of a thousand items with ten members each holds 11,000.
UNDECLARED_VALUES_MAX: Final = 16_384
#: Where undeclared members are kept, as one text, of which there are more than `UNDECLARED_VALUES_MAX`.
UNREAD_MEMBER: Final = "unread"
#: Bodies up to this size are parsed in one go: that takes three milliseconds at most, whatever they hold.
AT_ONCE_BYTES_MAX: Final = 64 * 1024
#: An object is put apart in pieces of so many bytes of its text: 4,096 members at most, in a millisecond.
PIECE_BYTES_MIN: Final = 16 * 1024
#: Text with more colons than this is cut into pieces first.
_COLONS_AT_ONCE: Final = 4_096
#: A text, closed or not; what has no brackets; an array or object with few texts and no brackets in it.
_TEXT: Final = rb'"(?:[^"\\]++|\\.)*+"?'
_FLAT: Final = rb'(?:[^"\[\]{}]++|' + _TEXT + rb"){0,256}+"
_FLAT_HOLDER: Final = rb"\[" + _FLAT + rb"\]|\{" + _FLAT + rb"\}"
#: Whole members with their commas; what comes before the next bracket or comma; what comes before a bracket.
#: Each goes only so far that a step takes less than a millisecond.
_MEMBERS: Final = re.compile(
    rb'(?:(?:[^"\[\]{},]++|' + _TEXT + rb"|" + _FLAT_HOLDER + rb"){0,8}+,){0,256}+", re.DOTALL
)
_TO_MARK: Final = re.compile(rb'(?:[^"\[\]{},]++|' + _TEXT + rb"){0,256}+", re.DOTALL)
_TO_BRACKET: Final = re.compile(
    rb'(?:[^"\[\]{}]++|' + _TEXT + rb"|" + _FLAT_HOLDER + rb"){0,256}+", re.DOTALL
)
_OPENING, _CLOSING, _MARKS = (b"{", b"["), (b"}", b"]"), (b"{", b"[", b"}", b"]", b",")
#: So many matches of these are made in a step.
_MATCHES_IN_A_STEP: Final = 16
#: So many small members are parsed in one step.
_MEMBERS_IN_A_STEP: Final = 256
#: So much of a text is cut at its quotes at a time.
_WINDOW_BYTES: Final = 16 * 1024

_Raws = Mapping[str, msgspec.Raw]


def parse_body(body: bytes, shape: type | None) -> JSON:
    """Parse a body that has a shape to what `parse_in_steps` makes of it, in one go.

    A body is small in most cases, and nothing in it is so deep that it would have to be kept as text.
    """
    if len(body) > AT_ONCE_BYTES_MAX:
        return run_steps(parse_in_steps(body, shape))
    try:
        return parse_object(body)
    except Unprocessable:
        return run_steps(parse_in_steps(body, shape))


def parse_in_steps(body: bytes, shape: type | None) -> Generator[None, None, JSON]:
    """Parse a body as `parse_object` does, and leave the loop to others at each `yield`.

    With a shape, each of its members of any form is held to the bounds of objects (`hold_bounds` does so
    exactly, once they are parsed). What cannot be within them is refused with 422 before it is parsed: the
    size of each member as JSON is at least what is outside of its texts. An object whose keys come again and
    again counts with all of them.

    Undeclared members are parsed in the order in which they were sent until they hold
    `UNDECLARED_VALUES_MAX` values together. One that holds more than are left, or is too deep, becomes the
    text of its JSON. When none is left, those that follow become one text, `UNREAD_MEMBER`.
    """
    if shape is None:
        return parse_object(body)
    try:
        return (yield from _parse_bounded(body, declared(shape)))
    except RecursionError:
        raise (yield from too_deep(body)) from None


def _parse_bounded(body: bytes, shape: Mapping[str, Declared]) -> Generator[None, None, JSON]:
    members = yield from _split(body)
    faults = Faults()
    yield from _weigh(members, shape, "", faults)
    faults.raise_unprocessable()
    value, _ = yield from _parse(members, shape, UNDECLARED_VALUES_MAX)
    yield
    hold_storable(body, value)
    return value


def _split(text: bytes) -> Generator[None, None, _Raws]:
    """Put the members of an object apart, some at a time. Raises as `split_members` does."""
    yield
    if text.count(b":") <= _COLONS_AT_ONCE:
        return split_members(text)
    members: dict[str, msgspec.Raw] = {}
    for piece in (yield from _cut(text)):
        yield
        members |= split_members(piece)
    return members


def _cut(text: bytes) -> Generator[None, None, list[bytes]]:
    """Cut an object into objects of some members each. They are valid JSON if it was, and only then."""
    commas: list[int] = []
    place, depth = text.find(b"{") + 1, 1
    for number in itertools.count():
        if number % _MATCHES_IN_A_STEP == 0:
            yield
        if depth == 1 and (found := _MEMBERS.match(text, place)) and found.end() > place:
            place = found.end()
            if place - (commas[-1] if commas else 0) > PIECE_BYTES_MIN:
                commas.append(place - 1)
            continue
        if found := (_TO_MARK if depth == 1 else _TO_BRACKET).match(text, place):
            place = found.end()
        mark = text[place : place + 1]
        depth += (mark in _OPENING) - (mark in _CLOSING)
        place += mark in _MARKS
        if depth == 0 or not mark:
            return _pieces(text, commas)
    raise AssertionError("a text has an end")


def _pieces(text: bytes, commas: list[int]) -> list[bytes]:
    """Return what is between commas of an object, as an object each."""
    if not commas:
        return [text]
    begins, last = text[: commas[0]], text[commas[-1] + 1 :]
    middle = [text[start + 1 : end] for start, end in itertools.pairwise(commas)]
    if not all(map(bytes.strip, middle)) or begins.rstrip().endswith(b"{") or last.lstrip().startswith(b"}"):
        raise not_json()
    return [begins + b"}", *(b"{" + piece + b"}" for piece in middle), b"{" + last]


def _parse(
    raws: _Raws, members: Mapping[str, Declared], room: int
) -> Generator[None, None, tuple[JSON, int]]:
    """Parse the members of an object, and return them with how many values undeclared ones may still hold."""
    value: JSON = {}
    unread: dict[str, msgspec.Raw] = {}
    for number, (name, raw) in enumerate(raws.items()):
        if len(text := bytes(raw)) > _WINDOW_BYTES or number % _MEMBERS_IN_A_STEP == 0:
            yield
        known = members.get(name)
        if known is not None and known.members is not None and text.startswith(b"{"):
            inner = yield from _split(text)
            value[name], room = yield from _parse(inner, known.members, room)
        elif known is not None:
            if is_deeper(text, BODY_DEPTH_MAX - 1):
                deep = {shown_name(name): "is nested too deeply"}
                raise Unprocessable("The request cannot be processed; see details.", deep)
            value[name] = decode_member(raw)
        elif room:
            count = 1 + _count_values(text, room - 1)
            is_read = count <= room and not is_deeper(text, BODY_DEPTH_MAX - 1)
            value[name] = decode_member(raw) if is_read else decode_text(text)
            room -= count if is_read else 1
        else:
            unread[name] = raw
    if unread:
        yield
        if UNREAD_MEMBER in raws and UNREAD_MEMBER not in members:
            unread = {UNREAD_MEMBER: raws[UNREAD_MEMBER]} | unread
        value[UNREAD_MEMBER] = decode_text(encode(unread))
    return value, room


class _Outline(NamedTuple):
    """What is outside of the texts of a value, and how many bytes of JSON that makes at least. Both go as far
    as is needed to see that it is too much."""

    weight: int
    outside: bytes


def _weigh(
    raws: _Raws, members: Mapping[str, Declared], path: str, faults: Faults
) -> Generator[None, None, None]:
    """Note which declared members cannot be within their bounds."""
    for name, known in members.items():
        if (raw := raws.get(name)) is None:
            continue
        text = bytes(raw)
        if known.members is not None and text.startswith(b"{"):
            inner = yield from _split(text)
            yield from _weigh(inner, known.members, f"{path}{name}.", faults)
            continue
        outline = _outline(text)
        if outline.weight > OBJECT_BYTES_MAX:
            faults.meaning[f"{path}{name}"] = bound_exceeded(outline.outside, outline.weight) or ""
        if len(text) > _WINDOW_BYTES:
            yield


def _count_values(text: bytes, most: int) -> int:
    """Return how many values JSON holds, counted until there are more than so many."""
    count = 0
    for outside, _ in _outside(text):
        count += _values_outside(outside)
        if count > most:
            break
    return count


def _values_outside(part: bytes) -> int:
    """Return how many values begin in a part of JSON that is outside of texts."""
    return part.count(b",") + part.count(b"[") + part.count(b"{")


def _outline(text: bytes) -> _Outline:
    weight, found = 0, []
    for outside, quotes in _outside(text):
        found.append(outside)
        brackets = outside.count(b"[") + outside.count(b"{")
        weight += 2 * brackets + outside.count(b",") + outside.count(b":") + quotes
        if weight > OBJECT_BYTES_MAX:
            break
    return _Outline(weight, b"".join(found))


def _outside(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield what is outside of the texts of JSON, and how many quotes were passed, window by window."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = False
    for start in range(0, len(text), _WINDOW_BYTES):
        parts = text[start : start + _WINDOW_BYTES].split(b'"')
        yield b"".join(parts[is_inside::2]), len(parts) - 1
        is_inside ^= len(parts) % 2 == 0
