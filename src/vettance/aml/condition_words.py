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
    "loan_paid_out": "of loans paid out",
    "purchase": "of purchases",
    "transfers": "of transfers",
    "adds_instrument": "of new instruments",
    "place.high_risk": "with high-risk jurisdictions",
    "wages": "of pay",
    "regular": "by standing order",
    "worth": "amount",
    "unit_price": "unit price",
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
    return _WORDS.get(name, name.removeprefix("metadata.").replace("_", " ").replace(".", " "))


def one_of(several: str) -> str:
    """Return what one of several is called: of `counterparties`, `counterparty`; other words as they are."""
    if several not in _SEVERAL:
        return several
    return f"{several[:-3]}y" if several.endswith("ies") else several[:-1]


@functools.lru_cache(maxsize=4_096)
def condition_in_words(text: str, scale: float = 1.0) -> str:
    """Say a condition as people would: `5 <= a and a < 9` is "with a of at least 5 and below 9".

    `scale` is how many units of the event's currency weigh 1: bounds of `worth` are said in that currency, as
    its sums are. Conditions that mix "and" with "or", or that compute, have no words that cannot be misread.
    """
    try:
        return _said(parse_expression(f"({text}\n)"), scale)  # In brackets it may run over several lines.
    except (SyntaxError, _Unsaid):
        return _OTHER


class _Unsaid(Exception):
    """A part of a condition has no plain words."""


def _said(node: ast.expr, scale: float) -> str:
    match node:
        case ast.BoolOp(ast.And(), parts):
            return _together(_flat(parts), scale)
        case ast.BoolOp(_, parts) if any(isinstance(part, ast.BoolOp) for part in parts):
            raise _Unsaid
        case ast.UnaryOp(ast.Not(), ast.BoolOp()):
            raise _Unsaid
        case ast.BoolOp(ast.Or(), parts):
            return " or ".join(_said(part, scale) for part in parts)
        case ast.UnaryOp(ast.Not(), part):
            return f"not {_said(part, scale)}"
        case ast.Compare():
            return _together([node], scale)
        case ast.Name() | ast.Attribute():
            return name_in_words(ast.unparse(node))
    raise _Unsaid


def _flat(parts: list[ast.expr]) -> list[ast.expr]:
    """Return the parts of an "and" with those of an "and" among them: the language writes chains so."""
    flat: list[ast.expr] = []
    for part in parts:
        match part:
            case ast.BoolOp(ast.And(), inner):
                flat += _flat(inner)
            case ast.BoolOp():
                raise _Unsaid
            case _:
                flat.append(part)
    return flat


def _together(parts: list[ast.expr], scale: float) -> str:
    """Say parts that hold together; bounds of one name are said as one."""
    bounds: dict[str, list[str]] = {}
    others: list[str] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            others.append(_said(part, scale))
            continue
        sides = [part.left, *part.comparators]
        for left, operator, right in zip(sides, part.ops, sides[1:], strict=False):
            name, bound = _bound(left, operator, right, scale)
            bounds.setdefault(name, []).append(bound)
    said = [f"with {name} {' and '.join(found)}" for name, found in bounds.items()]
    return ", ".join((*others, *said))


def _bound(left: ast.expr, operator: ast.cmpop, right: ast.expr, scale: float) -> tuple[str, str]:
    kind = type(operator)
    if isinstance(left, ast.Constant):
        left, right, kind = right, left, _TURNED.get(kind, kind)
    scale = scale if isinstance(left, ast.Name) and left.id == "worth" else 1.0
    if kind in (ast.In, ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
        values = " or ".join(_value(one, scale) for one in right.elts)
        return _said(left, scale), values if kind is ast.In else f"other than {values}"
    if kind not in _BOUNDS:
        raise _Unsaid
    return _said(left, scale), f"{_BOUNDS[kind]} {_value(right, scale)}".strip()


def _value(node: ast.expr, scale: float) -> str:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            scaled = value if scale == 1 else round(value * scale, 2)
            return f"{int(scaled):,}" if scaled == int(scaled) else f"{scaled:,}"
        raise _Unsaid
    return _said(node, scale)
