"""What a rule set wants remembered: its aggregates gathered into keys, series and one plan."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.rules.expression import AggregateExpression, Expression
from vettance.rules.language import CheckedText
from vettance.rules.schema import Type
from vettance.velocity.aggregates import AGGREGATES
from vettance.velocity.port import Aggregate, Plan, Series

AGGREGATES_MAX: Final = 200  # Of a rule set: about a millisecond of the state engine for each event.
#: Of a rule set together with the features of a model.
FEATURED_MAX: Final = 360


class TooManyAggregates(ValueError):
    """The rules together ask more of the state engine than one event may cost."""


class Memory(NamedTuple):
    """The plan, and the expressions that fill an observation: in the order of the plan's indexes."""

    plan: Plan
    keys: tuple[tuple[Expression, ...], ...]
    values: tuple[Expression, ...]
    masks: tuple[tuple[Expression | None, int], ...]  # (condition, bits of the series it admits to)
    upkeep: int  # what all aggregates cost for each event, in units of about 20 ns
    labels: tuple[int, int] = (0, 0)  # bits of the series of labels: of legitimate events, and of fraud


def read_memory(rules: Sequence[CheckedText], at_most: int = AGGREGATES_MAX) -> Memory:
    """Gather the aggregates of all rules. Those of one condition, key and value share a series."""
    aggregates: dict[str, AggregateExpression] = {}
    for checked in rules:
        for found in checked.aggregates:
            aggregates.setdefault(found.text, found)
    if len(aggregates) > at_most:
        raise TooManyAggregates(
            f"the rules use {len(aggregates)} different aggregates, {at_most} are allowed"
        )
    keys: dict[str, tuple[int, tuple[Expression, ...]]] = {}
    values: dict[tuple[str, Type], tuple[int, Expression]] = {}
    series: dict[str, tuple[int, Series]] = {}
    masks: dict[str, tuple[Expression | None, int]] = {}
    labels = [0, 0]
    rows: list[Aggregate] = []
    for found in aggregates.values():
        key = keys.setdefault(found.key_text, (len(keys), found.keys))[0]
        value = None
        if found.value is not None:
            identity = (found.value.text, found.value.type)
            value = values.setdefault(identity, (len(values), found.value))[0]
        kind, fraud = AGGREGATES[found.kind].keeps, AGGREGATES[found.kind].fraud
        name = _series_name(found, kind)
        index = series.setdefault(name, (len(series), Series(key, value, kind)))[0]
        if fraud is None:
            condition = found.condition.text if found.condition is not None else ""
            _, bits = masks.get(condition, (None, 0))
            masks[condition] = (found.condition, bits | 1 << index)
        else:
            labels[fraud] |= 1 << index
        rows.append(Aggregate(found.kind, index, found.window_ms))
    plan = Plan(
        keys=tuple(keys),
        series=tuple(row for _, row in series.values()),
        series_names=tuple(series),
        aggregates=tuple(rows),
        aggregate_names=tuple(aggregates),
    )
    return Memory(
        plan,
        tuple(parts for _, parts in keys.values()),
        tuple(expression for _, expression in values.values()),
        tuple(masks.values()),
        sum(found.upkeep for found in aggregates.values()),
        (labels[0], labels[1]),
    )


def _series_name(found: AggregateExpression, kind: str) -> str:
    parts = [f"by={found.key_text}"]
    if found.value is not None:
        parts.insert(0, found.value.text)
    if found.condition is not None:
        parts.append(f"where={found.condition.text}")
    return f"{kind}({', '.join(parts)})"
