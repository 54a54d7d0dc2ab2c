"""What a checked rule is made of: typed expressions, each with a canonical text that is its identity.

Two expressions with the same canonical text mean the same, however their authors spaced or quoted them. The
compiler shares work by it, and the state engine recognises unchanged keys, series and aggregates by it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from vettance.rules.schema import Type

#: Results beyond this are unknown: products stay far from where floats overflow and integers never end.
NUMBER_MAX: Final = 1e300

Scalar = int | float | str | bool


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `sure` says that its value is known for every event."""

    type: Type
    text: str
    sure: bool = False
    cost: int = 1


class Literal(Expression, frozen=True, kw_only=True):
    """A number, a text, or true/false."""

    value: Scalar


class Items(Expression, frozen=True, kw_only=True):
    """A list of literals, all numbers or all texts."""

    values: tuple[Scalar, ...]
    item: Type


class Fact(Expression, frozen=True, kw_only=True):
    """A name of the schema."""


class Cast(Expression, frozen=True, kw_only=True):
    """The value of an ANY expression if it has the wanted type, else unknown."""

    inner: Expression


class Not(Expression, frozen=True, kw_only=True):
    """Logical negation."""

    inner: Expression


class Logic(Expression, frozen=True, kw_only=True):
    """`and` or `or` over two or more parts."""

    both: bool  # True: and, False: or
    parts: tuple[Expression, ...]


class Compare(Expression, frozen=True, kw_only=True):
    """`==`, `<`, `<=`, `>` or `>=` of two values of one type (or of two ANY values)."""

    sign: str
    left: Expression
    right: Expression


class Member(Expression, frozen=True, kw_only=True):
    """Whether a value is in a list of literals."""

    item: Expression
    items: Items


class Arithmetic(Expression, frozen=True, kw_only=True):
    """`+`, `-`, `*`, `/` or `%` of two numbers."""

    sign: str
    left: Expression
    right: Expression


class Conditional(Expression, frozen=True, kw_only=True):
    """`then if test else other`; unknown while the test is."""

    test: Expression
    then: Expression
    other: Expression


class PresenceTest(Expression, frozen=True, kw_only=True):
    """`present(x)` or `missing(x)`; always known."""

    present: bool
    inner: Expression


class Default(Expression, frozen=True, kw_only=True):
    """`default(x, fallback)`: the fallback where x is unknown."""

    inner: Expression
    fallback: Expression


class Apply(Expression, frozen=True, kw_only=True):
    """A word of the language applied to values. `prepared` takes the arguments that are not literal."""

    word: str
    arguments: tuple[Expression, ...]
    prepared: Callable[..., Any]
    total: bool  # gives a value whenever all its arguments are known


class AggregateExpression(Expression, frozen=True, kw_only=True):
    """An aggregate over the events before this one. `upkeep` is its cost, however many rules read it."""

    kind: str
    condition: Expression | None
    value: Expression | None
    keys: tuple[Expression, ...]
    window_ms: int
    upkeep: int = 0

    @property
    def key_text(self) -> str:
        """The canonical text of the key."""
        if len(self.keys) == 1:
            return self.keys[0].text
        return "(" + ", ".join(key.text for key in self.keys) + ")"


def facts_in(expression: Expression) -> Iterator[str]:
    """Yield the name of each fact that an expression reads, as often as it does."""
    if isinstance(expression, Fact):
        yield expression.text
    for part in msgspec.structs.astuple(expression):
        for inner in part if isinstance(part, tuple) else (part,):
            if isinstance(inner, Expression):
                yield from facts_in(inner)


_OPEN: Final = (Logic, Not, Compare, Member, Conditional, Arithmetic)


def enclosed(expression: Expression) -> str:
    """Return the text of an expression so that it can be an operand of any operator."""
    return f"({expression.text})" if isinstance(expression, _OPEN) else expression.text


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct parts of an expression."""
    parts: tuple[Expression | None, ...]
    match expression:
        case Cast() | Not() | PresenceTest():
            parts = (expression.inner,)
        case Logic():
            parts = expression.parts
        case Compare() | Arithmetic():
            parts = (expression.left, expression.right)
        case Member():
            parts = (expression.item,)
        case Conditional():
            parts = (expression.test, expression.then, expression.other)
        case Default():
            parts = (expression.inner, expression.fallback)
        case Apply():
            parts = expression.arguments
        case AggregateExpression():
            parts = (*expression.keys, expression.condition, expression.value)
        case _:
            parts = ()
    return tuple(part for part in parts if part is not None)


def values_in(expression: Expression) -> Iterator[Fact | AggregateExpression]:
    """Yield what an expression reads, as often as it does: aggregates whole, not what they count by."""
    if isinstance(expression, AggregateExpression | Fact):
        yield expression
        return
    for part in children(expression):
        yield from values_in(part)


def literal(value: Scalar) -> Literal:
    """Make a literal."""
    if isinstance(value, bool):
        return Literal(type=Type.BOOL, text="true" if value else "false", sure=True, value=value, cost=0)
    if isinstance(value, str):
        shown = json.dumps(value, ensure_ascii=False)
        return Literal(type=Type.TEXT, text=shown, sure=True, value=value, cost=0)
    return Literal(type=Type.NUMBER, text=repr(value), sure=True, value=value, cost=0)


#: What a label adds to the labels of its key: of a legitimate event, and of fraud.
LABELS: Final = tuple(
    Literal(type=Type.NUMBER, text=f"labels of {of}", sure=True, value=1.0, cost=0)
    for of in ("legit", "fraud")
)


def cast(inner: Expression, to: Type) -> Expression:
    """Guard an ANY expression so that it gives the type `to` or is unknown; other types stay as they are."""
    if inner.type is not Type.ANY or to is Type.ANY:
        return inner
    # The guarded value reads the same in a rule; the mark keeps the identities of the two apart.
    return Cast(type=to, text=inner.text, inner=inner, cost=inner.cost + 1)


def negation(inner: Expression) -> Expression:
    """Make `not inner`."""
    if isinstance(inner, Not):
        return inner.inner
    return Not(type=Type.BOOL, text=f"not {enclosed(inner)}", sure=inner.sure, inner=inner, cost=inner.cost)


def logic(parts: tuple[Expression, ...], *, both: bool) -> Expression:
    """Make `and` or `or` of boolean parts."""
    joined = (" and " if both else " or ").join(
        enclosed(part) if isinstance(part, Logic | Conditional) else part.text for part in parts
    )
    return Logic(
        type=Type.BOOL,
        text=joined,
        sure=all(part.sure for part in parts),
        both=both,
        parts=parts,
        cost=1 + sum(part.cost for part in parts),
    )


def fold(sign: str, left: int | float, right: int | float) -> int | float | None:
    """Compute `left sign right` as every rule does; None (unknown) for a zero divisor and out of bounds."""
    if sign in "/%" and right == 0:
        return None
    match sign:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case "/":
            result = left / right
        case _:
            result = left % right
    return result if -NUMBER_MAX <= result <= NUMBER_MAX else None
