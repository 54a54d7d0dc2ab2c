"""What would have changed an answer: found from the rules, and true when the event is sent that way."""

import time
from typing import Any

import pytest

from tests.live import Caller
from vettance.decisions.active_rulesets import ActiveRules, active_rules, consider
from vettance.decisions.counterfactual import find_counterfactuals
from vettance.decisions.decision import DecisionRecordData, Outcome, decide
from vettance.decisions.evaluated_event import EvaluationInput, conclude
from vettance.decisions.features import fraud_schema
from vettance.decisions.recompute import recompute
from vettance.decisions.sql import StoredDecision
from vettance.events.event import read_event
from vettance.generate.fraud_stream import Traffic, stream
from vettance.rules.packs import load_pack_text
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import decode, encode

SCHEMA = fraud_schema()
READ = ConditionReader(SCHEMA)
NOW_MS = 1_770_000_000_000


def rules(*lines: str) -> str:
    """Write a rule set of conditions with their scores: `60 metadata.amount > 5`."""
    text = ["name: Tried", "rules:"]
    for number, line in enumerate(lines):
        score, _, when = line.partition(" ")
        text += [
            f"  - id: r-{number}",
            f"    name: Rule {number}",
            f"    when: {when}",
            f"    score: {score}",
        ]
        text += ["    reason: TRIED", "    explanation: It was tried."]
    return "\n".join(text)


def active_of(document: str) -> ActiveRules:
    ruleset, compiled = compile_document(document, SCHEMA)
    return active_rules(1, "", ruleset, compiled)


def recorded(
    active: ActiveRules, velocity: MemoryVelocity, body: dict[str, Any], number: int = 0, at_ms: int = NOW_MS
) -> DecisionRecordData:
    event = read_event(body, encode(body), at_ms)
    asked = consider(velocity, active, "ten", f"evt_{number}", event)
    return conclude(EvaluationInput(f"evt_{number}", event, (), asked, "req", 0), NOW_MS)[1]


def told(document: str, body: dict[str, Any]) -> list[tuple[str, dict[str, tuple[str, Any]]]]:
    active = active_of(document)
    velocity = MemoryVelocity()
    velocity.install("ten", active.compiled.plan)
    found = find_counterfactuals(active, recorded(active, velocity, body), READ)
    return [
        (one.outcome.value, {change.name: (change.sign, change.bound) for change in one.changes})
        for one in found
    ]


def payment(**metadata: Any) -> dict[str, Any]:
    return {
        "eventName": "payment.created",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": "c-1", "email": "ann@example.com"},
        "metadata": metadata,
    }


@pytest.mark.parametrize(
    ("condition", "metadata", "changed"),
    [
        ("metadata.amount > 500", {"amount": 900}, {"metadata.amount": ("<=", 500)}),
        ("metadata.amount >= 500", {"amount": 900}, {"metadata.amount": ("<", 500)}),
        ("500 < metadata.amount", {"amount": 900}, {"metadata.amount": ("<=", 500)}),
        ('metadata.currency == "RUB"', {"currency": "RUB"}, {"metadata.currency": ("!=", "RUB")}),
        ('metadata.kind in ["a", "b"]', {"kind": "a"}, {"metadata.kind": ("not in", ("a", "b"))}),
        ("metadata.gift == true", {"gift": True}, {"metadata.gift": ("==", False)}),
        ("not (metadata.amount < 10)", {"amount": 12}, {"metadata.amount": ("<", 10)}),
        ("present(metadata.voucher)", {"voucher": "x"}, {"metadata.voucher": ("missing", None)}),
        (
            'metadata.amount > 5 and metadata.kind == "a"',
            {"amount": 9, "kind": "a"},
            {"metadata.amount": ("<=", 5)},
        ),
        (
            "metadata.amount > 2 * metadata.usual",
            {"amount": 90, "usual": 10},
            {"metadata.amount": ("<=", 20)},
        ),
        ("metadata.amount + 1 > 10", {"amount": 90}, {"metadata.amount": ("<=", 9)}),
    ],
)
def test_one_value_that_holds_an_event_is_named_with_its_bound(
    condition: str, metadata: dict[str, Any], changed: dict[str, Any]
) -> None:
    found = told(rules(f"90 {condition}"), payment(**metadata))
    assert ("ALLOW", changed) in found, found


def test_both_values_are_named_where_either_holds_the_event() -> None:
    found = told(rules('90 metadata.amount > 5 or metadata.kind == "a"'), payment(amount=9, kind="a"))
    assert found[0] == ("ALLOW", {"metadata.amount": ("<=", 5), "metadata.kind": ("!=", "a")})


def test_the_smallest_change_comes_first_and_nothing_that_is_not_needed_is_in_it() -> None:
    document = rules("40 metadata.amount > 5", '25 metadata.kind == "a"', "5 metadata.late == true")
    found = told(document, payment(amount=9, kind="a", late=True))
    # 70 points: either of the larger rules alone leads below 60, the smallest does not.
    assert [changes.keys() for _, changes in found] == [{"metadata.amount"}, {"metadata.kind"}]


def test_an_approval_says_what_would_have_held_it() -> None:
    found = told(rules("70 metadata.amount > 500"), payment(amount=9))
    assert found == [("REVIEW", {"metadata.amount": (">", 500)})]


def test_a_change_that_makes_another_rule_fire_is_not_shown() -> None:
    document = rules("90 metadata.amount > 500", "90 missing(metadata.amount)", "90 metadata.amount <= 500")
    assert told(document, payment(amount=900)) == []


def test_every_counterfactual_of_the_default_pack_is_true_and_found_in_time() -> None:
    active = active_of(load_pack_text("fraud"))
    velocity = MemoryVelocity()
    velocity.install("ten", active.compiled.plan)
    compiled = active.compiled
    held = explained = 0
    spent_s: list[float] = []
    for number, made in enumerate(stream(Traffic(customers=60, days=6, seed=11))):
        record = recorded(active, velocity, decode(made.body(str(number))), number, made.at_ms)
        if record.outcome is Outcome.ALLOW and number % 40:
            continue
        begin_s = time.perf_counter()
        found = find_counterfactuals(active, record, READ)
        spent_s.append(time.perf_counter() - begin_s)
        if record.outcome is not Outcome.ALLOW:
            held += 1
            explained += bool(found)
        for one in found:
            values = dict(zip(compiled.fact_names, record.facts, strict=True))
            values |= dict(zip(compiled.plan.aggregate_names, record.answers, strict=True))
            values |= {change.name: change.value for change in one.changes}
            fired, _ = compiled.run(
                tuple(values[name] for name in compiled.fact_names),
                tuple(values[name] for name in compiled.plan.aggregate_names),
            )
            assert decide(active.ruleset, 1, fired, ()).outcome is one.outcome is not record.outcome
    spent_s.sort()
    p50_s, p95_s, most_s = (spent_s[int((len(spent_s) - 1) * part)] for part in (0.5, 0.95, 1))
    print(f"{held} held, p50 {p50_s * 1e3:.1f} ms, p95 {p95_s * 1e3:.1f} ms, most {most_s * 1e3:.1f} ms")
    assert held
    assert explained == held


def test_the_answer_of_the_service_names_what_would_have_changed_it(tenant: Caller) -> None:
    entry = {"type": "IP", "value": "203.0.113.77", "listType": "block"}
    assert tenant.post("/api/v1/lists", entry).status == 201
    login = {
        "eventName": "user.login",
        "eventCategory": "AUTHENTICATION",
        "ip": "203.0.113.77",
        "customer": {"externalId": "c-77"},
    }
    made = tenant.post("/api/v1/decisions/evaluate", login).json
    assert made["decision"] == "deny"
    record = tenant.get(f"/api/v1/decisions/{made['correlationIds']['eventId']}").json
    first = record["outputs"]["counterfactuals"][0]
    assert first["decision"] == "approve"
    assert first["withoutList"] == "block"
    assert first["changes"] == []
    assert first["text"] == "approve if no entry of the block list had matched"


def test_a_record_computed_again_is_identical_or_says_what_differs() -> None:
    active = active_of(rules("90 metadata.amount > 500", '10 metadata.kind == "a"'))
    velocity = MemoryVelocity()
    velocity.install("ten", active.compiled.plan)
    body = payment(amount=900, kind="a")
    record = recorded(active, velocity, body)
    stored = StoredDecision("evt_0", "API", NOW_MS, NOW_MS, encode(body), record, {}, None)
    assert recompute(stored, active).is_identical
    other = stored._replace(sent=encode(payment(amount=5, kind="a")))
    assert [one.name for one in recompute(other, active).differences] == ["metadata.amount"]
    damaged = recompute(stored._replace(sent=b"{"), active)
    assert not damaged.is_identical
    assert damaged.unreadable is not None
    milder = active_of(rules("40 metadata.amount > 500", '10 metadata.kind == "a"'))
    assert {one.name for one in recompute(stored, milder).differences} == {"decision", "score", "level"}
