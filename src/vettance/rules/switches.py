"""Switches: which changes of the values that a condition reads would make it true, or no longer true.

What is found is a proposal: a change of one value can move other conditions, so the rules are run with it
before it is shown.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from vettance.rules.expression import (
    AggregateExpression,
    Cast,
    Compare,
    Conditional,
    Default,
    Expression,
    Fact,
    Items,
    Logic,
    Member,
    Not,
    PresenceTest,
    Scalar,
    values_in,
)
from vettance.rules.schema import Type

#: Alternatives that are kept of one condition, and values that one alternative may change.
ALTERNATIVES_MAX: Final = 12
CHANGES_MAX: Final = 4

_WHOLE: Final = ("count", "distinct", "frauds", "legits")
#: A text that no rule names.
_OTHER: Final = "another"


class ValueChange(NamedTuple):
    """One value as it would have to be: its name, the value to try, and how that reads (`<= 2`)."""

    name: str
    value: Scalar | None
    sign: str  # "<=", "<", ">=", ">", "==", "!=", "in", "not in", "missing"
    bound: Any


#: Changes that are needed together.
ChangeSet = tuple[ValueChange, ...]
#: Tells the value that an expression has when some values are changed; unknown is None.
Compute = Callable[[Expression, ChangeSet], Any]


def switch(expression: Expression, *, on: bool, compute: Compute) -> list[ChangeSet]:
    """Return sets of changes that may make a condition true (`on`) or not true; the smallest first."""
    found = _switch(expression, on=on, compute=compute)
    return sorted(dict.fromkeys(found), key=len)[:ALTERNATIVES_MAX]


def _switch(expression: Expression, *, on: bool, compute: Compute) -> list[ChangeSet]:
    if (compute(expression, ()) is True) is on:
        return [()]
    found: list[ChangeSet]
    match expression:
        case Cast():
            found = _switch(expression.inner, on=on, compute=compute) if expression.type is Type.BOOL else []
        case Not():
            found = _deny(expression.inner, on=on, compute=compute)
        case Logic():
            ways = [_switch(part, on=on, compute=compute) for part in expression.parts]
            # `and` is switched on by all of its parts and off by one; `or` the other way round.
            found = _together(ways) if expression.both is on else list(itertools.chain(*ways))
        case Compare():
            found = _compare(expression, on=on, compute=compute)
        case Member():
            found = _member(expression, on=on)
        case PresenceTest():
            found = _presence(expression, on=on)
        case Conditional():
            branch = expression.then if compute(expression.test, ()) is True else expression.other
            found = _switch(branch, on=on, compute=compute)
        case Fact() | AggregateExpression():
            found = [(ValueChange(expression.text, on, "==", on),)]
        case _:
            found = _missing(expression, on=on)
    return found


def _deny(inner: Expression, *, on: bool, compute: Compute) -> list[ChangeSet]:
    """Switch `not inner`: it is unknown where its inner part is, so that has to be known and false."""
    if not on:
        return [*_switch(inner, on=True, compute=compute), *_missing(inner, on=False)]
    return [way for way in _switch(inner, on=False, compute=compute) if compute(inner, way) is False]


def _together(ways: Sequence[list[ChangeSet]]) -> list[ChangeSet]:
    joined: list[ChangeSet] = []
    for parts in itertools.islice(itertools.product(*(way[:3] for way in ways)), 64):
        merged: dict[str, ValueChange] = {}
        for change in itertools.chain(*parts):
            merged[change.name] = change
        if len(merged) <= CHANGES_MAX:
            joined.append(tuple(merged.values()))
    return joined


def _slot(expression: Expression) -> Fact | AggregateExpression | None:
    """Return the value that an expression is, when it is nothing but that."""
    while isinstance(expression, Cast | Default):
        expression = expression.inner
    return expression if isinstance(expression, Fact | AggregateExpression) else None


def _missing(expression: Expression, *, on: bool) -> list[ChangeSet]:
    """Return what makes an expression unknown, which is not true."""
    if on:
        return []
    return [(ValueChange(slot.text, None, "missing", None),) for slot in values_in(expression)]


_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}
_MIRROR: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def _compare(expression: Compare, *, on: bool, compute: Compute) -> list[ChangeSet]:
    found: list[ChangeSet] = []
    sides = (expression.left, expression.right, expression.sign)
    for one, other, sign in (sides, (sides[1], sides[0], _MIRROR[sides[2]])):
        slot = _slot(one)
        bound = compute(other, ())
        if slot is not None and bound is not None:
            wanted = sign if on else _OPPOSITE[sign]
            found += [(change,) for change in _beyond(slot, wanted, bound)]
    if not found:
        found += _search(expression, on=on, compute=compute)
    return found or _missing(expression, on=on)


def _is_whole(slot: Fact | AggregateExpression) -> bool:
    return isinstance(slot, AggregateExpression) and slot.kind in _WHOLE


def _beyond(slot: Fact | AggregateExpression, sign: str, bound: Any) -> list[ValueChange]:
    """Return the nearest value of a slot in a relation to a bound."""
    name = slot.text
    if sign == "==":
        return [ValueChange(name, bound, sign, bound)]
    if isinstance(bound, bool):
        return [ValueChange(name, not bound, "==", not bound)]
    if sign == "!=":
        return [ValueChange(name, _OTHER if isinstance(bound, str) else bound + 1, sign, bound)]
    if not isinstance(bound, int | float):
        return []
    return [_beyond_whole(name, sign, bound) if _is_whole(slot) else _beyond_real(name, sign, bound)]


def _beyond_whole(name: str, sign: str, bound: float) -> ValueChange:
    if sign in (">", ">="):
        least = math.ceil(bound) if sign == ">=" else math.floor(bound) + 1
        return ValueChange(name, least, ">=", least)
    most = math.floor(bound) if sign == "<=" else math.ceil(bound) - 1
    return ValueChange(name, most, "<=", most)


def _beyond_real(name: str, sign: str, bound: float) -> ValueChange:
    nearest = {"<": -math.inf, ">": math.inf}
    value = math.nextafter(bound, nearest[sign]) if sign in nearest else bound
    return ValueChange(name, value, sign, bound)


#: Factors at which a value is tried when a comparison cannot be solved for it.
_LADDER: Final = (0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0, 10.0, 100.0, 1000.0)
_BISECTIONS: Final = 30


def _search(expression: Compare, *, on: bool, compute: Compute) -> list[ChangeSet]:
    """Find the number nearest to a value at which a comparison turns, by trying and halving."""
    found: list[ChangeSet] = []
    for slot in dict.fromkeys(values_in(expression)):
        value = compute(slot, ())
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        turned: list[tuple[float, float]] = []
        turns = _turning(expression, slot.text, on=on, compute=compute)
        for factor in _LADDER:
            tried = (value or 1) * factor
            if turns(tried):
                turned.append((abs(tried - value), tried))
        if turned:
            found.append((_halved(slot, value, min(turned)[1], turns),))
    return found


def _turning(expression: Compare, name: str, *, on: bool, compute: Compute) -> Callable[[float], bool]:
    """Return what tells whether a number in the place of a value turns a comparison."""

    def turns(number: float) -> bool:
        return (compute(expression, (ValueChange(name, number, "==", number),)) is True) is on

    return turns


def _halved(
    slot: Fact | AggregateExpression,
    value: float,
    there: float,
    turns: Callable[[float], bool],
) -> ValueChange:
    here = float(value)
    for _ in range(_BISECTIONS):
        middle = (here + there) / 2
        if _is_whole(slot):
            middle = float(math.floor(middle) if there < here else math.ceil(middle))
        if middle in (here, there):
            break
        if turns(middle):
            there = middle
        else:
            here = middle
    rounded = _rounded(there, value)
    if not turns(rounded):
        rounded = there
    sign = "<=" if rounded < value else ">="
    return ValueChange(slot.text, int(rounded) if rounded.is_integer() else rounded, sign, rounded)


def _rounded(number: float, origin: float) -> float:
    """Round to three digits, away from the value as it was, so that the number can be read."""
    if not number:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 2)
    return (math.floor(number / step) if number < origin else math.ceil(number / step)) * step


def _member(expression: Member, *, on: bool) -> list[ChangeSet]:
    slot, items = _slot(expression.item), expression.items
    if slot is None:
        return _missing(expression.item, on=on)
    shown = items.values
    if on:
        return [(ValueChange(slot.text, shown[0], "in", shown),)]
    other: Scalar = _OTHER if isinstance(items, Items) and items.item is Type.TEXT else _absent(shown)
    return [(ValueChange(slot.text, other, "not in", shown),)]


def _absent(numbers: Iterable[Any]) -> int:
    return int(max(numbers)) + 1


def _presence(expression: PresenceTest, *, on: bool) -> list[ChangeSet]:
    slot = _slot(expression.inner)
    if slot is None:
        return []
    if expression.present is on:
        # What it would have been is not known; that it was there is what counts.
        known: Scalar = {Type.NUMBER: 1, Type.BOOL: True}.get(slot.type, _OTHER)
        return [(ValueChange(slot.text, known, "present", None),)]
    return [(ValueChange(slot.text, None, "missing", None),)]
