"""The rule language: reads a rule's text, checks every part of it, and gives typed expressions.

The text is scanned first (`scanner.py`), then parsed with Python's own expression grammar, then rebuilt node
by node from a closed list: what is not named here does not exist. Nothing of the text is ever executed.
"""

import ast
from typing import Any, Final, NoReturn

import msgspec

from vettance.rules.calls import call
from vettance.rules.expression import AggregateExpression, Expression, Fact, Items, Literal, literal
from vettance.rules.fault import RuleFault
from vettance.rules.functions import WORDS
from vettance.rules.operators import NUMBER_MAX, arithmetic, choice, comparison, logic_of, unary
from vettance.rules.parse import ITEMS_MAX, Reader, Reading, alike, clip
from vettance.rules.scanner import STRING_CHARS_MAX
from vettance.rules.schema import Schema, Type
from vettance.velocity.aggregates import AGGREGATES

__all__ = ["CheckedText", "RuleFault", "check", "check_number"]

PATH_PARTS_MAX: Final = 12  # A free-form object is at most 10 deep; its own name has one or two parts.
COST_MAX: Final = 20_000  # Of one rule, in units of about 20 ns.

_ENTITIES: Final = {"true": True, "false": False}
_NULLS: Final = ("null", "none", "nil", "undefined")


class CheckedText(msgspec.Struct, frozen=True):
    """A rule text that has been found good. `cost` is in units of about 20 ns, when nothing is shared."""

    text: str
    expression: Expression
    cost: int
    names: tuple[str, ...]  # the fields it reads, in order of first use
    aggregates: tuple[AggregateExpression, ...]
    doubts: tuple[RuleFault, ...] = ()  # comparisons that no event, or every event, fulfils


def check(text: str, schema: Schema) -> CheckedText:
    """Check a rule text against the names of a schema. Raises `RuleFault` for the first fault of several."""
    return _check(text, schema, Type.BOOL, "a rule")


def check_number(text: str, schema: Schema) -> CheckedText:
    """Check a text that gives a number, as a feature does. Raises as `check`."""
    return _check(text, schema, Type.NUMBER, "a feature")


def _check(text: str, schema: Schema, wanted: Type, what: str) -> CheckedText:
    reading = Reading(text.replace("\r\n", "\n"), schema, _READERS)
    expression = reading.want(reading.parse(), wanted, what)
    if reading.faults:
        first, *others = reading.faults
        first.also = tuple(others)
        raise first
    aggregates = tuple(reading.aggregates.values())
    cost = expression.cost + sum(found.upkeep for found in aggregates)
    if cost > COST_MAX:
        raise RuleFault("this rule costs too much to run", reading.text, 1, 1, hint="split it into several")
    return CheckedText(
        reading.text, expression, cost, tuple(reading.names), aggregates, tuple(reading.doubts)
    )


def constant(reading: Reading, node: ast.Constant) -> Expression:
    """Read a number, a text, or true/false."""
    value: Any = node.value
    if type(value) is bool:
        return literal(value)
    if type(value) in (int, float):
        if not -NUMBER_MAX <= value <= NUMBER_MAX:
            reading.refuse(node, "this number is too large", "numbers go up to 1e15")
        return literal(value)
    if type(value) is str:
        if len(value) > STRING_CHARS_MAX:
            reading.refuse(node, f"a text is at most {STRING_CHARS_MAX} characters long")
        if any((char < " " and char not in "\n\t\r") or "\ud800" <= char <= "\udfff" for char in value):
            reading.refuse(node, "this text holds characters that no event can hold")
        return literal(value)
    raise reading.fault(node, "this value is not part of the rule language")


def _dotted(reading: Reading, node: ast.expr) -> str:
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        reading.refuse(node, "a dot stands only inside a name", "a value has no members and no methods")
    return ".".join((inner.id, *reversed(parts)))


def name(reading: Reading, node: ast.Name | ast.Attribute) -> Expression:
    """Read a dotted name."""
    dotted = _dotted(reading, node)
    if dotted.count(".") >= PATH_PARTS_MAX:
        reading.refuse(node, f"a name has at most {PATH_PARTS_MAX} parts")
    found = reading.schema.type_of(dotted)
    if found is None:
        if dotted in _ENTITIES:
            return literal(_ENTITIES[dotted])
        _refuse_name(reading, node, dotted)
    reading.names.setdefault(dotted)
    return Fact(type=found, text=dotted)


def _refuse_name(reading: Reading, node: ast.expr, name: str) -> NoReturn:
    if name.lower() in _NULLS:
        reading.refuse(node, f"{name} is not part of the rule language", "write missing(x) or present(x)")
    if name in reading.schema.namespaces:
        reading.refuse(node, f"{name} holds names but is no value", f"name a member: {name}.something")
    if name in WORDS or name in AGGREGATES:
        reading.refuse(node, f"{name} is a word and takes brackets", f"write {name}(…)")
    known = [*reading.schema.fields, *(f"{each}." for each in reading.schema.namespaces)]
    reading.refuse(node, f"there is no name {clip(name)}", alike(name, known))


def items(reading: Reading, node: ast.List) -> Expression:
    """Read a list of literals."""
    if not node.elts:
        reading.refuse(node, "this list is empty", "a list holds at least one text or number")
    if len(node.elts) > ITEMS_MAX:
        reading.refuse(node, f"a list has at most {ITEMS_MAX} items", "keep long lists as list entries")
    found: list[Literal] = []
    for element in node.elts:
        item = reading.expression(element) if isinstance(element, ast.Constant | ast.UnaryOp) else None
        if not isinstance(item, Literal) or item.type is Type.BOOL:
            reading.refuse(element, "a list holds only texts or numbers, written out")
        if item.type is not (found or [item])[0].type:
            reading.refuse(element, "a list holds either texts or numbers, not both")
        found.append(item)
    shown = "[" + ", ".join(item.text for item in found) + "]"
    values = tuple(item.value for item in found)
    return Items(type=Type.LIST, text=shown, sure=True, values=values, item=found[0].type)


_READERS: Final[dict[type[ast.AST], Reader]] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Attribute: name,
    ast.List: items,
    ast.BoolOp: logic_of,
    ast.UnaryOp: unary,
    ast.BinOp: arithmetic,
    ast.Compare: comparison,
    ast.IfExp: choice,
    ast.Call: call,
}
