"""Compiles the expressions of features to one function that gives all their values at once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vettance.rules.codegen import ExpressionWriter
from vettance.rules.compiler import Answers, CompiledRules, Facts, compile_rules, define
from vettance.rules.language import CheckedText
from vettance.rules.schema import Schema
from vettance.rules.unknowns import message_of

#: The values of features, None where one is unknown; and the names of those that could not be computed.
FeatureValues = tuple[tuple[float | None, ...], list[tuple[str, str]]]


class CompiledFeatures(NamedTuple):
    """Features ready to compute.

    `asked` is the rule set whose facts and aggregates hold what the features need, behind its own.
    `compute(facts, answers)` gives their values in the order of `names`; it does not raise.
    """

    names: tuple[str, ...]
    asked: CompiledRules
    compute: Callable[[Facts, Answers], FeatureValues]


def compile_features(
    rules: Sequence[tuple[str, CheckedText]], features: Sequence[tuple[str, CheckedText]], schema: Schema
) -> CompiledFeatures:
    """Compile features together with the rules of a tenant. Raises `TooManyAggregates`."""
    asked = compile_rules(rules, schema, [checked for _, checked in features])
    together = _write(asked, features)
    alone = [(name, _write(asked, [(name, checked)])) for name, checked in features]

    def compute(facts: Facts, answers: Answers) -> FeatureValues:
        try:
            return together(facts, answers), []
        except Exception:  # noqa: BLE001  One that raises must not take the others with it.
            return _each(facts, answers)

    def _each(facts: Facts, answers: Answers) -> FeatureValues:
        values: list[float | None] = []
        failures: list[tuple[str, str]] = []
        for name, one in alone:
            try:
                values += one(facts, answers)
            except Exception as error:  # noqa: BLE001  As above.
                values.append(None)
                failures.append((name, message_of(error)))
        return tuple(values), failures

    return CompiledFeatures(tuple(name for name, _ in features), asked, compute)


def _write(asked: CompiledRules, features: Sequence[tuple[str, CheckedText]]) -> Callable[..., Any]:
    """Write one function of some features, which raises where one of them does."""
    read = {name for _, checked in features for name in checked.names}
    counted = {one.text for _, checked in features for one in checked.aggregates}
    facts = {name: f"facts[{place}]" for place, name in enumerate(asked.fact_names) if name in read}
    names = asked.plan.aggregate_names
    answers = {name: f"answers[{place}]" for place, name in enumerate(names) if name in counted}
    local = {source: f"read_{place}" for place, source in enumerate((*facts.values(), *answers.values()))}
    writer = ExpressionWriter(
        {name: local[source] for name, source in facts.items()},
        {name: local[source] for name, source in answers.items()},
    )
    for _, checked in features:
        writer.count_value(checked.expression)
    values = [writer.value(checked.expression) for _, checked in features]
    lines = [
        "def features(facts, answers):",
        *(f"    {name} = {source}" for source, name in local.items()),
        *writer.prelude(),
        f"    return ({''.join(f'{value}, ' for value in values)})",
    ]
    return define("features", "\n".join(lines), writer.globals)
