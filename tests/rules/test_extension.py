"""Rule sets that build on a pack: what is added, changed and switched off, and what is said of mistakes."""

import pytest

from vettance.aml.features import aml_schema
from vettance.aml.rule_trial import Trial
from vettance.decisions.features import fraud_schema
from vettance.events.event import read_taken_event
from vettance.rules.extension import Pack
from vettance.rules.gate import Context, GateResult, examine
from vettance.rules.packs import default_pack, load_pack
from vettance.rules.rule import RuleSetRefused
from vettance.rules.ruleset import read_ruleset, write_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

PACK = default_pack("fraud")
OWN = """
extends: default
thresholds: {review: 50}
actions: {CALL: Call the customer.}
rules:
  - {id: webdriver, score: 20}
  - {id: headless-browser, mode: off}
  - {id: honeypot-filled, action: null}
  - id: night
    name: Withdrawal at night
    when: event.kind == "withdrawal" and hour < 5
    score: 40
    reason: NIGHT
    explanation: A withdrawal at night.
    action: CALL
    tests:
      - {name: at night, now: 2026-01-31T03:00:00Z, event: {eventName: withdrawal}, fires: true}
      - {name: by day, event: {eventName: withdrawal}, fires: false}
"""


def found(document: str, pack: Pack | None = PACK) -> GateResult:
    return examine(document, Context(fraud_schema(), read_taken_event, MemoryVelocity, pack))


def said(document: str) -> list[tuple[int | None, str, str]]:
    return [(fault.line, fault.where, fault.message) for fault in found(document).faults]


def test_a_document_adds_to_the_pack_changes_it_and_switches_off() -> None:
    examined = found(OWN)
    assert examined.faults == ()
    assert examined.extends == f"default@{PACK.version}"
    pack, ruleset = load_pack("fraud"), examined.ruleset
    before, after = {rule.id: rule for rule in pack.rules}, {rule.id: rule for rule in ruleset.rules}
    assert list(after) == [*before, "night"]
    assert (after["webdriver"].score, after["webdriver"].when) == (20, before["webdriver"].when)
    assert after["webdriver"].tests == before["webdriver"].tests
    assert after["headless-browser"].mode == "off"
    assert after["honeypot-filled"].action is None
    assert (ruleset.name, ruleset.levels) == (pack.name, pack.levels)
    assert (ruleset.thresholds.review, ruleset.thresholds.block) == (50, pack.thresholds.block)
    assert ruleset.actions == {**pack.actions, "CALL": "Call the customer."}
    changed = {"webdriver", "headless-browser", "honeypot-filled", "night"}
    assert all(after[name] == rule for name, rule in before.items() if name not in changed)


def test_what_it_comes_to_stands_alone() -> None:
    """Whatever becomes of the pack later, what was stored says the same."""
    resolved = found(OWN).ruleset
    assert read_ruleset(write_ruleset(resolved)) == resolved
    assert found(write_ruleset(resolved), pack=None).faults == ()


@pytest.mark.parametrize("name", ["default", "fraud", f"default@{PACK.version}"])
def test_a_pack_goes_by_its_names_and_its_version(name: str) -> None:
    assert found(OWN.replace("extends: default", f"extends: {name}")).ruleset == found(OWN).ruleset


def test_a_document_of_nothing_else_is_the_pack() -> None:
    assert found("extends: default").ruleset == load_pack("fraud")


MISTAKES = {
    "another pack": (
        "extends: default",
        "extends: aml",
        2,
        "extends",
        "there is no such pack; write default,",
    ),
    "a pack of another release": (
        "extends: default",
        "extends: default@00000000",
        2,
        "extends",
        f"the pack of this release is default@{PACK.version}, not default@00000000",
    ),
    "no text": ("extends: default", "extends: 5", 2, "extends", "there is no such pack"),
    "a rule that is not there": (
        "{id: webdriver",
        "{id: web-driver",
        6,
        "rule web-driver",
        "the pack default has no such rule to change",
    ),
    "a member that is not there": ("webdriver, score", "webdriver, scor", 6, "rule webdriver", "there is no"),
    "a value that is wrong": (
        "score: 20",
        "score: 200",
        6,
        "rule webdriver: score",
        "must be a whole number",
    ),
    "a condition that the tests of the pack contradict": (
        "score: 20",
        "when: hour < 2",
        6,
        "rule webdriver",
        "test ",
    ),
    "a condition that is wrong": (
        "score: 20",
        "when: hour > 23",
        6,
        "rule webdriver",
        "hour > 23 is never true",
    ),
    "a rule changed twice": (
        "{id: headless-browser",
        "{id: webdriver",
        7,
        "rule webdriver",
        "the id stands twice",
    ),
    "bounds of both that do not fit": (
        "review: 50",
        "review: 90",
        3,
        "thresholds",
        "review must not be above",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_shown_in_the_line_of_the_file(name: str) -> None:
    old, new, line, where, message = MISTAKES[name]
    assert old in OWN
    first = said(OWN.replace(old, new, 1))[0]
    assert (first[0], first[1]) == (line, where)
    assert first[2].startswith(message)


def test_the_nearest_rule_of_the_pack_is_named() -> None:
    (fault,) = found(OWN.replace("{id: webdriver", "{id: web-driver")).faults
    assert fault.hint == "did you mean webdriver?"


def test_what_is_stored_builds_on_nothing() -> None:
    with pytest.raises(RuleSetRefused, match="there is no member extends"):
        read_ruleset(OWN)
    assert "extends" in [fault.where for fault in found(OWN, pack=None).errors]


def test_aml_rules_build_on_their_own_pack() -> None:
    trial = Trial(MemoryVelocity())
    context = Context(aml_schema(), trial.parse, trial.maker(), default_pack("aml"))
    examined = examine("extends: aml\nrules:\n  - {id: large-sum, mode: off}\n", context)
    assert examined.faults == ()
    assert {rule.id: rule.mode for rule in examined.ruleset.rules}["large-sum"] == "off"


def test_another_text_of_a_pack_is_another_version() -> None:
    assert PACK.version == default_pack("fraud").version
    assert PACK._replace(text=PACK.text + "\n").version != PACK.version
