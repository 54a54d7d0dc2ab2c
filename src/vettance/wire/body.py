"""Request bodies, read as the fields of a struct: one declaration reads, checks and documents them."""

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from vettance.wire.declared import unwrap
from vettance.wire.payload import JSON, STRING_CHARS_MAX, Faults, check_object

BodyStruct = TypeVar("BodyStruct", bound=msgspec.Struct)

Text = Annotated[str, msgspec.Meta(max_length=STRING_CHARS_MAX)]
FreeForm = Annotated[
    dict[str, Any], msgspec.Meta(description="At most 10 levels, 500 keys in all and 32 KiB as JSON.")
]

#: Reads a value that is there, by (value, field path, faults); None where it is refused.
Read = Callable[[Any, str, Faults], Any]

NOT_TEXT: Final = "must be a string"
NOT_OBJECT: Final = "must be an object"


class _How(msgspec.Struct, frozen=True, kw_only=True):
    """See `how`."""

    also_named: str | None = None
    stands_for: str | None = None
    missing: str = "is required"
    wrong_type: str | None = None
    chars_max: int | None = None
    parse: Callable[[str], Any] | None = None
    check: Callable[[Any], Any] | None = None
    message: str = ""
    any_case: bool = False
    keeps_empty: bool = False
    as_sent: bool = False
    is_bounded: bool = False
    type_is_422: bool = False
    value_is_422: bool = False

    def type_faults(self, faults: Faults) -> dict[str, str]:
        """Return where to note a member that is missing or of another type."""
        return faults.meaning if self.type_is_422 else faults.shape

    def value_faults(self, faults: Faults) -> dict[str, str]:
        """Return where to note a text that is too long or none of its words, a list that is too long."""
        return faults.meaning if self.value_is_422 else faults.shape


def how(**said: Any) -> msgspec.Meta:
    """Annotate a member with what its type does not say of how it is read.

    - `also_named`: another name of it, read where the member itself is absent.
    - `stands_for`: the member that this one stands for; one of the two is required.
    - `missing`, `wrong_type`: messages instead of the usual ones.
    - `chars_max`: a bound of its characters that the documentation does not name.
    - `parse`, `message`: makes a value of a text; whatever it makes None of, and whatever is no text, is
      refused with the message.
    - `check`, `message`: makes what is kept of a value that is well-formed; where that is None, the value is
      refused with the message, as a fault of meaning (422).
    - `any_case`: an enum takes its values in any letter case.
    - `keeps_empty`: an empty text is one, and not the same as none.
    - `as_sent`: any value is taken as it is; who declares it checks it.
    - `is_bounded`: an object of any form is held to the bounds of one.
    - `type_is_422`, `value_is_422`: these faults of the member are 422; else 400.
    """
    unknown = said.keys() - set(_How.__struct_fields__)
    assert not unknown, f"nothing reads {sorted(unknown)}"
    return msgspec.Meta(extra=said)


#: Every fault of the member is 422.
ALL_422: Final = how(type_is_422=True, value_is_422=True)


def one_of(words: Iterable[str], **said: Any) -> msgspec.Meta:
    """Annotate a text, or an element of a list, that is one of these words."""
    known = {word: word for word in words}
    return how(parse=known.get, message=must_be_one_of(known), **said)


def must_be_one_of(words: Iterable[str]) -> str:
    """Say which words there are."""
    return "must be one of " + ", ".join(words)


def too_long(chars_max: int) -> str:
    """Say how long a text may be."""
    return f"must not be longer than {chars_max} characters"


class BodyMember(NamedTuple):
    """One member of a body: its name on the wire, its field in the struct, what is absent, how it is read."""

    name: str
    field: str
    required: bool
    empty: Any  # what is the same as leaving the member out, as null is
    read: Read
    how: _How


def read_body(body: JSON, shape: type[BodyStruct], faults: Faults) -> BodyStruct:
    """Read a parsed body into `shape`, and note every fault by its field path.

    A member that is refused, or required and missing, is None whatever its type says: until `faults` were
    raised, what is returned serves to find more of them and nothing else. Null is the same as leaving out a
    member, and so is an empty text, or an empty list of what needs elements. Undeclared members are ignored.
    """
    return _read_members(body, shape, "", faults)


def read_fitting(body: JSON, shape: type[BodyStruct], faults: Faults) -> BodyStruct:
    """Read a parsed body as `read_body` does, in a fifth of the time where it fits its declaration.

    Nearly every body does. Empty texts stay as they were sent. What is annotated by `how` is not looked at in
    a body that fits, so this is for structs whose types and bounds say all.
    """
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError:
        return read_body(body, shape, faults)


@functools.cache
def members_of(shape: type[msgspec.Struct]) -> tuple[BodyMember, ...]:
    """Return the members that a struct declares, in the order of its fields.

    Raises `TypeError` for a type that nothing here reads: a route table with such a struct must not start.
    """
    declared = inspect.type_info(shape)
    assert isinstance(declared, inspect.StructType), "bodies are declared as structs"
    return tuple(_member(field) for field in declared.fields)


def _read_members(holder: JSON, shape: type[BodyStruct], path: str, faults: Faults) -> BodyStruct:
    values: dict[str, Any] = {}
    for name, field, required, empty, read, how_ in members_of(shape):
        value, at = holder.get(name), name
        if value is None and how_.also_named is not None:
            value, at = holder.get(how_.also_named), how_.also_named
        if value is not None and value != empty:
            values[field] = read(value, path + at, faults)
        elif required:
            how_.type_faults(faults)[path + name] = how_.missing
            values[field] = None
        elif how_.stands_for is not None and holder.get(how_.stands_for) in (None, ""):
            how_.type_faults(faults)[path + how_.stands_for] = how_.missing
    return shape(**values)


def _member(field: inspect.Field) -> BodyMember:
    kind, nullable, _, extra = unwrap(field.type)
    how_ = _How(**extra)
    empty: Any = None
    if isinstance(kind, inspect.ListType) and kind.min_length:
        empty = []
    elif isinstance(kind, inspect.EnumType) or how_.parse is not None:
        # Of a member that may be null, an empty text is none of its words.
        empty = None if nullable else ""
    elif isinstance(kind, inspect.StrType | inspect.UnionType) and not (how_.keeps_empty or how_.as_sent):
        empty = ""
    read = _reader(kind, how_, field.encode_name)
    return BodyMember(field.encode_name, field.name, field.required, empty, read, how_)


def _reader(kind: inspect.Type, how_: _How, name: str) -> Read:
    if how_.as_sent or isinstance(kind, inspect.AnyType):
        return _take
    if how_.parse is not None:
        return _word_reader(how_.parse, how_.message, how_)
    if isinstance(kind, inspect.EnumType):
        return _enum_reader(kind.cls, how_)
    read = _plain_reader(kind, how_, name)
    return read if how_.check is None else _checked(read, how_.check, how_.message)


def _plain_reader(kind: inspect.Type, how_: _How, name: str) -> Read:
    if isinstance(kind, inspect.StrType):
        return _text_reader(how_.chars_max or kind.max_length or STRING_CHARS_MAX, how_)
    if isinstance(kind, inspect.BoolType | inspect.IntType | inspect.FloatType):
        types, message = _NUMBERS[type(kind)]
        return _typed_reader(types, message, how_)
    if isinstance(kind, inspect.UnionType) and {type(part) for part in kind.types} == _TEXT_OR_NUMBER:
        return _typed_reader((str, int, float), "must be a string or a number", how_)
    if isinstance(kind, inspect.DictType):
        return _bounded_object if how_.is_bounded else _typed_reader((dict,), NOT_OBJECT, how_)
    if isinstance(kind, inspect.StructType):
        return _struct_reader(kind.cls, how_)
    if isinstance(kind, inspect.ListType):
        return _list_reader(kind, how_, name)
    raise TypeError(f"a member of a body cannot be declared like {name}")


_NUMBERS: Final[Mapping[type[inspect.Type], tuple[tuple[type, ...], str]]] = {
    inspect.BoolType: ((bool,), "must be true or false"),
    inspect.IntType: ((int,), "must be an integer"),
    inspect.FloatType: ((int, float), "must be a number"),
}
_TEXT_OR_NUMBER: Final = {inspect.StrType, inspect.FloatType}


def _take(value: Any, _path: str, _faults: Faults) -> Any:
    return value


def _checked(read: Read, check: Callable[[Any], Any], message: str) -> Read:
    def checked(value: Any, path: str, faults: Faults) -> Any:
        if (found := read(value, path, faults)) is None:
            return None
        if (kept := check(found)) is None:
            faults.meaning[path] = message
        return kept

    return checked


def _typed_reader(types: tuple[type, ...], wrong_type: str, how_: _How) -> Read:
    def read(value: Any, path: str, faults: Faults) -> Any:
        if type(value) in types:  # A boolean is no integer.
            return value
        how_.type_faults(faults)[path] = how_.wrong_type or wrong_type
        return None

    return read


def _text_reader(chars_max: int, how_: _How) -> Read:
    message = too_long(chars_max)

    def read(value: Any, path: str, faults: Faults) -> str | None:
        if type(value) is not str:
            how_.type_faults(faults)[path] = how_.wrong_type or NOT_TEXT
        elif len(value) > chars_max:
            how_.value_faults(faults)[path] = message
        else:
            return value
        return None

    return read


def _enum_reader(choices: type[enum.Enum], how_: _How) -> Read:
    known = {choice.value: choice for choice in choices}
    message = must_be_one_of(known)
    if not how_.any_case:
        return _word_reader(known.get, message, how_)
    folded = fold(known)
    return _word_reader(lambda text: folded.get(text.lower()) if text.isascii() else None, message, how_)


def fold(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what words mean in any letter case.

    Only texts in ASCII may be looked up: elsewhere there are letters whose lower case is an ASCII one, such
    as the Kelvin sign.
    """
    return {text.lower(): choice for text, choice in known.items()}


def _word_reader(parse: Callable[[str], Any], message: str, how_: _How) -> Read:
    def read(value: Any, path: str, faults: Faults) -> Any:
        if type(value) is not str:
            # As a rule this is said as of any other value that is none of the words.
            told = how_.value_faults if how_.wrong_type is None else how_.type_faults
            told(faults)[path] = how_.wrong_type or message
        elif (found := parse(value)) is None:
            how_.value_faults(faults)[path] = message
        else:
            return found
        return None

    return read


def _bounded_object(value: Any, path: str, faults: Faults) -> JSON | None:
    if type(value) is not dict:
        faults.shape[path] = NOT_OBJECT
        return None
    check_object(value, path, faults)
    return value


def _struct_reader(shape: type[msgspec.Struct], how_: _How) -> Read:
    def read(value: Any, path: str, faults: Faults) -> Any:
        if type(value) is not dict:
            how_.type_faults(faults)[path] = NOT_OBJECT
            return None
        return _read_members(value, shape, f"{path}.", faults)

    return read


def _list_reader(kind: inspect.ListType, how_: _How, name: str) -> Read:
    element, _, _, extra = unwrap(kind.item_type)
    how_each = _How(**extra)
    read_each = _reader(element, how_each, name)
    empty = "" if isinstance(element, inspect.StrType) else None
    most = kind.max_length

    def read(value: Any, path: str, faults: Faults) -> list[Any] | None:
        if type(value) is not list:
            how_.type_faults(faults)[path] = "must be an array"
            return None
        if most is not None and len(value) > most:
            how_.value_faults(faults)[path] = f"must not hold more than {most} elements"
            return None
        found = []
        for index, each in enumerate(value):
            at = f"{path}.{index}"
            if empty is not None and (each is None or each == empty):
                how_each.type_faults(faults)[at] = "must not be empty"
            elif (kept := read_each(each, at, faults)) is not None:
                found.append(kept)
        return found

    return read
