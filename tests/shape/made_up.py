"""Makes up arguments for the functions that build statements, by the types they declare."""

import collections.abc
import enum
import inspect
import types
import typing
from typing import Any, Final

import numpy as np

from vettance.db.tables import AML_RULE_COUNT, AML_RULE_COUNTED, AML_RULE_LAST_HIT, AML_RULESET, Table
from vettance.history.search_criteria import criteria
from vettance.retention.deletion_sql import TenantTable
from vettance.retention.sql import CLASSES
from vettance.retention.stored_texts import REWRITTEN, TextColumns

#: Arguments whose type alone does not say what they can be, by function and name.
NAMED: Final[dict[str, Any]] = {
    "RowFilter.columns": (("state", "OPEN"),),
    "RuleCountTables.counted": AML_RULE_COUNTED,
    "RuleCountTables.counts": AML_RULE_COUNT,
    "RuleCountTables.last_hits": AML_RULE_LAST_HIT,
    "count_of_tenant.table": "job",
    "count_old.one": CLASSES[0],
    "empty_newest.columns": [("body", True), ("settled_at_ms", False)],
    "empty_newest.table": "delivery",
    "remove_deliveries.some": "SELECT seq FROM delivery WHERE seq = ?",
    "remove_of_tenant.table": TenantTable("job", ("seq",), is_led=True),
    "remove_found.one": CLASSES[1],
    "remove_keys.table": TenantTable("event", ("seq",), is_led=False),
    "remove_keys.keys": (1,),
    "remove_indexed.one": CLASSES[0],
    "rewrite_row.changed": {"answer": "x"},
    "select_columns.table": "delivery",
    "select_exported.moment": "received_at_ms",
    "select_newer_of.entities": {"customer": "x", "device": "y"},
    "select_newer_of_any.entities": [("customer", "x"), ("customer", "y"), ("device", "z")],
    "select_next_rows.after": (1,),
    "select_looked_at.one": CLASSES[1],
    "select_next_rows.table": TenantTable("event", ("seq",), is_led=False),
    "select_start.moment": "received_at_ms",
    "select_tail.wanted": criteria(risk_level="low", customer="c", from_ms=1),
    "select_tail_keys.wanted": criteria(device="d", reason_code="R", to_ms=1),
}
#: Values of types that are not made up.
TYPED: Final[dict[Any, Any]] = {
    Table: AML_RULESET,
    TextColumns: next(one for one in REWRITTEN if one.table == "attempt"),
    Any: 1,
    object: 1,
}
_PLAIN: Final = {str: "x1", int: 1, float: 1.0, bytes: b"{}"}
_LISTS: Final = {
    list,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.abc.Set,
    set,
    frozenset,
}


def value_of(kind: Any, *, full: bool) -> Any:
    """Make up a value of a type; optional ones are left out unless `full`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, typing.NewType):
        return value_of(kind.__supertype__, full=full)
    if kind in TYPED:
        return TYPED[kind]
    if kind is bool:
        return full
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in inner and not full else value_of(inner[0], full=full)
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple:
        return tuple(value_of(one, full=full) for one in inner if one is not ...)
    if origin in _LISTS:
        return [value_of(inner[0], full=full)]
    if origin is dict or origin is collections.abc.Mapping:
        return {value_of(inner[0], full=full): value_of(inner[1], full=full)}
    if origin is np.ndarray:
        return np.array([1], np.uint32)
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    return kind(**arguments_of(kind, full=full))


def arguments_of(called: Any, *, full: bool) -> dict[str, Any]:
    """Make up the arguments of a function or a class."""
    by_hand = inspect.isclass(called) and "__init__" in vars(called)
    hints = typing.get_type_hints(called.__init__ if by_hand else called)
    made = {}
    for name, one in inspect.signature(called).parameters.items():
        if name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            known = f"{called.__name__}.{name}"
            made[name] = NAMED[known] if known in NAMED else value_of(hints[name], full=full)
    return made
