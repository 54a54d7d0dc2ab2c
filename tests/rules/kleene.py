"""A naive reading of the rule language: walks the syntax tree with three truth values, slow and obvious.

The compiler is held equal to it. It shares nothing with it but the functions of the ordinary words.
"""

import ast
import itertools
from collections.abc import Mapping
from typing import Any

from vettance.rules.functions import WORDS
from vettance.rules.schema import Type

BOUND = 1e300
KINDS = {Type.NUMBER: "number", Type.TEXT: "text", Type.BOOL: "bool", Type.LIST: "list"}


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "other"


def naive(text: str, facts: Mapping[str, Any]) -> Any:
    """Return the value of a rule text; None is unknown. Aggregates are looked up by their word."""
    return walk(ast.parse(f"({text}\n)", mode="eval").body, facts)


def boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def walk(node: ast.expr, facts: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.List():
            return [walk(item, facts) for item in node.elts]
        case ast.Name() | ast.Attribute():
            return facts[ast.unparse(node)]
        case ast.BoolOp():
            values = [boolean(walk(value, facts)) for value in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        case ast.UnaryOp(op=ast.Not()):
            value = boolean(walk(node.operand, facts))
            return None if value is None else not value
        case ast.UnaryOp():
            return arithmetic(ast.Sub(), 0, walk(node.operand, facts))
        case ast.BinOp():
            return arithmetic(node.op, walk(node.left, facts), walk(node.right, facts))
        case ast.Compare():
            nodes = [node.left, *node.comparators]
            links = [
                compare(operation, walk(left, facts), walk(right, facts), isinstance(right, ast.List))
                for operation, (left, right) in zip(node.ops, itertools.pairwise(nodes), strict=True)
            ]
            if False in links:
                return False
            return None if None in links else True
        case ast.IfExp():
            test = boolean(walk(node.test, facts))
            if test is None:
                return None
            return walk(node.body if test else node.orelse, facts)
        case ast.Call():
            return call(node, facts)
    raise AssertionError(ast.dump(node))


def arithmetic(operation: ast.operator, left: Any, right: Any) -> Any:
    if kind(left) != "number" or kind(right) != "number":
        return None
    if isinstance(operation, ast.Div | ast.Mod) and right == 0:
        return None
    result = {
        ast.Add: lambda: left + right,
        ast.Sub: lambda: left - right,
        ast.Mult: lambda: left * right,
        ast.Div: lambda: left / right,
        ast.Mod: lambda: left % right,
    }[type(operation)]()
    return result if -BOUND <= result <= BOUND else None


def compare(operation: ast.cmpop, left: Any, right: Any, written_out: bool) -> bool | None:
    if isinstance(operation, ast.In | ast.NotIn):
        if left is None or not isinstance(right, list):
            return None
        if written_out and kind(left) != kind(right[0]):
            return None
        found = any(item == left and kind(item) == kind(left) for item in right)
        return found is isinstance(operation, ast.In)
    if kind(left) != kind(right) or kind(left) in ("list", "other"):
        return None
    if isinstance(operation, ast.Eq | ast.NotEq):
        return (left == right) is isinstance(operation, ast.Eq)
    if kind(left) == "bool":
        return None
    return {
        ast.Lt: lambda: left < right,
        ast.LtE: lambda: left <= right,
        ast.Gt: lambda: left > right,
        ast.GtE: lambda: left >= right,
    }[type(operation)]()


def call(node: ast.Call, facts: Mapping[str, Any]) -> Any:
    name = ast.unparse(node.func)
    if name in facts:
        return facts[name]
    values = [walk(argument, facts) for argument in node.args]
    if name in ("missing", "present"):
        return (values[0] is None) is (name == "missing")
    if name == "default":
        return values[0] if kind(values[0]) == kind(values[1]) else values[1]
    word = WORDS[name]
    for at, value in enumerate(values):
        types = word.parameters[min(at, len(word.parameters) - 1)].types
        if value is None or (len(types) == 1 and kind(value) != KINDS[types[0]]):
            return None
    return word.function(*values)
