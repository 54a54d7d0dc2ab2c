"""Rule sets: reading and writing the document, the gate, the differences."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lines_run import lines_run
from tests.rules.words import SCHEMA
from vettance.errors import Invalid
from vettance.rules.difference import RuleChange, diff
from vettance.rules.document import DocumentFault, read_document
from vettance.rules.gate import Context, examine
from vettance.rules.rule import EarlierEvents, Levels, Thresholds
from vettance.rules.ruleset import (
    Rule,
    RuleSet,
    RuleSetRefused,
    RuleTest,
    admit,
    compile_document,
    read_ruleset,
    write_ruleset,
)
from vettance.velocity.memory.memory_velocity import MemoryVelocity

DOCUMENT = """
name: Example
levels: {medium: 20, high: 50, critical: 90}
thresholds: {review: 50, block: 90}
actions:
  STEP_UP_MFA: Ask for a second factor.
rules:
  - id: failed-logins
    name: Failed logins from one address
    when: |
      event_name == "user.login_failed"
      and count(event_name == "user.login_failed", by=ip, within="10m") >= 5
    score: 40
    reason: LOGIN_FAILURES
    explanation: Many failed logins from one address.
    action: STEP_UP_MFA
    mode: active
    family: account-takeover
    tests:
      - name: the sixth failure
        given:
          - {event_name: user.login_failed, ip: 10.0.0.1, customer.external_id: "c{i}",
             at: -5m, repeat: 5, every: 10s}
        event: {event_name: user.login_failed, ip: 10.0.0.1}
        fires: true
      - name: failures that are long ago
        given: [{event_name: user.login_failed, ip: 10.0.0.1, at: -20m, repeat: 5, every: 1s}]
        event: {event_name: user.login_failed, ip: 10.0.0.1}
        fires: false
  - id: from-norway
    name: Country codes are texts
    when: country == "NO"
    score: 5
    reason: NORWAY
    explanation: From Norway.
    mode: off
"""


def parse(body: dict[str, Any], now_ms: int) -> Any:
    if body.get("ip") == "bad":
        raise Invalid("The request is not well-formed; see details.", {"ip": "must be an address"})
    return {**body, "occurred_at_ms": now_ms}


CONTEXT = Context(SCHEMA, parse, MemoryVelocity)


def gate(document: str) -> Any:
    return examine(document, CONTEXT).passed()


def faults_of(document: str) -> str:
    with pytest.raises(RuleSetRefused) as caught:
        gate(document)
    assert caught.value.status == 422
    assert caught.value.details
    return str(caught.value)


def test_a_document_is_read_as_it_is_written() -> None:
    ruleset = read_ruleset(DOCUMENT)
    assert ruleset.name == "Example"
    assert ruleset.levels == Levels(medium=20, high=50, critical=90)
    assert ruleset.thresholds == Thresholds(review=50, block=90)
    first, second = ruleset.rules
    assert first.action == "STEP_UP_MFA"
    assert first.tests[0].given == (
        EarlierEvents(
            event={"event_name": "user.login_failed", "ip": "10.0.0.1", "customer.external_id": "c{i}"},
            at_ms=-300_000,
            repeat=5,
            every_ms=10_000,
        ),
    )
    assert (second.mode, second.outcome, second.tests) == ("off", None, ())
    assert ruleset.running == (first,)


def test_a_good_rule_set_passes_the_gate_and_runs() -> None:
    compiled = gate(DOCUMENT)
    assert compiled.rule_ids == ("failed-logins",)
    facts = compiled.facts({"event_name": "user.login_failed", "ip": "1"})
    assert compiled.run(facts, (5,)) == ([0], [])


def test_a_document_that_passed_compiles_again_without_its_tests() -> None:
    ruleset, compiled = compile_document(DOCUMENT, SCHEMA)
    assert ruleset == read_ruleset(DOCUMENT)
    assert compiled.plan == gate(DOCUMENT).plan


def test_a_test_may_set_its_own_time() -> None:
    rule = """
name: Night
rules:
  - id: night
    name: At night
    when: hour_of(occurred_at_ms) < 5
    score: 5
    reason: NIGHT
    explanation: At night.
    tests:
      - {name: at three, now: 2026-01-31T03:00:00Z, event: {ip: a}, fires: true}
      - {name: at noon, event: {ip: a}, fires: false}
"""
    gate(rule)


def test_the_number_of_a_repetition_stands_in_every_text() -> None:
    document = DOCUMENT.replace("count(event_name", "distinct(customer.external_id, where=event_name")
    gate(document)
    assert "does not fire, but should" in faults_of(document.replace("c{i}", "c"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "fires: true",
            "fires: false",
            "rule failed-logins: test 'the sixth failure': the rule fires, but should not",
        ),
        (">= 5", ">= 6", "rule failed-logins: test 'the sixth failure': the rule does not fire, but should"),
        ("by=ip", "by=id", "there is no name id"),
        ("ip: 10.0.0.1}\n        fires: true", "ip: bad}\n        fires: true", "ip: must be an address"),
        ('country == "NO"', "country = 1", "line 32, column 19: rule from-norway: a rule cannot assign"),
    ],
)
def test_the_gate_names_the_rule_and_what_is_wrong(old: str, new: str, message: str) -> None:
    assert old in DOCUMENT
    assert message in faults_of(DOCUMENT.replace(old, new))


def test_an_active_rule_needs_a_test_that_fires_and_one_that_does_not() -> None:
    bare = DOCUMENT.replace("mode: off", "mode: active")
    assert "rule from-norway: an active rule needs a test in which it fires" in faults_of(bare)
    assert "rule from-norway: an active rule needs a test in which it does not fire" in faults_of(bare)
    gate(DOCUMENT.replace("mode: off", "mode: shadow"))


def test_every_fault_of_every_rule_is_reported_at_once() -> None:
    """Those of the shape, of names, of expressions and of tests, in the order of the document."""
    broken = DOCUMENT.replace('country == "NO"', "contry == 1 and ip > 5").replace(">= 5", ">= 6")
    broken = broken.replace("score: 5", "score: 500").replace("medium: 20", "medium: 60")
    with pytest.raises(RuleSetRefused) as caught:
        gate(broken)
    assert [(fault.where, fault.line, fault.column) for fault in caught.value.faults] == [
        ("levels", 3, 9),
        ("rule failed-logins", 20, 9),
        ("rule from-norway", 32, 11),
        ("rule from-norway", 32, 32),
        ("rule from-norway: score", 33, 12),
    ]


def test_a_rule_set_that_costs_too_much_is_refused() -> None:
    expensive = " or ".join(f"similarity(ip, country) > 0.{number}" for number in range(45))
    rules = tuple(
        Rule(id=f"r{number}", name="n", when=f"{expensive} or metadata.amount == {number}", score=1,
             reason="R", explanation="e", mode="shadow")
        for number in range(9)
    )  # fmt: skip
    with pytest.raises(RuleSetRefused, match="they cost"):
        admit(RuleSet(name="n", rules=rules), SCHEMA, parse, MemoryVelocity)


def test_a_rule_set_whose_tests_run_too_long_is_refused_before_they_run() -> None:
    crowd = tuple(EarlierEvents(event={}, repeat=1000) for _ in range(50))
    rule = Rule(
        id="r",
        name="n",
        when="true",
        score=1,
        reason="R",
        explanation="e",
        mode="shadow",
        tests=(RuleTest(name="t", event={}, fires=True, given=crowd),) * 2,
    )
    started = time.perf_counter()
    with pytest.raises(RuleSetRefused, match="events"):
        admit(RuleSet(name="n", rules=(rule,)), SCHEMA, parse, MemoryVelocity)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "name: Example",
            "nam: Example",
            "line 2, column 6: document: there is no member nam here; did you mean name?",
        ),
        ("name: Example\n", "", "name: is required"),
        ("score: 40", "score: 101", "rule failed-logins: score: must be a whole number from 0 to 100"),
        ("score: 40", "score: 40.5", "must be a whole number"),
        ("score: 40", "score: true", "must be a whole number"),
        ("score: 40", "", "rule failed-logins: score: is required"),
        ("id: failed-logins", "id: Failed Logins", "line 8, column 9: rules[0].id: must be small letters"),
        ("id: from-norway", "id: failed-logins", "the id stands twice, first in line 8"),
        ("reason: NORWAY", "reason: norway", "reason: must be capital letters"),
        ("action: STEP_UP_MFA", "action: CALL", "action: is not described under actions"),
        ("mode: off", "mode: of", "mode: must be one of active, shadow, off"),
        ("mode: active", "mode: active\n    outcome: DENY", "outcome: must be one of ALLOW, REVIEW, BLOCK"),
        ("at: -5m", "at: 5m", 'given[0].at: must be a time like "-5m"'),
        ("every: 10s", "every: -10s", "every: must be a time like"),
        ("every: 10s", "every: 10m", "the repetitions reach beyond the tested event"),
        ("repeat: 5", "repeat: 1001", "repeat: must be a whole number from 1 to 1000"),
        ("fires: true", "fires: maybe", "fires: must be true or false"),
        ("medium: 20", "medium: 60", "medium must be below high"),
        ("review: 50", "review: 95", "review must not be above block"),
        ("when: country", "wen: country", "there is no member wen here; did you mean when?"),
        ("explanation: From Norway.", "explanation: 5", "explanation: must be a text"),
        ("event: {event_name", "event: [event_name", "this is not YAML"),
        ("name: Example", "name: &a Example", "anchors and aliases are not allowed"),
        ("name: Example", "name: *a", "anchors and aliases are not allowed"),
        ("name: Example", "name: !!python/name:os.system x", "tags are not allowed"),
        ("name: Example", "name: !!str Example", "tags are not allowed"),
        ("name: Example", "name: Example\nname: Again", "line 3: document: name stands twice"),
        ("name: Example", "name: Example\n---\nname: Again", "a second document"),
        ("name: Example", "name: \x07", "a control character"),
        ("name: Example", "? [a, b]\n: c", "a name must be a plain text"),
        ("name: Example", "<<: {a: 1}", "there is no member << here"),
        ("score: 40", "score: 1.0e+999", "this number is too large"),
    ],
)
def test_a_fault_of_the_document_is_named_with_its_place(old: str, new: str, message: str) -> None:
    assert old in DOCUMENT
    assert message in faults_of(DOCUMENT.replace(old, new, 1))


@pytest.mark.parametrize(
    "document",
    [
        "",
        "# nothing",
        "- a",
        "5",
        "null",
        "name: [",
        "name: 'x",
        "\t- a",
        "\ud800",
        "name: x\nrules: {a: 1}",
        "{" * 5000,
    ],
)
def test_anything_else_is_refused(document: str) -> None:
    with pytest.raises(RuleSetRefused):
        read_ruleset(document)


@pytest.mark.parametrize(
    "shape",
    [
        lambda size: "[" * 10 * size,
        lambda size: "a: " * 3 * size,
        lambda size: "- " * 5 * size,
        lambda size: "{a: " * 3 * size,
        lambda size: (
            "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a, *a, *a, *a, *a]\n" for n in range(size // 40))
        ),
        lambda size: "x: '" + "a" * 15 * size + "'",
        lambda size: "[" + "1," * 6 * size + "]",
        lambda size: "\n".join(f"k{number}: 1" for number in range(size)),
        lambda size: "? " * 3 * size,
        lambda size: "!!python/object/apply:os.system ['id']" + "#" * size,
    ],
    ids=range(10),
)
def test_refusing_a_hostile_document_takes_no_longer_than_its_length(shape: Callable[[int], str]) -> None:
    def refuse(size: int) -> None:
        with pytest.raises(RuleSetRefused):
            read_ruleset(shape(size))

    lines = [lines_run(lambda size=size: refuse(size)) for size in (2_000, 10_000)]
    assert lines[1] < 1.2 * 5 * lines[0]


def test_plain_words_are_read_as_yaml_1_2_reads_them() -> None:
    place = read_document(
        "{a: no, b: on, c: 010, d: 1e3, e: 12:30, f: 2026-01-01, g: true, h: ~, i: -5, j: 1.5, k: '5'}"
    )
    assert {name: member.value for name, member in place.value.items()} == {
        "a": "no",
        "b": "on",
        "c": "010",
        "d": "1e3",
        "e": "12:30",
        "f": "2026-01-01",
        "g": True,
        "h": None,
        "i": -5,
        "j": 1.5,
        "k": "5",
    }


def test_values_remember_their_line() -> None:
    assert read_document("a: 1\nb:\n  - c\n  - d").value["b"].value[1].line == 4
    with pytest.raises(DocumentFault) as caught:
        read_document("a: 1\n\nb: *x")
    assert caught.value.line == 3


# --- Writing ---

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20).map(
    lambda text: text.replace("\ufeff", "") or "x"
)
TRICKY = """no|off|true|null|~|1e3|010|5|1.5|- a|a: b|#|{i}|'|"|*a|&a|!|a\nb| x |1_000|0x1F|12:30|=|<<"""
tricky = st.sampled_from([*TRICKY.split("|"), "2026-01-01", ".5", "1.", "+1", "-0"])
texts = st.one_of(words, tricky)
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**17), 10**17),
        st.floats(-1e9, 1e9).map(lambda x: round(x, 3)),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
events = st.dictionaries(
    texts.filter(lambda name: name not in ("at", "repeat", "every")), json_values, max_size=3
)
givens = st.builds(
    EarlierEvents,
    event=events,
    at_ms=st.integers(-400 * 86_400, -400).map(lambda s: s * 1000),
    repeat=st.integers(1, 4),
    every_ms=st.integers(0, 100_000),
)
tests = st.builds(
    RuleTest, name=texts, event=events, fires=st.booleans(), given=st.lists(givens, max_size=2).map(tuple),
    now_ms=st.one_of(st.none(), st.integers(10**12, 2 * 10**12)),
)  # fmt: skip
codes = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True)


@st.composite
def rulesets(draw: st.DrawFn) -> RuleSet:
    actions = draw(st.dictionaries(codes, texts, min_size=1, max_size=3))
    ids = draw(
        st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,8}[a-z0-9]", fullmatch=True), unique=True, max_size=3)
    )
    rules = tuple(
        Rule(
            id=rule_id,
            name=draw(texts),
            when=draw(texts),
            score=draw(st.integers(0, 100)),
            reason=draw(codes),
            explanation=draw(texts),
            outcome=draw(st.sampled_from([None, "ALLOW", "REVIEW", "BLOCK"])),
            action=draw(st.one_of(st.none(), st.sampled_from(sorted(actions)))),
            mode=draw(st.sampled_from(["active", "shadow", "off"])),
            family=draw(st.one_of(st.just(""), texts)),
            tests=tuple(draw(st.lists(tests, max_size=2))),
        )
        for rule_id in ids
    )
    return RuleSet(
        name=draw(texts), levels=Levels(medium=1, high=2, critical=3), actions=actions, rules=rules
    )


@settings(max_examples=150, deadline=None)
@given(rulesets())
def test_what_is_written_reads_back_equal(ruleset: RuleSet) -> None:
    assert read_ruleset(write_ruleset(ruleset)) == ruleset


# --- Differences ---


def test_a_difference_names_added_removed_and_changed_rules() -> None:
    old = read_ruleset(DOCUMENT)
    first, second = old.rules
    changed = msgspec.structs.replace(first, score=50, mode="shadow")
    added = msgspec.structs.replace(second, id="new")
    new = msgspec.structs.replace(old, rules=(added, changed), name="Other")
    assert diff(old, new) == [
        RuleChange("changed", None, {"name": "Example"}, {"name": "Other"}),
        RuleChange("added", "new", after={"name": second.name, "score": 5, "mode": "off"}),
        RuleChange(
            "changed", "failed-logins", {"score": 40, "mode": "active"}, {"score": 50, "mode": "shadow"}
        ),
        RuleChange("removed", "from-norway", before={"name": second.name, "score": 5, "mode": "off"}),
    ]
    assert diff(old, old) == []
