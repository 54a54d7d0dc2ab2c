"""Compiles one expression by itself, for those who ask what it would give for other values."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vettance.rules.codegen import ExpressionWriter
from vettance.rules.compiler import define
from vettance.rules.expression import Expression, Fact, values_in


class CompiledValue(NamedTuple):
    """An expression ready to compute by itself: the names it reads, in the order of its arguments."""

    names: tuple[str, ...]
    compute: Callable[..., Any]


def compile_value(expression: Expression) -> CompiledValue:
    """Compile a checked expression."""
    reads = tuple({value.text: value for value in values_in(expression)}.values())
    local = {value.text: f"read_{place}" for place, value in enumerate(reads)}
    facts = {value.text: local[value.text] for value in reads if isinstance(value, Fact)}
    answers = {name: source for name, source in local.items() if name not in facts}
    writer = ExpressionWriter(facts, answers)
    writer.count_value(expression)
    result = writer.value(expression)
    lines = [f"def value({', '.join(local.values())}):", *writer.prelude(), f"    return {result}"]
    return CompiledValue(tuple(local), define("value", "\n".join(lines), writer.globals))
