"""Every number and text that JSON carries, in every known member: features, memories and records hold."""

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fixtures.extreme_bodies import NUMBERS, Extremes
from vettance.aml.aml_event import read_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.evidence import EvidenceWriter
from vettance.aml.features import aml_schema
from vettance.aml.findings import judge
from vettance.aml.party_screening import requests_of
from vettance.aml.sql import AmlRecord
from vettance.aml.used_ids import UsedIds
from vettance.decisions.active_rulesets import ask
from vettance.decisions.features import fraud_schema
from vettance.errors import Refusal
from vettance.events.browser_session import merge
from vettance.events.event import Event, read_event, with_session_signals
from vettance.reference.currencies import Currencies
from vettance.rules.compiler import CompiledRules
from vettance.rules.packs import load_pack
from vettance.rules.rule import Rule
from vettance.rules.ruleset import compile_ruleset
from vettance.rules.schema import Schema, Type
from vettance.rules.unknowns import Failure, failures_of
from vettance.velocity.fingerprint import draw_modulus
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import encode, parse_object

NOW_MS = 1_760_000_000_000
MODULUS = draw_modulus()
FRAUD, AML = fraud_schema(), aml_schema()
CLASSES = {Type.NUMBER: (int, float), Type.TEXT: (str,), Type.BOOL: (bool,), Type.LIST: (list,)}


def every_rule_of(pack: str, schema: Schema) -> CompiledRules:
    """The pack, and beside its rules the sum, mean and extremes of every number that is a field."""
    ruleset = load_pack(pack)
    numbers = [name for name, field in schema.fields.items() if field.type is Type.NUMBER]
    kinds = ("sum", "avg", "min", "max", "last")
    texts = [
        f'{kinds[at % len(kinds)]}({name}, by=customer.key, within="24h") > 1 or {name} * {name} / {name} > 2'
        for at, name in enumerate(numbers)
    ]
    texts += [f"round({name}, 2) + floor({name}) * ceil({name}) % 7 > abs({name})" for name in numbers]
    rules = tuple(
        Rule(id=f"extra-{at}", name="x", score=1, reason="X", explanation="x", mode="active", when=text)
        for at, text in enumerate(texts)
    )
    return compile_ruleset(msgspec.structs.replace(ruleset, rules=(*ruleset.rules, *rules)), schema)


@pytest.fixture(scope="module")
def deciding() -> CompiledRules:
    """Compiled where it is asked for: each process loads this file, and one runs its tests."""
    return every_rule_of("fraud", FRAUD)


@pytest.fixture(scope="module")
def watching() -> CompiledRules:
    return every_rule_of("aml", AML)


def finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def check_fields(schema: Schema, event: Any) -> None:
    for field in schema.fields.values():
        value = field.read(event)
        assert value is None or type(value) in CLASSES[field.type], (field.name, value)
        assert finite(value), (field.name, value)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_every_event_is_decided_and_remembered_alike_after_a_restart(
    deciding: CompiledRules, seed: int
) -> None:
    draw = Extremes(random.Random(seed))
    live, again = MemoryVelocity(MODULUS), MemoryVelocity(MODULUS)
    for memory in (live, again):
        memory.install("t", deciding.plan)
    session = b"{}"
    taken: list[tuple[Event, tuple[Any, ...]]] = []
    for number in range(12):
        session = merge(session, [parse_object(encode(draw.signals()))])
        body = draw.event(NOW_MS / 1000)
        try:
            event = read_event(parse_object(encode(body)), encode(body), NOW_MS)
        except Refusal:
            continue
        event = with_session_signals(event, msgspec.json.decode(session))
        check_fields(FRAUD, event)
        facts = deciding.facts(event)
        seen = deciding.observe(facts)
        failures: list[Failure] = failures_of(facts, seen)
        answer = ask(live, deciding.plan, "t", str(number), event.occurred_at_ms, seen, failures)
        fired, failed = deciding.run(facts, answer.values)
        assert failures == []
        assert failed == []
        assert all(map(finite, answer.values))
        record = msgspec.json.decode(encode((facts, answer.values, fired)))
        assert len(record[0]) == len(facts)
        taken.append((event, answer.values))
    for number, (event, values) in enumerate(taken):
        seen = deciding.observe(deciding.facts(event))
        assert again.observe("t", str(number), event.occurred_at_ms, seen).values == values
    list(live.dump("t"))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_every_transfer_is_watched_and_remembered_alike_after_a_restart(
    watching: CompiledRules, seed: int
) -> None:
    draw = Extremes(random.Random(seed))
    memory, copy = AmlMemory(MemoryVelocity(MODULUS)), AmlMemory(MemoryVelocity(MODULUS))
    memory.install("t", watching.plan)
    memory.known["t"] = UsedIds()
    teller, ruleset = EvidenceWriter(AML, Currencies()), load_pack("aml")
    for number in range(24):
        body = parse_object(encode(draw.aml_event(number, NOW_MS / 1000)))
        try:
            event = read_aml_event(body, encode(body), NOW_MS)
        except Refusal:
            continue
        if number == 12:
            copy.load("t", watching.plan, [b"".join(memory.dump("t"))])
        assert all(asked is None or asked.subject.name for asked in requests_of(event))
        taken = memory.take("t", watching, f"evt-{number}", event)
        if number >= 12 and "t" in copy.known:
            again = copy.take("t", watching, f"evt-{number}", event)
            assert (again.event.trail, again.answer) == (taken.event.trail, taken.answer)
        assert taken.unknown == []
        check_fields(AML, taken.event)
        assert all(map(finite, taken.answer.values))
        fired, failed = watching.run(taken.facts, taken.answer.values)
        assert failed == []
        msgspec.json.decode(encode((taken.facts, taken.answer.values, fired)))
        known = [index for index in fired if index < len(ruleset.running)]
        judge(ruleset, known, {}, taken.event)
        for index in known:
            said, values = teller.tell(
                ruleset.running[index], watching, taken.facts, taken.answer.values, taken.event
            )
            assert said
            assert all(map(finite, values.values()))


def test_a_record_of_before_is_read_with_nothing_unknown() -> None:
    old = b"[1,[],[],0,[],[]]"
    assert msgspec.json.decode(old, type=AmlRecord).unknown == []


@pytest.mark.parametrize("name", ["inserted", "scripted", "silent"])
def test_fields_that_a_program_filled_count_however_large_a_page_says_they_are(name: str) -> None:
    field = FRAUD.fields["signals.fields_injected"]
    for number in NUMBERS:
        signals = {"fields": {name: number, "inserted": 1.7e308, "scripted": 1.7e308}}
        found = field.read(Event(name="x", extra={"signals": signals}))
        assert finite(found)
        assert found > 1e300 / 2


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=20))
def test_counts_of_a_session_stay_numbers_that_json_carries(counts: list[float]) -> None:
    session = b"{}"
    for count in counts:
        session = merge(session, [{"clickCount": count}])
        assert finite(parse_object(session)["clickCount"])
