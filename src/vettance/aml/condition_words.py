"""Conditions of rules in plain words, for the sentences of alerts."""

import ast
import functools
from typing import Final

from vettance.rules.parse import parse_expression

#: How names are called in a sentence; others are called as they are written, with spaces.
_WORDS: Final = {
    "sender": "senders",
    "receiver": "receivers",
    "counterparty.key": "counterparties",
    "customer.key": "customers",
    "customer.external_id": "customers",
    "account.id": "accounts",
    "place": "places",
    "pair_is_new": "between parties new to each other",
    "moves_money": "of money",
    "incoming": "coming in",
    "outgoing": "going out",
    "cash": "in cash",
    "near_threshold": "within 10 % below a reporting limit",
    "below_threshold": "from 60 % of a reporting limit to below it",
    "cash_below_threshold": "in cash below a reporting limit",
    "round_sum": "of round sums",
    "repayment": "of repayments",
    "adds_instrument": "of new instruments",
    "place.high_risk": "with high-risk jurisdictions",
    "wages": "of pay",
    "worth": "amount",
}
#: Those of them that are several of something.
_SEVERAL: Final = frozenset({"senders", "receivers", "counterparties", "customers", "accounts", "places"})
_BOUNDS: Final[dict[type, str]] = {
    ast.GtE: "of at least",
    ast.Gt: "above",
    ast.LtE: "of at most",
    ast.Lt: "below",
    ast.Eq: "",
    ast.NotEq: "other than",
}
_TURNED: Final[dict[type, type]] = {ast.GtE: ast.LtE, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.Lt: ast.Gt}
#: Said of what has no plain words.
_OTHER: Final = "that meet the rule's condition"


def name_in_words(name: str) -> str:
    """Return how a name of the rule language is called in a sentence."""
    return _WORDS.get(name, name.replace("_", " ").replace(".", " "))


def one_of(several: str) -> str:
    """Return what one of several is called: of `counterparties`, `counterparty`; other words as they are."""
    if several not in _SEVERAL:
        return several
    return f"{several[:-3]}y" if several.endswith("ies") else several[:-1]


@functools.lru_cache(maxsize=4_096)
def condition_in_words(text: str) -> str:
    """Say a condition as people would: `5 <= a and a < 9` is "with a of at least 5 and below 9".

    Conditions that are nested, or that compute, have no words that cannot be misread.
    """
    try:
        return _said(parse_expression(f"({text}\n)"))  # In brackets it may run over several lines.
    except (SyntaxError, _Unsaid):
        return _OTHER


class _Unsaid(Exception):
    """A part of a condition has no plain words."""


def _said(node: ast.expr) -> str:
    match node:
        case ast.BoolOp(_, parts) if any(isinstance(part, ast.BoolOp) for part in parts):
            raise _Unsaid
        case ast.UnaryOp(ast.Not(), ast.BoolOp()):
            raise _Unsaid
        case ast.BoolOp(ast.And(), parts):
            return _together(parts)
        case ast.BoolOp(ast.Or(), parts):
            return " or ".join(map(_said, parts))
        case ast.UnaryOp(ast.Not(), part):
            return f"not {_said(part)}"
        case ast.Compare():
            return _together([node])
        case ast.Name() | ast.Attribute():
            return name_in_words(ast.unparse(node))
    raise _Unsaid


def _together(parts: list[ast.expr]) -> str:
    """Say parts that hold together; bounds of one name are said as one."""
    bounds: dict[str, list[str]] = {}
    others: list[str] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            others.append(_said(part))
            continue
        sides = [part.left, *part.comparators]
        for left, operator, right in zip(sides, part.ops, sides[1:], strict=False):
            name, bound = _bound(left, operator, right)
            bounds.setdefault(name, []).append(bound)
    said = [f"with {name} {' and '.join(found)}" for name, found in bounds.items()]
    return ", ".join((*others, *said))


def _bound(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[str, str]:
    kind = type(operator)
    if isinstance(left, ast.Constant):
        left, right, kind = right, left, _TURNED.get(kind, kind)
    if kind in (ast.In, ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
        values = " or ".join(map(_value, right.elts))
        return _said(left), values if kind is ast.In else f"other than {values}"
    if kind not in _BOUNDS:
        raise _Unsaid
    return _said(left), f"{_BOUNDS[kind]} {_value(right)}".strip()


def _value(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return f"{value:,}" if not isinstance(value, bool) else "yes" if value else "no"
        raise _Unsaid
    return _said(node)
