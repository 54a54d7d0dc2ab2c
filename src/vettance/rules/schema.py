"""The schema: the names that rules may use, passed in by a caller that knows what an event is."""

import enum
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from vettance.rules.domain import ANYTHING, Domain

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)


class Type(enum.Enum):
    """What kind of value an expression gives. ANY is known only at run time and guarded there."""

    NUMBER = "number"
    TEXT = "text"
    BOOL = "true/false"
    LIST = "list"
    ANY = "any"


class Field(NamedTuple):
    """One name with a type.

    `read` takes an event and gives a value of the declared type, or None when the event does not say: a
    finite int or float (never a bool) for NUMBER, a str for TEXT, a bool for BOOL, a list for LIST. It must
    not raise. When the value is an attribute of the event, `attribute` names it (`customer_id`) and the
    compiler reads it directly. `domain` says which values there are.
    """

    name: str
    type: Type
    read: Callable[[Any], Any]
    doc: str
    attribute: str | None = None
    domain: Domain = ANYTHING

    @property
    def members(self) -> tuple[str, ...]:
        """The members of free-form objects that it is read from, by their paths, as `reads` noted them."""
        found: tuple[str, ...] = getattr(self.read, "members", ())
        return found


class Namespace(NamedTuple):
    """A free-form object: every dotted path below `name` is a name of type ANY, missing when it is not there.

    `read` takes an event and gives the object as parsed from JSON. `attribute` is as for a field.
    """

    name: str
    read: Callable[[Any], Mapping[str, Any]]
    doc: str
    attribute: str | None = None


class Schema:
    """All names a rule may use. A declared field wins over a namespace that would also cover its name."""

    def __init__(
        self, fields: Iterable[Field], namespaces: Iterable[Namespace] = (), *, labelled: bool = False
    ) -> None:
        """`labelled`: tenants say of its events whether they were fraud, and rules may count that."""
        self.labelled = labelled
        self.fields: dict[str, Field] = {}
        self.namespaces: dict[str, Namespace] = {}
        for field in fields:
            _require_name(field.name, field.attribute)
            if field.name in self.fields:
                raise ValueError(f"the field {field.name} is declared twice")
            self.fields[field.name] = field
        for namespace in namespaces:
            _require_name(namespace.name, namespace.attribute)
            if namespace.name in self.namespaces:
                raise ValueError(f"the namespace {namespace.name} is declared twice")
            self.namespaces[namespace.name] = namespace

    def type_of(self, name: str) -> Type | None:
        """Return the type of a dotted name, or None when the schema has no such name."""
        field = self.fields.get(name)
        if field is not None:
            return field.type
        return Type.ANY if self.namespace_of(name) is not None else None

    def namespace_of(self, name: str) -> tuple[Namespace, tuple[str, ...]] | None:
        """Return the longest namespace that covers a dotted name, and the path below it."""
        parts = name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            namespace = self.namespaces.get(".".join(parts[:length]))
            if namespace is not None:
                return namespace, tuple(parts[length:])
        return None


Reader = TypeVar("Reader", bound=Callable[..., Any])


def reads(read: Reader, *members: str) -> Reader:
    """Note which members of an event a reader looks at (`metadata.amount`), for the manual; returns it."""
    vars(read)["members"] = members
    return read


def _require_name(name: str, attribute: str | None) -> None:
    for text in (name, attribute):
        if text is None:
            continue
        if not _NAME.fullmatch(text) or any(keyword.iskeyword(part) for part in text.split(".")):
            raise ValueError(f"{text!r} is not a dotted name")
