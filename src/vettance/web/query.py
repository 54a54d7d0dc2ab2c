"""Query parameters, read as the fields of a struct: one declaration reads them and documents them."""

import decimal
import enum
import functools
import re
from collections.abc import Callable, Container
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from vettance.errors import Invalid
from vettance.wire.body import fold, must_be_one_of
from vettance.wire.declared import unwrap
from vettance.wire.numbers import is_decimal, read_whole
from vettance.wire.payload import JSON, STRING_CHARS_MAX, Faults
from vettance.wire.suggestions import UnknownName, unknown_parameters

QueryStruct = TypeVar("QueryStruct", bound=msgspec.Struct)

#: A moment given in Unix seconds (integer or decimal); the struct holds Unix milliseconds.
UnixSeconds = Annotated[int, msgspec.Meta(extra={"moment": True})]

From = Annotated[UnixSeconds, msgspec.Meta(description="Inclusive, Unix seconds.")]
To = Annotated[UnixSeconds, msgspec.Meta(description="Exclusive, Unix seconds.")]


class SortOrder(enum.StrEnum):
    """Smallest or oldest first, or the other way round."""

    ASC = "asc"
    DESC = "desc"


_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_MOMENT_S_MAX: Final = 100_000_000_000  # The year 5138; beyond it a value is surely in milliseconds.


class _Fault(Exception):
    """Why one parameter cannot be read; the message is for its sender."""


class QueryParameter(NamedTuple):
    """One query parameter: its name on the wire, its field in the struct, how it is read and documented."""

    name: str
    field: str
    required: bool
    schema: JSON
    description: str
    read: Callable[[str], Any]


def any_case(**aliases: str) -> msgspec.Meta:
    """Annotate an enum parameter that takes its values in any letter case, and these aliases for them."""
    return msgspec.Meta(extra={"any_case": True, "aliases": aliases})


def read_query(raw: bytes, shape: type[QueryStruct]) -> QueryStruct:
    """Read a raw query string into `shape`.

    Raises `Invalid` (400) with a message for each faulty parameter. Of a repeated parameter the last wins;
    unknown ones are ignored; an empty text is the same as none. `from` after `to` is a fault.
    """
    faults = Faults()
    parameters = parameters_of(shape)
    sent = _split(raw, faults, {parameter.name for parameter in parameters}) if raw else {}
    values: dict[str, Any] = {}
    for parameter in parameters:
        text = sent.get(parameter.name)
        if text is None:
            if parameter.required:
                faults.shape.setdefault(parameter.name, "is required")
            continue
        try:
            value = parameter.read(text)
        except _Fault as fault:
            faults.shape[parameter.name] = str(fault)
            continue
        if value is not None:
            values[parameter.field] = value
        elif parameter.required:
            faults.shape[parameter.name] = "is required"
    _check_span(shape, values, faults)
    faults.raise_any(Invalid)
    return shape(**values)


def names_beyond(raw: bytes, shape: type[msgspec.Struct] | None) -> list[UnknownName]:
    """Return the parameters of a raw query that a struct does not declare; of none, all."""
    if not raw:
        return []
    taken = tuple(parameter.name for parameter in parameters_of(shape)) if shape is not None else ()
    return unknown_parameters(_split(raw, Faults(), taken), taken)


def _split(raw: bytes, faults: Faults, known: Container[str]) -> dict[str, str]:
    """Split a raw query string; what cannot be decoded is a fault of a known parameter, or of the query."""
    sent: dict[str, str] = {}
    for pair in raw.split(b"&"):
        raw_name, _, raw_value = pair.partition(b"=")
        name = _decode(raw_name)
        value = _decode(raw_value)
        if name is None or value is None:
            place = name if name is not None and name in known else "query"
            faults.shape[place] = "must be UTF-8 text, percent-encoded, without NUL characters"
        else:
            sent[name] = value
    return sent


def _decode(raw: bytes) -> str | None:
    if _BAD_ESCAPE.search(raw):
        return None
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _check_span(shape: type[msgspec.Struct], values: dict[str, Any], faults: Faults) -> None:
    fields = {parameter.name: parameter.field for parameter in parameters_of(shape)}
    start, end = values.get(fields.get("from", "")), values.get(fields.get("to", ""))
    if start is not None and end is not None and start > end:
        faults.shape["from"] = "must not be later than `to`"


@functools.cache
def parameters_of(shape: type[msgspec.Struct]) -> tuple[QueryParameter, ...]:
    """Return the parameters that a struct declares, in the order of its fields.

    Fields may be integers with bounds, texts, enums, booleans, `UnixSeconds`, and any of these or None.
    Raises `TypeError` for any other type: a route table with such a struct must not start.
    """
    declared = inspect.type_info(shape)
    assert isinstance(declared, inspect.StructType), "query parameters are declared as a struct"
    return tuple(_parameter(field) for field in declared.fields)


def _parameter(field: inspect.Field) -> QueryParameter:
    kind, _, description, extra = unwrap(field.type)
    read, schema = _reader(kind, extra, field.encode_name)
    if field.default is not msgspec.NODEFAULT and field.default is not None:
        default = field.default
        schema["default"] = default.value if isinstance(default, enum.Enum) else default
    return QueryParameter(field.encode_name, field.name, field.required, schema, description, read)


def _reader(kind: inspect.Type, extra: JSON, name: str) -> tuple[Callable[[str], Any], JSON]:
    if extra.get("moment"):
        return _read_moment, {"type": "number", "minimum": 0, "exclusiveMaximum": _MOMENT_S_MAX}
    if isinstance(kind, inspect.IntType):
        low = kind.ge if kind.ge is not None else -(2**63)
        high = kind.le if kind.le is not None else 2**63 - 1
        schema: JSON = {"type": "integer", "minimum": low, "maximum": high}
        return functools.partial(_read_integer, low, high), schema
    if isinstance(kind, inspect.StrType):
        longest = kind.max_length if kind.max_length is not None else STRING_CHARS_MAX
        return functools.partial(_read_text, longest), {"type": "string", "maxLength": longest}
    if isinstance(kind, inspect.BoolType):
        return functools.partial(_read_choice, {"true": True, "false": False}), {"type": "boolean"}
    if isinstance(kind, inspect.EnumType):
        return _choice_reader(kind.cls, extra)
    raise TypeError(f"a query parameter cannot be declared like {name}")


def _choice_reader(choices: type[enum.Enum], extra: JSON) -> tuple[Callable[[str], Any], JSON]:
    known: dict[str, Any] = {member.value: member for member in choices}
    if not extra.get("any_case"):
        return functools.partial(_read_choice, known), {"type": "string", "enum": list(known)}
    known.update({alias: choices(value) for alias, value in extra["aliases"].items()})
    folded = fold(known)
    # An `enum` would say that other spellings are refused, so the values are in a pattern that takes all.
    spellings = "|".join(
        "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else re.escape(letter) for letter in text)
        for text in folded
    )
    schema: JSON = {"type": "string", "pattern": f"^({spellings})$", "examples": [m.value for m in choices]}
    return functools.partial(_read_choice_any_case, folded), schema


def _read_integer(low: int, high: int, text: str) -> int:
    value = read_whole(text, low, high)
    if value is None:
        if high == 2**63 - 1:
            raise _Fault(f"must be an integer not below {low}")
        raise _Fault(f"must be an integer from {low} to {high}")
    return value


def _read_moment(text: str) -> int:
    if not is_decimal(text) or not 0 <= float(text) < _MOMENT_S_MAX:
        raise _Fault("must be Unix seconds, as an integer or a decimal number")
    return int(decimal.Decimal(text) * 1000)


def _read_text(longest: int, text: str) -> str | None:
    if len(text) > longest:
        raise _Fault(f"must not be longer than {longest} characters")
    return text or None


def _read_choice(known: dict[str, Any], text: str) -> Any:
    value = known.get(text)
    if value is None:
        raise _Fault(must_be_one_of(known))
    return value


def _read_choice_any_case(folded: dict[str, Any], text: str) -> Any:
    return _read_choice(folded, text.lower() if text.isascii() else "")
