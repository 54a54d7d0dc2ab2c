"""What a rule's own tests may say of earlier labels and of the tenant's model."""

import pytest

from vettance.aml.aml_rule_context import aml_context
from vettance.decisions.rule_context import fraud_context
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.gate import Context, GateResult, examine
from vettance.rules.ruleset import read_ruleset, write_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

RULE = """name: Shop
rules:
  - id: r
    name: R
    when: {when}
    score: 5
    reason: R
    explanation: e
    tests:
"""
EVENT = "event: {eventName: login, customer: {externalId: c1}}"


def document(when: str, *tests: str) -> str:
    lines = [f"      - {{name: t{number}, {test}, {EVENT}}}\n" for number, test in enumerate(tests)]
    return RULE.replace("{when}", when) + "".join(lines)


def tried(text: str, context: Context | None = None) -> GateResult:
    return examine(text, context or fraud_context(MemoryVelocity))


def test_a_test_says_what_the_model_says_and_the_score_follows_by_the_table() -> None:
    text = document(
        "model.score >= 75 and model.probability < 0.4",
        "fires: true, model: {probability: .3}",
        "fires: false, model: {probability: 0.29}",
        "fires: false, model: {probability: 0.4}",
        "fires: false",
    )
    found = tried(text)
    assert found.faults == ()
    written = write_ruleset(found.ruleset)
    assert read_ruleset(written) == found.ruleset
    assert [test.probability for test in found.ruleset.rules[0].tests] == [0.3, 0.29, 0.4, None]


def test_a_failing_test_shows_what_the_model_said() -> None:
    text = document("model.score > 60", "fires: true, model: {probability: 0.01}", "fires: false")
    (fault,) = tried(text).errors
    assert ("model.score", 20) in fault.saw


@pytest.mark.parametrize("wrong", ["0", "1", "40", "true", "much", "[]"])
def test_a_probability_is_a_number_between_0_and_1(wrong: str) -> None:
    text = document("hour > 30", f"fires: true, model: {{probability: {wrong}}}", "fires: false")
    assert "must be a number above 0 and below 1" in [fault.message for fault in tried(text).errors]


def test_a_model_has_a_probability_and_nothing_else() -> None:
    messages = [
        fault.message
        for said in ("{score: 40}", "{}", "0.4")
        for fault in tried(document("hour > 1", f"fires: true, model: {said}", "fires: false")).errors
    ]
    assert messages == [
        "is required",
        "there is no member score here",
        "is required",
        "must be a mapping of names to values",
    ]


def test_events_without_models_refuse_one() -> None:
    context = aml_context(Jurisdictions(), MemoryVelocity())
    text = document("hour < 30", "fires: true, model: {probability: 0.4}", "fires: false")
    messages = [fault.message for fault in tried(text, context).errors]
    assert "test 't0': events of this kind have no model; leave out model" in messages


def test_a_label_of_an_earlier_event_counts() -> None:
    earlier = "given: [{eventName: login, customer: {externalId: c1}, at: -2d, label: %s}]"
    text = document(
        'frauds(by=customer.key, within="7d") >= 1',
        f"fires: true, {earlier % 'CHARGEBACK'}",
        f"fires: false, {earlier % 'LEGIT'}",
        f"fires: false, {earlier % 'REFUND'}",
        "fires: false",
    )
    assert tried(text).faults == ()
