"""How long the condition of each rule takes to compute."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from vettance.decisions.active_rulesets import ActiveRules
from vettance.rules.rule_reads import ConditionReader

_REPEATS: Final = 5


class RuleInputRecord(Protocol):
    """What the record of an event has of what rules read: values in the order of the rule set's names."""

    @property
    def ruleset_version(self) -> int:
        """The version whose names these are."""

    @property
    def facts(self) -> Sequence[Any]:
        """The values of the event."""

    @property
    def answers(self) -> Sequence[Any]:
        """What was known of the past."""


def time_rules(
    active: ActiveRules,
    records: Iterable[RuleInputRecord],
    conditions: ConditionReader,
    now_ns: Callable[[], int] = time.perf_counter_ns,
) -> Iterator[tuple[str, float]]:
    """Give the microseconds of one run of each rule's condition, with the values of recorded decisions.

    What its aggregates cost is not in it: they are counted once for all rules that read them. Each step takes
    a part of a millisecond.
    """
    compiled = active.compiled
    names = (*compiled.fact_names, *compiled.plan.aggregate_names)
    known: list[dict[str, object]] = [
        dict(zip(names, (*record.facts, *record.answers), strict=True))
        for record in records
        if record.ruleset_version == active.version
        and len(record.facts) == len(compiled.fact_names)
        and len(record.answers) == len(compiled.plan.aggregate_names)
    ]
    if not known:
        return
    for rule in active.ruleset.running:
        expression = conditions.read(rule.when)
        if expression is None:
            continue
        value = conditions.value(expression)
        taken = [tuple(one.get(name) for name in value.names) for one in known]
        yield rule.id, min(_time(value.compute, taken, now_ns) for _ in range(_REPEATS)) / len(taken)


def _time(
    compute: Callable[..., object], taken: Sequence[tuple[object, ...]], now_ns: Callable[[], int]
) -> float:
    """Return the microseconds of one run over some arguments."""
    started_ns = now_ns()
    for args in taken:
        try:
            compute(*args)
        except Exception:  # noqa: BLE001, S112  A rule that fails is counted elsewhere.
            continue
    return (now_ns() - started_ns) / 1000
