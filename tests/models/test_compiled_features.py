"""Features computed all at once: each has the value that it has alone."""

import random
from typing import Any

import pytest

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_taken_event
from vettance.models.discovery import discover, features_of
from vettance.models.feature_set import (
    check_features,
    compile_with_rules,
    read_feature_set,
    write_feature_set,
)
from vettance.rules.codegen import ExpressionWriter
from vettance.rules.compiled_value import compile_value
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import RuleSet
from vettance.velocity.memory.memory_velocity import MemoryVelocity

SCHEMA = fraud_schema()
START_S = 1_790_000_000


def bodies(count: int, seed: int = 8) -> list[dict[str, Any]]:
    """Payments and logins with a tenant's own keys, numbers and flags, some of them missing."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        metadata: dict[str, Any] = {
            "amount": round(rng.lognormvariate(3, 1), 2),
            "currency": "EUR",
            "terminalId": f"t{rng.randrange(60)}",
            "merchantId": f"m{rng.randrange(40)}",
            "distance": rng.random() * 900,
            "recurring": rng.random() < 0.4,
        }
        for name in [*metadata]:
            if rng.random() < 0.05:
                del metadata[name]
        made.append(
            {
                "eventName": rng.choice(["login", "payment"]),
                "occurredAt": START_S + number * 400,
                "customer": {
                    "externalId": f"c{rng.randrange(50)}",
                    "email": f"p{rng.randrange(50)}@a.example",
                },
                "device": {"fingerprint": f"d{rng.randrange(70)}"},
                "ip": f"192.0.2.{rng.randrange(200)}",
                "metadata": metadata,
            }
        )
    return made


@pytest.mark.parametrize("ruleset", [RuleSet(name=""), load_pack("fraud")], ids=["alone", "with the pack"])
def test_features_together_have_the_values_that_each_has_alone(ruleset: RuleSet) -> None:
    sent = bodies(1_500)
    features = read_feature_set(write_feature_set(features_of(discover(sent))))
    compiled = compile_with_rules(ruleset, features, SCHEMA)
    asked = compiled.asked
    alone = [compile_value(checked.expression) for _, checked in check_features(features, SCHEMA)]
    velocity = MemoryVelocity()
    velocity.install("ten_1", asked.plan)
    known = [0] * len(alone)
    for number, body in enumerate(sent):
        event = read_taken_event(body, (START_S + number * 400) * 1000)
        facts = asked.facts(event)
        answers = velocity.observe("ten_1", str(number), event.occurred_at_ms, asked.observe(facts)).values
        read = {**dict(zip(asked.fact_names, facts, strict=True))}
        read.update(zip(asked.plan.aggregate_names, answers, strict=True))
        together, failures = compiled.compute(facts, answers)
        assert failures == []
        for place, one in enumerate(alone):
            value = one.compute(*(read[name] for name in one.names))
            assert together[place] == (None if value is None else value), compiled.names[place]
            known[place] += value is not None
    assert sum(times > 100 for times in known) > len(known) // 2


@pytest.mark.parametrize("name", ["v1", "v20"])
def test_a_local_that_would_be_written_over_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ExpressionWriter({"hour": name}, {})
    with pytest.raises(ValueError, match=name):
        ExpressionWriter({}, {"hour": name})
