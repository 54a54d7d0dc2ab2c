"""What events had to show, as columns of numbers: one for each expression that a condition may be about."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.decisions.searchable_fields import COLUMNS, ENTITIES, FIELD_OF_COLUMN
from vettance.rules.compiler import CompiledRules
from vettance.rules.language import RuleFault, check, check_number
from vettance.rules.schema import Schema, Type
from vettance.suggestions.logged_values import WantedValues

#: A text with more values than this names somebody or something; one with fewer says what kind it is.
KINDS_MAX: Final = 400
#: The share of events that may have a value of their own, of a text that says what kind something is.
_OWN_SHARE: Final = 0.1
#: Members of free-form objects that are looked at, and the events that have to have one.
MEMBERS_MAX: Final = 60
_MEMBER_SHARE: Final = 0.02
_UNKNOWN: Final = -1
#: Where the names that a tenant chose begin.
FREE_FORM: Final = ("metadata.", "custom_fields.", "payload.")
#: Names that tell who it is, when it was, or what a model says of it: no rule should be made of these.
_IDENTITIES: Final = frozenset(
    name.name
    for column in COLUMNS
    if any(column in columns for columns in ENTITIES.values())
    for name in FIELD_OF_COLUMN[column].rule_names
)
_UNFIT: Final = _IDENTITIES | {"customer.key", "device.key", "occurred_at_ms", "user_agent"}
_UNFIT_SPACES: Final = ("model.",)

Values32 = npt.NDArray[np.float32]


class ValueSource(NamedTuple):
    """One expression of the rule language whose values are read, and of which type they are."""

    text: str
    type: Type


class SourceTable(NamedTuple):
    """What is read of each event, and the expression of each value, in the same order."""

    wanted: WantedValues
    sources: tuple[ValueSource, ...]

    def keeping(self, texts: Collection[str]) -> "SourceTable":
        """Return the table with some of its expressions only."""
        facts, counted, said = self.wanted.facts, self.wanted.aggregates, self.wanted.features
        first = len(facts) + len(counted)
        wanted = self.wanted._replace(
            facts=tuple(name for name in facts if name in texts),
            aggregates=tuple(name for name in counted if name in texts),
            features=tuple(
                place for place, one in zip(said, self.sources[first:], strict=True) if one.text in texts
            ),
        )
        return SourceTable(wanted, tuple(one for one in self.sources if one.text in texts))


class ValueColumn(NamedTuple):
    """The values of one expression: numbers (NaN is unknown); of a text, places in `kinds`.

    True is 1 and false 0.
    """

    source: ValueSource
    values: Values32
    kinds: tuple[str, ...] = ()


def members_of(bodies: Iterable[dict[str, Any]], schema: Schema) -> list[str]:
    """Return the members of free-form objects that enough events have and the schema does not declare."""
    count = 0
    seen: Counter[str] = Counter()
    for body in bodies:
        count += 1
        for space in FREE_FORM:
            held = body.get(space[:-1])
            for member, value in held.items() if isinstance(held, dict) else ():
                name = f"{space}{member}"
                if isinstance(value, str | int | float | bool) and name not in schema.fields:
                    seen[name] += 1
    found = [name for name, number in seen.most_common(MEMBERS_MAX) if number >= _MEMBER_SHARE * count]
    return [name for name in found if _is_readable(name, schema)]


def _is_readable(name: str, schema: Schema) -> bool:
    try:
        check(f"present({name})", schema)
    except RuleFault:
        return False
    return True


def sources_of(
    schema: Schema,
    compiled: CompiledRules,
    members: Sequence[str],
    features: Sequence[tuple[str, str]] = (),
    feature_set: str = "",
) -> SourceTable:
    """Return what there is to look at: fields, members, aggregates of the rules, features of a model.

    `features` are names with their expressions, in the order of the set.
    """
    facts = [
        ValueSource(name, field.type)
        for name, field in schema.fields.items()
        if field.type in (Type.NUMBER, Type.BOOL, Type.TEXT)
        and name not in _UNFIT
        and not name.startswith(_UNFIT_SPACES)
    ]
    facts += [ValueSource(name, Type.ANY) for name in members]
    counted = []
    for name in compiled.plan.aggregate_names:
        kind = _type_of(name, schema)
        if kind in (Type.NUMBER, Type.BOOL):
            counted.append(ValueSource(name, kind))
    known = {one.text for one in counted}
    places, said = [], []
    for place, (_, text) in enumerate(features):
        # Those that are facts are known by themselves, and a choice of numbers makes no readable condition.
        if "(" in text and " if " not in text and text not in known and _type_of(text, schema) is Type.NUMBER:
            places.append(place)
            said.append(ValueSource(text, Type.NUMBER))
    wanted = WantedValues(
        tuple(one.text for one in facts), tuple(one.text for one in counted), tuple(places), feature_set
    )
    return SourceTable(wanted, (*facts, *counted, *said))


def _type_of(text: str, schema: Schema) -> Type | None:
    """Return whether an expression gives a number or true/false; None for anything else."""
    for read, kind in ((check_number, Type.NUMBER), (check, Type.BOOL)):
        try:
            read(text, schema)
        except RuleFault:
            continue
        return kind
    return None


class ColumnCollector:
    """Takes the values of events and makes columns of them."""

    def __init__(self, sources: Sequence[ValueSource]) -> None:
        self._sources = sources
        self._texts = [place for place, one in enumerate(sources) if one.type in (Type.TEXT, Type.ANY)]
        self._numbers = [place for place, one in enumerate(sources) if one.type in (Type.NUMBER, Type.BOOL)]
        self._number_parts: list[Values32] = []
        self._text_parts: list[list[Any]] = [[] for _ in self._texts]
        self.count = 0

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take further events."""
        self.count += len(rows)
        picked = [[row[place] for place in self._numbers] for row in rows]
        part = np.array(picked, dtype=np.float64).reshape(len(rows), len(self._numbers))
        with np.errstate(over="ignore"):
            self._number_parts.append(part.astype(np.float32))
        for kept, place in zip(self._text_parts, self._texts, strict=True):
            kept += [row[place] for row in rows]

    def columns(self) -> list[ValueColumn]:
        """Return the columns that differ between events and name nobody."""
        found: list[ValueColumn] = []
        if self._number_parts:
            table = np.concatenate(self._number_parts)
            for at, place in enumerate(self._numbers):
                found.append(ValueColumn(self._sources[place], np.ascontiguousarray(table[:, at])))
        for kept, place in zip(self._text_parts, self._texts, strict=True):
            found += _columns_of(self._sources[place], kept)
        return [one for one in found if _differs(one.values)]


def _columns_of(source: ValueSource, values: list[Any]) -> list[ValueColumn]:
    """Make columns of values that are texts, or of any type: one for each type that there is enough of."""
    found = []
    texts = Counter(value for value in values if type(value) is str)
    total = texts.total()
    if total and (len(texts) <= KINDS_MAX and len(texts) <= max(_OWN_SHARE * total, 3)):
        kinds = tuple(sorted(texts))
        place_of = {text: float(place) for place, text in enumerate(kinds)}
        # A list is no kind, and cannot be looked up.
        codes = [place_of[one] if type(one) is str else np.nan for one in values]
        text_source = ValueSource(source.text, Type.TEXT)
        found.append(ValueColumn(text_source, np.array(codes, dtype=np.float32), kinds))
    if source.type is Type.ANY:
        for kind, types in ((Type.NUMBER, (int, float)), (Type.BOOL, (bool,))):
            if any(type(one) in types for one in values):
                numbers = [float(one) if type(one) in types else np.nan for one in values]
                found.append(ValueColumn(ValueSource(source.text, kind), np.array(numbers, dtype=np.float32)))
    return found


def _differs(values: Values32) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 0 and (len(known) < len(values) or bool((known != known[0]).any()))
