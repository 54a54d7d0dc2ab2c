"""What an expression can give, and the comparisons that no event, or every event, fulfils."""

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from vettance.rules.domain import (
    ANYTHING,
    COUNT,
    Domain,
    Doubt,
    computed,
    doubt_about,
    doubt_about_part,
    listed,
    of_value,
    range_hint,
    union,
)
from vettance.rules.expression import (
    AggregateExpression,
    Apply,
    Arithmetic,
    Compare,
    Conditional,
    Default,
    Expression,
    Fact,
    Literal,
    Member,
)
from vettance.rules.functions import WORDS
from vettance.rules.parse import Reading, clip
from vettance.rules.schema import Field, Type
from vettance.velocity.aggregates import AGGREGATES, Range

#: What is left of a pattern besides classes of characters and escapes: letters that stand for themselves.
_NOT_LETTERS: Final = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[(?:\\.|[^\]])*\]|\(\?[^:)]*[:)]", re.DOTALL)
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_PARTS: Final = ("contains", "starts_with", "ends_with")


Fields = Mapping[str, Field]


def domain_of(expression: Expression, fields: Fields) -> Domain:
    """Return what an expression can give, by the domains of the fields that it reads."""
    read = _DOMAINS.get(type(expression))
    return read(expression, fields) if read is not None else ANYTHING


def _fact(found: Fact, fields: Fields) -> Domain:
    field = fields.get(found.text)
    return field.domain if field is not None else ANYTHING


def _default(found: Default, fields: Fields) -> Domain:
    return union(domain_of(found.inner, fields), domain_of(found.fallback, fields))


def _choice(found: Conditional, fields: Fields) -> Domain:
    return union(domain_of(found.then, fields), domain_of(found.other, fields))


def _arithmetic(found: Arithmetic, fields: Fields) -> Domain:
    return computed(found.sign, domain_of(found.left, fields), domain_of(found.right, fields))


def _apply(found: Apply, fields: Fields) -> Domain:
    word = WORDS.get(found.word)
    if word is None:  # One that is put together from aggregates.
        return ANYTHING
    given = word.domain
    if not callable(given):
        return given
    return given(*(domain_of(argument, fields) for argument in found.arguments))


def _remembered(found: AggregateExpression, fields: Fields) -> Domain:
    inner = domain_of(found.value, fields) if found.value is not None else ANYTHING
    match AGGREGATES[found.kind].range:
        case Range.COUNT:
            return COUNT
        case Range.DISTINCT:
            most = len(inner.values) if inner.values and inner.closed else math.inf
            return msgspec.structs.replace(COUNT, high=most)
        case Range.SECONDS:
            return Domain(low=0, high=found.window_ms / 1000)
        case Range.SUM:
            # Of values that are never negative; otherwise they may cancel out or pile up.
            return Domain(low=0 if inner.low >= 0 else -math.inf, closed=inner.closed)
        case Range.VALUES:
            return inner
    return ANYTHING


def _literal(found: Literal, _fields: Fields) -> Domain:
    return of_value(found.value)


_DOMAINS: Final[dict[type[Expression], Callable[[Any, Fields], Domain]]] = {
    Literal: _literal,
    Fact: _fact,
    Default: _default,
    Conditional: _choice,
    Arithmetic: _arithmetic,
    Apply: _apply,
    AggregateExpression: _remembered,
}


def question_comparison(reading: Reading, nodes: tuple[ast.expr, ast.expr], found: Compare) -> None:
    """Note what is wrong with a comparison: a value that one side never has, or ends that never meet."""
    fields = reading.schema.fields
    sides = found.left, found.right
    if all(isinstance(side, Literal) for side in sides) or found.left.type is Type.ANY:
        return None
    domains = domain_of(sides[0], fields), domain_of(sides[1], fields)
    if found.sign == "==":
        for at, other in ((0, 1), (1, 0)):
            side = sides[other]
            if isinstance(side, Literal):
                doubt = doubt_about(domains[at], clip(sides[at].text), side.value)
                return _note(reading, nodes[other], doubt)
        values = domains[0].values, domains[1].values
        if all(values) and values[0].isdisjoint(values[1]) and domains[0].closed and domains[1].closed:
            hint = (listed(domains[0]) or "").replace("it is", f"{clip(sides[0].text)} is") or None
            return _note(reading, nodes[1], Doubt("the two sides have no value in common", hint))
    if found.left.type is Type.NUMBER:
        _question_range(reading, nodes, found, domains)
    return None


def _question_range(
    reading: Reading, nodes: tuple[ast.expr, ast.expr], found: Compare, domains: tuple[Domain, Domain]
) -> None:
    truth = verdict(found.sign, *domains)
    if truth is None:
        return
    # The side that is written out is what is to be mended; the other one is what is known.
    known = 1 if isinstance(found.left, Literal) else 0
    sides, sign = (found.left, found.right), found.sign
    if known:
        sign = _MIRRORED[sign]
    shown = f"{clip(sides[known].text)} {sign} {clip(sides[1 - known].text)}"
    said = "always true where it is known" if truth else "never true"
    certain = not truth and domains[0].closed and domains[1].closed
    doubt = Doubt(f"{shown} is {said}", range_hint(domains[known]), certain)
    _note(reading, nodes[1 - known], doubt)


def verdict(sign: str, left: Domain, right: Domain) -> bool | None:
    """Say whether a comparison of two numbers holds for all of their values, for none, or for some (None)."""
    if sign in (">", ">="):
        sign, left, right = _MIRRORED[sign], right, left
    match sign:
        case "<":
            always, never = left.high < right.low, left.low >= right.high
        case "<=":
            always, never = left.high <= right.low, left.low > right.high
        case _:
            always, never = False, left.high < right.low or left.low > right.high
    return True if always else False if never else None


def question_member(reading: Reading, elements: list[ast.expr], found: Member) -> None:
    """Note every item of a list that the value before `in` never has."""
    domain = domain_of(found.item, reading.schema.fields)
    for element, value in zip(elements, found.items.values, strict=True):
        _note(reading, element, doubt_about(domain, clip(found.item.text), value))


def question_word(reading: Reading, nodes: list[ast.expr], found: Expression) -> None:
    """Note a part or a pattern that no value of the searched text has."""
    if not isinstance(found, Apply) or len(nodes) < 2 or found.arguments[0].type is not Type.TEXT:
        return
    text = found.arguments[0]
    if isinstance(text, Literal):
        return
    domain, name = domain_of(text, reading.schema.fields), clip(text.text)
    if found.word in _PARTS and isinstance(part := found.arguments[1], Literal):
        sought = str(part.value)
        doubt = doubt_about_part(
            domain, name, sought, found.word, lambda value: found.prepared(value, sought) is True
        )
        _note(reading, nodes[1], doubt)
    elif found.word == "matches":
        _question_pattern(reading, nodes[1], found, domain, name)


def _question_pattern(reading: Reading, node: ast.expr, found: Apply, domain: Domain, name: str) -> None:
    if domain.values and domain.closed:
        _note(reading, node, doubt_about_part(domain, name, "", "matches", found.prepared))
        return
    pattern = node.value if isinstance(node, ast.Constant) else None
    if domain.fold is None or not isinstance(pattern, str) or "(?i" in pattern:
        return
    letters = _NOT_LETTERS.sub("", pattern)
    if domain.fold.part(letters) != letters:
        message = f"{name} is always {domain.fold.said}, this pattern is not"
        _note(reading, node, Doubt(message, "begin it with (?i) to match both", certain=False))


def _note(reading: Reading, node: ast.expr, doubt: Doubt | None) -> None:
    if doubt is not None:
        reading.doubt(node, doubt)
