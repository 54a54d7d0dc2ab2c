"""How the operators of a rule are read: logic, comparison, membership, arithmetic, choice."""

import ast
from typing import Final

from vettance.rules.calls import apply
from vettance.rules.expression import (
    Arithmetic,
    Compare,
    Conditional,
    Expression,
    Items,
    Literal,
    Member,
    cast,
    enclosed,
    fold,
    literal,
    logic,
    negation,
)
from vettance.rules.fault import RuleFault
from vettance.rules.functions import WORDS
from vettance.rules.parse import A_TYPE, Reading, clip
from vettance.rules.schema import Type
from vettance.rules.value_ranges import question_comparison, question_member

NUMBER_MAX: Final = 1e15  # Every whole number up to here has an exact float.

_SIGNS: Final[dict[type[ast.AST], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
}


def logic_of(reading: Reading, node: ast.BoolOp) -> Expression:
    """Read `and` and `or`."""
    both = isinstance(node.op, ast.And)
    word = "and" if both else "or"
    parts = tuple(_side(reading, value, word) for value in node.values)
    return logic(parts, both=both)


def _side(reading: Reading, node: ast.expr, word: str) -> Expression:
    """Read one side of `and` or `or`; a fault in it is noted, so that the other sides are read too."""
    inside = reading.inside
    try:
        return reading.want(node, Type.BOOL, f"each side of {word}")
    except RuleFault as fault:
        reading.faults.append(fault)
        reading.inside = inside
        return literal(value=True)


def unary(reading: Reading, node: ast.UnaryOp) -> Expression:
    """Read `not` and a minus sign."""
    if isinstance(node.op, ast.Not):
        return negation(reading.want(node.operand, Type.BOOL, "what stands after not"))
    if not isinstance(node.op, ast.USub):
        reading.refuse(node, "a sign of this kind is not part of the rule language")
    inner = reading.want(node.operand, Type.NUMBER, "what stands after -")
    if isinstance(inner, Literal):
        return literal(-inner.value)  # type: ignore[operator]
    return _arithmetic_of(reading, node, "-", literal(0), inner)


def arithmetic(reading: Reading, node: ast.BinOp) -> Expression:
    """Read `+ - * / %`; what is written out is computed once, here."""
    sign = _SIGNS.get(type(node.op))
    if sign is None:
        reading.refuse(node, "this operator is not part of the rule language")
    left = reading.want(node.left, Type.NUMBER, f"the left side of {sign}")
    right = reading.want(node.right, Type.NUMBER, f"the right side of {sign}")
    return _arithmetic_of(reading, node, sign, left, right)


def _arithmetic_of(
    reading: Reading, node: ast.expr, sign: str, left: Expression, right: Expression
) -> Expression:
    if isinstance(right, Literal) and right.value == 0 and sign in "/%":
        reading.refuse(node, "this divides by zero")
    if isinstance(left, Literal) and isinstance(right, Literal):
        value = fold(sign, left.value, right.value)  # type: ignore[arg-type]
        if value is None or abs(value) > NUMBER_MAX:
            reading.refuse(node, "this number is too large", "numbers go up to 1e15")
        return literal(value)
    text = f"{enclosed(left)} {sign} {enclosed(right)}"
    cost = 4 + left.cost + right.cost
    return Arithmetic(type=Type.NUMBER, text=text, sign=sign, left=left, right=right, cost=cost)


def comparison(reading: Reading, node: ast.Compare) -> Expression:
    """Read a comparison; a chain such as `1 < x < 5` is all of its links."""
    nodes = [node.left, *node.comparators]
    sides = [reading.expression(side) for side in nodes]
    parts = tuple(
        _pair(reading, nodes[at], nodes[at + 1], _SIGNS.get(type(operation), "is"), sides[at], sides[at + 1])
        for at, operation in enumerate(node.ops)
    )
    return parts[0] if len(parts) == 1 else logic(parts, both=True)


def _pair(
    reading: Reading,
    left_node: ast.expr,
    right_node: ast.expr,
    sign: str,
    left: Expression,
    right: Expression,
) -> Expression:
    if sign in ("in", "not in"):
        found = _membership(reading, left_node, right_node, left, right)
        return negation(found) if sign == "not in" else found
    left, right = cast(left, right.type), cast(right, left.type)
    _require_comparable(reading, left_node, right_node, sign, left, right)
    plain = "==" if sign == "!=" else sign
    found = Compare(
        type=Type.BOOL,
        text=f"{enclosed(left)} {plain} {enclosed(right)}",
        sure=left.sure and right.sure,
        sign=plain,
        left=left,
        right=right,
        cost=2 + left.cost + right.cost + 4 * (left.type is Type.ANY),
    )
    question_comparison(reading, (left_node, right_node), found)
    return negation(found) if sign == "!=" else found


def _require_comparable(
    reading: Reading,
    left_node: ast.expr,
    right_node: ast.expr,
    sign: str,
    left: Expression,
    right: Expression,
) -> None:
    for side, node in ((left, left_node), (right, right_node)):
        if side.type is Type.LIST:
            reading.refuse(node, f"a list cannot be compared with {sign}", "write x in [ … ] or contains(…)")
    if left.type is not right.type:
        reading.refuse(
            right_node,
            f"{A_TYPE[left.type]} is compared with {A_TYPE[right.type]} here",
            _type_hint(left, right),
        )
    if left.type is Type.BOOL and sign not in ("==", "!="):
        reading.refuse(right_node, f"true/false cannot be compared with {sign}")


def _type_hint(left: Expression, right: Expression) -> str | None:
    if Type.BOOL in (left.type, right.type):
        return "true/false is compared with true or false only"
    for one, other in ((left, right), (right, left)):
        if one.type is Type.TEXT and other.type is Type.NUMBER:
            if isinstance(one, Literal):
                return "numbers stand without quotes"
            if len(one.text) < 60:
                return f"number({one.text}) reads the number a text writes"
    return None


def _membership(
    reading: Reading, left_node: ast.expr, right_node: ast.expr, item: Expression, container: Expression
) -> Expression:
    if isinstance(container, Items):
        item = cast(item, container.item)
        if item.type is not container.item:
            reading.refuse(
                left_node,
                f"{A_TYPE[item.type]} cannot stand in a list of {container.item.value}s",
                "numbers stand without quotes, texts in quotes",
            )
        text = f"{enclosed(item)} in {container.text}"
        found = Member(type=Type.BOOL, text=text, item=item, items=container, cost=2 + item.cost)
        if isinstance(right_node, ast.List):
            question_member(reading, right_node.elts, found)
        return found
    if container.type is Type.TEXT:
        reading.refuse(right_node, "in looks into lists only", f"write contains({clip(container.text)}, …)")
    container = cast(container, Type.LIST)
    if container.type is not Type.LIST:
        reading.refuse(right_node, f"in needs a list, this is {A_TYPE[container.type]}")
    if item.type is Type.LIST:
        reading.refuse(left_node, "a list cannot stand in a list")
    return apply(WORDS["contains"], (container, item), ())


def choice(reading: Reading, node: ast.IfExp) -> Expression:
    """Read `a if condition else b`."""
    test = reading.want(node.test, Type.BOOL, "what stands after if")
    then, other = reading.expression(node.body), reading.expression(node.orelse)
    then, other = cast(then, other.type), cast(other, then.type)
    if then.type is not other.type:
        reading.refuse(
            node.orelse,
            f"the two results must be of one type: {A_TYPE[then.type]} and {A_TYPE[other.type]}",
        )
    return Conditional(
        type=then.type,
        text=f"{enclosed(then)} if {enclosed(test)} else {enclosed(other)}",
        sure=test.sure and then.sure and other.sure,
        test=test,
        then=then,
        other=other,
        cost=2 + test.cost + then.cost + other.cost,
    )
