"""Large bodies, in steps: what no member may hold is refused before it is parsed, the others one by one.

To parse a megabyte of text takes half a millisecond, to parse one of brackets or short keys forty: a value
is made of each, and nothing else goes on meanwhile. What is outside of texts tells how many there are, in the
time of a copy, and it is a lower bound of what a member takes as JSON.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from vettance.errors import Unprocessable
from vettance.wire.declared import (
    UNDECLARED_VALUES_MAX,
    Declared,
    declared,
    name_heavy,
    values_outside,
)
from vettance.wire.payload import (
    BODY_DEPTH_MAX,
    JSON,
    OBJECT_BYTES_MAX,
    Faults,
    bound_exceeded,
    count_brackets,
    decode_member,
    hold_storable,
    is_deeper,
    keys_in,
    parse_object,
    shown_name,
    split_members,
    too_deep,
)

#: More keys than four times as many as all bounded members of a body can hold together: the members of an
#: object are put apart in one go, at a microsecond for each four.
BODY_KEYS_MAX: Final = 16_384
_TOO_MANY_KEYS: Final = f"must not hold more than {BODY_KEYS_MAX:,} keys in all"
#: So much of a text is cut at its quotes at a time.
_WINDOW_BYTES: Final = 16 * 1024

_Raws = Mapping[str, msgspec.Raw]


def parse_in_steps(body: bytes, shape: type | None) -> Generator[None, None, JSON]:
    """Parse a body as `parse_object` does, and leave the loop to others at each `yield`.

    With a shape, each of its members of any form is held to the bounds of objects, and all undeclared ones
    together to a number of values (`hold_bounds` does so exactly, once they are parsed). Refuses, with 422,
    what cannot be within them before it is parsed: the size of each member as JSON is at least what is
    outside of its texts. An object whose keys come again and again counts with all of them.
    """
    if shape is None:
        return parse_object(body)
    try:
        return (yield from _parse_bounded(body, declared(shape)))
    except RecursionError:
        raise (yield from too_deep(body)) from None


def _parse_bounded(body: bytes, shape: Mapping[str, Declared]) -> Generator[None, None, JSON]:
    brackets = count_brackets(body)
    if body.count(b":") > BODY_KEYS_MAX and (begun := _begun_beyond(body, BODY_KEYS_MAX)):
        if is_deeper(begun, BODY_DEPTH_MAX):
            raise (yield from too_deep(body))
        raise Unprocessable("The request cannot be processed; see details.", {"body": _TOO_MANY_KEYS})
    yield
    members = split_members(body)
    yield
    others: dict[str, int] = {}
    faults = Faults()
    yield from _weigh(members, shape, "", others, faults)
    if sum(others.values()) > UNDECLARED_VALUES_MAX:
        faults.meaning.update(name_heavy(others))
    faults.raise_unprocessable()
    value: JSON = {}
    for name, raw in members.items():
        yield
        value[name] = decode_member(raw)
        if brackets > BODY_DEPTH_MAX and is_deeper(bytes(raw), BODY_DEPTH_MAX - 1):
            deep = {shown_name(name): "is nested too deeply"}
            raise Unprocessable("The request cannot be processed; see details.", deep)
    yield
    hold_storable(body, value)
    return value


class _Outline(NamedTuple):
    """What is outside of the texts of a value, and how many bytes of JSON that makes at least. Both go as far
    as is needed to see that it is too much."""

    weight: int
    outside: bytes


def _weigh(
    raws: _Raws, members: Mapping[str, Declared], path: str, others: dict[str, int], faults: Faults
) -> Generator[None, None, None]:
    """Note what cannot be within its bounds, and how many values undeclared members are."""
    room = UNDECLARED_VALUES_MAX - sum(others.values())
    for name, raw in raws.items():
        known, text = members.get(name), bytes(raw)
        if known is not None and known.members is not None and text.startswith(b"{"):
            yield from _weigh(split_members(text), known.members, f"{path}{name}.", others, faults)
            room = UNDECLARED_VALUES_MAX - sum(others.values())
            continue
        if known is not None:
            outline = _outline(text)
            if outline.weight > OBJECT_BYTES_MAX:
                faults.meaning[f"{path}{name}"] = bound_exceeded(outline.outside, outline.weight) or ""
                yield
        elif room >= 0:
            others[f"{path}{name}"] = count = 1 + _count_values(text, room)
            room -= count
        if len(text) > _WINDOW_BYTES:
            yield


def _count_values(text: bytes, most: int) -> int:
    """Return how many values JSON holds, counted until there are more than so many."""
    count = 0
    for outside, _ in _outside(text):
        count += values_outside(outside)
        if count > most:
            break
    return count


def _outline(text: bytes) -> _Outline:
    weight, found = 0, []
    for outside, quotes in _outside(text):
        found.append(outside)
        brackets = outside.count(b"[") + outside.count(b"{")
        weight += 2 * brackets + outside.count(b",") + outside.count(b":") + quotes
        if weight > OBJECT_BYTES_MAX:
            break
    return _Outline(weight, b"".join(found))


def _begun_beyond(text: bytes, most: int) -> bytes:
    """Return what is outside of texts until there are more keys than so many; nothing if there are not."""
    keys, found = 0, []
    for outside, _ in _outside(text):
        found.append(outside)
        keys += keys_in(outside)
        if keys > most:
            return b"".join(found)
    return b""


def _outside(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield what is outside of the texts of JSON, and how many quotes were passed, window by window."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = False
    for start in range(0, len(text), _WINDOW_BYTES):
        parts = text[start : start + _WINDOW_BYTES].split(b'"')
        yield b"".join(parts[is_inside::2]), len(parts) - 1
        is_inside ^= len(parts) % 2 == 0
