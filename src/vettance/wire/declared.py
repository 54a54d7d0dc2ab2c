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
    OBJECT_BYTES_MAX,
    OBJECT_KEYS_MAX,
    Faults,
    check_object,
    encode,
    keys_in,
    shown_name,
)


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
    """Hold each free-form member of a body to the bounds of objects, and all undeclared ones taken together.

    Those may be nested as deep as any body. Values of the wrong type are left to the reader of the body.
    Faults are 422.
    """
    others: JSON = {}
    _hold(body, declared(shape), "", others, faults)
    if not others:
        return
    texts = {name: encode(value) for name, value in others.items()}
    # What is large already needs not be put together to be measured.
    if sum(map(len, texts.values())) > OBJECT_BYTES_MAX or _is_heavy(encode(others)):
        faults.meaning.update(name_heavy(texts, {name: len(text) for name, text in texts.items()}))


def _is_heavy(text: bytes) -> bool:
    return len(text) > OBJECT_BYTES_MAX or keys_in(text) > OBJECT_KEYS_MAX


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


_TOGETHER: Final = "members that are not documented must together not"
_LARGE: Final = f"{_TOGETHER} be larger than {OBJECT_BYTES_MAX} bytes as JSON"
_MANY: Final = f"{_TOGETHER} hold more than {OBJECT_KEYS_MAX} keys in all"


def name_heavy(texts: Mapping[str, bytes], weights: Mapping[str, int]) -> dict[str, str]:
    """Say what is wrong with members that are beyond the bounds together, and name those that make it so.
    `weights` are their sizes as JSON.

    These are the heaviest, until what is left is within the bounds.
    """
    sizes = {name: len(name) + weight for name, weight in weights.items()}
    if sum(sizes.values()) > OBJECT_BYTES_MAX:
        return dict.fromkeys(_heaviest(sizes, OBJECT_BYTES_MAX), _LARGE)
    keys = {name: 1 + keys_in(text) for name, text in texts.items()}
    return dict.fromkeys(_heaviest(keys, OBJECT_KEYS_MAX), _MANY)


def _heaviest(weights: Mapping[str, int], total_max: int) -> Iterator[str]:
    """Yield the names that weigh most, until the others weigh no more than `total_max`."""
    total = sum(weights.values())
    for name in heapq.nlargest(FAULTS_NAMED_MAX, weights, key=weights.__getitem__):
        yield shown_name(name)
        total -= weights[name]
        if total <= total_max:
            return
