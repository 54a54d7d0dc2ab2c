"""The members that a body declares and the bounds of those whose form is free."""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import inspect

from vettance.wire.payload import JSON, Faults, check_object


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
    """Hold each free-form member of a body to the bounds of objects. Faults are 422.

    Undeclared members may be of any size and depth that a body may have. Values of the wrong type are left to
    the reader of the body.
    """
    _hold(body, declared(shape), "", faults)


def _hold(holder: JSON, members: Mapping[str, Declared], path: str, faults: Faults) -> None:
    for name, value in holder.items():
        known = members.get(name)
        if known is None:
            continue
        if known.is_free:
            # A declared object is measured as such; what else stands in its place as what a member holds.
            check_object(value if type(value) is dict else {name: value}, f"{path}{name}", faults)
        elif known.members is not None and type(value) is dict:
            _hold(value, known.members, f"{path}{name}.", faults)
