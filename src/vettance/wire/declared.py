"""The members that a body declares, the bounds of those whose form is free, and what is sent beyond them."""

import functools
import heapq
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from vettance.wire.payload import (
    FAULTS_NAMED_MAX,
    JSON,
    Faults,
    at_texts,
    check_object,
    encode,
    shown_name,
)

#: What is made of so many values takes a few milliseconds, in which a process does nothing else. A basket of
#: a thousand items with ten members each holds 11,000.
UNDECLARED_VALUES_MAX: Final = 16_384


class Declared(msgspec.Struct, frozen=True):
    """What stands under one name of a body: an object of `members`, or a value of any form if `is_free`."""

    members: "Mapping[str, Declared] | None" = None
    is_free: bool = False


class PlainType(NamedTuple):
    """A declared type without None and annotations, and what those said."""

    kind: inspect.Type
    nullable: bool
    description: str
    extra: JSON


def unwrap(kind: inspect.Type) -> PlainType:
    """Strip None and annotations off a declared type. Of what is said twice, the outermost counts."""
    nullable, description = False, ""
    extra: JSON = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            description = description or (kind.extra_json_schema or {}).get("description", "")
            extra = {**(kind.extra or {}), **extra}
            kind = kind.type
            continue
        if isinstance(kind, inspect.UnionType):
            parts = tuple(part for part in kind.types if not isinstance(part, inspect.NoneType))
            if len(parts) < len(kind.types):
                nullable = True
                kind = parts[0] if len(parts) == 1 else inspect.UnionType(parts)
                continue
        return PlainType(kind, nullable, description, extra)


@functools.cache
def declared(shape: type) -> Mapping[str, Declared]:
    """Return what a struct declares, by the names on the wire."""
    return _members_of(inspect.type_info(shape))


def _members_of(kind: inspect.Type) -> Mapping[str, Declared]:
    assert isinstance(kind, inspect.StructType), "bodies are declared as structs"
    return {field.encode_name: _declared(field.type) for field in kind.fields}


def _declared(kind: inspect.Type) -> Declared:
    kind = unwrap(kind).kind
    if isinstance(kind, inspect.StructType):
        return Declared(members=_members_of(kind))
    return Declared(is_free=isinstance(kind, inspect.DictType | inspect.AnyType))


def hold_bounds(body: JSON, shape: type, faults: Faults) -> None:
    """Hold each free-form member of a body to the bounds of objects, and all undeclared ones together to
    the number of their values.

    Those may be as large, and nested as deep, as any body. Values of the wrong type are left to the reader of
    the body. Faults are 422.
    """
    others: JSON = {}
    _hold(body, declared(shape), "", others, faults)
    counts = {name: 1 + values_in(encode(value)) for name, value in others.items()}
    if sum(counts.values()) > UNDECLARED_VALUES_MAX:
        faults.meaning.update(name_heavy(counts))


def values_in(text: bytes) -> int:
    """Return how many values valid JSON holds inside of others: behind each comma is one, and behind each
    bracket that opens. What holds nothing counts as if it held one."""
    return sum(map(values_outside, at_texts(text)[::2]))


def values_outside(part: bytes) -> int:
    """Return how many values begin in a part of JSON that is outside of texts."""
    return part.count(b",") + part.count(b"[") + part.count(b"{")


def _hold(holder: JSON, members: Mapping[str, Declared], path: str, others: JSON, faults: Faults) -> None:
    for name, value in holder.items():
        known = members.get(name)
        if known is None:
            others[f"{path}{name}"] = value
        elif known.is_free:
            # A declared object is measured as such; what else stands in its place as what a member holds.
            check_object(value if type(value) is dict else {name: value}, f"{path}{name}", faults)
        elif known.members is not None and type(value) is dict:
            _hold(value, known.members, f"{path}{name}.", others, faults)


_MANY: Final = (
    f"members that are not documented must together not hold more than {UNDECLARED_VALUES_MAX:,} values"
)


def name_heavy(counts: Mapping[str, int]) -> dict[str, str]:
    """Say what is wrong with undeclared members that hold too many values together, by how many each holds.

    Named are those that hold most, until the others are within the bound.
    """
    return dict.fromkeys(_heaviest(counts, UNDECLARED_VALUES_MAX), _MANY)


def _heaviest(weights: Mapping[str, int], total_max: int) -> Iterator[str]:
    """Yield the names that weigh most, until the others weigh no more than `total_max`."""
    total = sum(weights.values())
    for name in heapq.nlargest(FAULTS_NAMED_MAX, weights, key=weights.__getitem__):
        yield shown_name(name)
        total -= weights[name]
        if total <= total_max:
            return
