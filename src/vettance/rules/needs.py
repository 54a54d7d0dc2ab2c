"""What a condition cannot do without: values that keep it from being true while nobody sends them."""

from collections.abc import Set
from typing import Final

from vettance.rules.expression import (
    AggregateExpression,
    Apply,
    Arithmetic,
    Cast,
    Compare,
    Conditional,
    Default,
    Expression,
    Fact,
    Literal,
    Logic,
    Member,
    Not,
    PresenceTest,
    children,
)
from vettance.velocity.aggregates import AGGREGATES

#: Stands for a literal that is always something else; it has no name.
_LITERAL: Final = frozenset({""})


def needs(condition: Expression, unsaid: Set[str]) -> frozenset[str]:
    """Return the names among `unsaid` because of which a condition is never true; none where it can be.

    `unsaid` are names whose value is unknown for every event. Each kind of expression is looked at by
    itself, so two parts that exclude each other are not found.
    """
    return _never(condition, unsaid, wanted=True) - _LITERAL


def _never(expression: Expression, unsaid: Set[str], *, wanted: bool) -> frozenset[str]:
    """Return because of what an expression never has a truth value; nothing where it may."""
    found: frozenset[str] = frozenset()
    match expression:
        case Not(inner=inner):
            found = _never(inner, unsaid, wanted=not wanted)
        case Logic(both=both, parts=parts):
            each = [_never(part, unsaid, wanted=wanted) for part in parts]
            found = _any(each) if both is wanted else _all(each)
        case PresenceTest(present=present, inner=inner):
            found = _unknown(inner, unsaid) if present is wanted else found
        case Default(inner=inner, fallback=fallback):
            found = _all([_never(part, unsaid, wanted=wanted) for part in (inner, fallback)])
        case Conditional(test=test, then=then, other=other):
            branches = [_never(part, unsaid, wanted=wanted) for part in (then, other)]
            found = _unknown(test, unsaid) or _all(branches)
        case Literal(value=value):
            found = found if value is wanted else _LITERAL
        case _:
            found = _unknown(expression, unsaid)
    return found


def _unknown(expression: Expression, unsaid: Set[str]) -> frozenset[str]:
    """Return because of what the value of an expression is always unknown; nothing where it may be known."""
    found: frozenset[str] = frozenset()
    match expression:
        case Fact(text=name):
            found = frozenset({name} & unsaid)
        case Cast() | Not() | Compare() | Member() | Arithmetic() | Apply():
            found = _any([_unknown(part, unsaid) for part in children(expression)])
        case Logic():
            found = _all([_never(expression, unsaid, wanted=wanted) for wanted in (True, False)])
        case Default(inner=inner, fallback=fallback):
            found = _all([_unknown(part, unsaid) for part in (inner, fallback)])
        case Conditional(test=test, then=then, other=other):
            found = _unknown(test, unsaid) or _all([_unknown(part, unsaid) for part in (then, other)])
        case AggregateExpression(keys=keys):
            found = _any([_unknown(key, unsaid) for key in keys]) or _uncounted(expression, unsaid)
    return found


def _uncounted(expression: AggregateExpression, unsaid: Set[str]) -> frozenset[str]:
    """Return because of what an aggregate never counts anything, where that leaves it unknown."""
    kind, value, condition = AGGREGATES[expression.kind], expression.value, expression.condition
    found = _unknown(value, unsaid) if value is not None else frozenset[str]()
    if kind.default is not None:
        return found if kind.asks_own else frozenset()
    return found or (_never(condition, unsaid, wanted=True) if condition is not None else frozenset())


def _any(found: list[frozenset[str]]) -> frozenset[str]:
    """Return every reason there is: one part is enough."""
    return frozenset[str]().union(*found)


def _all(found: list[frozenset[str]]) -> frozenset[str]:
    """Return every reason where each part has one."""
    return frozenset[str]().union(*found) if all(found) else frozenset()
