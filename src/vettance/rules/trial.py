"""Trials: runs the tests that a rule brings along, with the compiled rule set and a real state engine."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.errors import Refusal
from vettance.rules.compiler import CompiledRules, Facts
from vettance.rules.language import CheckedText
from vettance.rules.rule import JSON, LABELS, RuleTest
from vettance.velocity.port import Velocity

#: The moment of a tested event when its test names none: an ordinary Thursday at noon.
NOW_MS: Final = int(dt.datetime(2026, 1, 15, 12, tzinfo=dt.UTC).timestamp() * 1000)
_TENANT: Final = "trial"

Parse = Callable[[JSON, int], Any]
PretendedModel = Callable[[float], Mapping[str, Any]]


class FailedTest(NamedTuple):
    """Why a test failed, and what the rule saw: its names and aggregates, each with its value."""

    message: str
    saw: tuple[tuple[str, Any], ...] = ()


def try_rule(
    compiled: CompiledRules,
    index: int,
    checked: CheckedText,
    test: RuleTest,
    parse: Parse,
    velocity: Velocity,
    pretend_model: PretendedModel | None = None,
) -> FailedTest | None:
    """Run one test of rule `index`, whose text is `checked`. Return None when it passes."""
    if test.probability is not None and pretend_model is None:
        return FailedTest("events of this kind have no model; leave out model")
    now_ms = NOW_MS if test.now_ms is None else test.now_ms
    moments = [
        (now_ms + given.at_ms + number * given.every_ms, given, number)
        for given in test.given
        for number in range(given.repeat)
    ]
    moments.sort(key=lambda moment: moment[0])
    velocity.install(_TENANT, compiled.plan)
    try:
        for order, (at_ms, given, number) in enumerate(moments):
            event = parse(numbered(given.event, number), at_ms)
            velocity.observe(_TENANT, str(order), at_ms, compiled.observe(compiled.facts(event)))
            fraud = None if given.label is None else LABELS[given.label]
            if fraud is not None:
                said = compiled.label(event, 1.0, fraud=fraud)
                if said is not None:
                    velocity.observe(_TENANT, f"{order}.label", at_ms, said)
        facts = compiled.facts(parse(test.event, now_ms))
    except Refusal as refusal:
        details = "; ".join(f"{path}: {message}" for path, message in refusal.details.items())
        return FailedTest(f"an event of this test is refused: {details or refusal.message}")
    answer = velocity.observe(_TENANT, "tested", now_ms, compiled.observe(facts))
    if test.probability is not None and pretend_model is not None:
        # As for a real event: the model speaks after the aggregates, and before the rules.
        model = pretend_model(test.probability)
        facts = tuple(model.get(name, value) for name, value in zip(compiled.fact_names, facts, strict=True))
    fired, failures = compiled.run(facts, answer.values)
    saw = _seen_by(checked, compiled, facts, answer.values)
    for failed, message in failures:
        if failed == index:
            return FailedTest(f"the rule fails: {message}", saw)
    if (index in fired) is test.fires:
        return None
    message = "the rule does not fire, but should" if test.fires else "the rule fires, but should not"
    return FailedTest(message, saw)


def _seen_by(
    checked: CheckedText, compiled: CompiledRules, facts: Facts, answers: Sequence[Any]
) -> tuple[tuple[str, Any], ...]:
    names = dict(zip(compiled.fact_names, facts, strict=True))
    aggregates = dict(zip(compiled.plan.aggregate_names, answers, strict=True))
    return (
        *((name, names[name]) for name in checked.names),
        *((found.text, aggregates[found.text]) for found in checked.aggregates),
    )


def numbered(value: Any, number: int) -> Any:
    """Return a copy of an event in which `{i}` in every text stands for the number of the repetition."""
    if isinstance(value, str):
        return value.replace("{i}", str(number))
    if isinstance(value, dict):
        return {name: numbered(member, number) for name, member in value.items()}
    if isinstance(value, list):
        return [numbered(item, number) for item in value]
    return value


def events_of(test: RuleTest) -> int:
    """Count the events that a test runs."""
    return 1 + sum(given.repeat for given in test.given)


__all__ = ["NOW_MS", "FailedTest", "Parse", "PretendedModel", "events_of", "numbered", "try_rule"]
