"""What the gate says of a document: where each fault stands, what a test saw, and what is only a warning."""

import pytest

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_taken_event
from vettance.rules.document import position_in, read_document
from vettance.rules.gate import Context, GateResult, examine
from vettance.rules.rule import RuleSetRefused
from vettance.velocity.memory.memory_velocity import MemoryVelocity

CONTEXT = Context(fraud_schema(), read_taken_event, MemoryVelocity)
HEAD = "name: Shop\nrules:\n"
TESTS = """
    tests:
      - {name: yes, event: {eventName: login}, fires: true}
      - {name: no, event: {eventName: x}, fires: false}
"""


def rule(when: str, more: str = "", name: str = "r") -> str:
    return f"""  - id: {name}
    name: R
    when: {when}
    score: 5
    reason: R
    explanation: e{more}
"""


def found(document: str) -> GateResult:
    return examine(document, CONTEXT)


def places(document: str) -> list[tuple[int | None, int | None, str]]:
    return [(fault.line, fault.column, fault.message) for fault in found(document).errors]


#: The text of a rule as YAML may write it, and the line and column of `contry` in the document.
WRITTEN = {
    "plain": ('country == "NO" and contry == "X"', 5, 31),
    "single quotes": ("'country != \"it''s\" and contry == \"X\"'", 5, 35),
    "double quotes": ('"country == \\"NO\\" and contry == \\"X\\""', 5, 34),
    "double quotes, backslash": ('"matches(ip, r\\"\\\\d\\") and contry == \\"X\\""', 5, 38),
    "folded": ('>-\n      country == "NO"\n      and contry == "X"', 7, 11),
    "folded, indented": (
        '>-\n      (country == "NO"\n         and hour < 5)\n\n      and contry == "X"',
        9,
        11,
    ),
    "literal": ('|\n      country == "NO"\n        and contry == "X"', 7, 13),
    "plain over lines": ('country == "NO" and\n      hour < 5 and contry == "X"', 6, 20),
    "with a comment of the rule": ('|\n      # contry\n      hour < 5 and contry == "X"', 7, 20),
    "letters of several bytes": ('country == "Ελλάδα" and contry == "X"', 5, 35),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_fault_of_a_rule_is_found_in_the_file(name: str) -> None:
    when, line, column = WRITTEN[name]
    (fault, *_) = (one for one in found(HEAD + rule(when, TESTS)).errors if "contry" in one.message)
    assert (fault.line, fault.column) == (line, column)
    source = (HEAD + rule(when)).split("\n")[line - 1]
    assert source[column - 1 :].startswith("contry")
    shown, carets = fault.excerpt
    assert shown[carets.index("^") :].startswith("contry")
    assert carets.count("^") == len("contry")


def test_a_text_with_line_ends_of_windows_is_counted_alike() -> None:
    when = '>-\n      country == "NO"\n      and contry == "X"'
    document = (HEAD + rule(when, TESTS)).replace("\n", "\r\n")
    assert places(document)[0][:2] == (7, 11)


def test_every_character_of_a_text_is_found_where_it_stands() -> None:
    document = 'a: one two\nb: |\n  three\n    four\nc: >-\n  five\n  six\nd: "sev\\"en"\n'
    lines = document.split("\n")
    for place in read_document(document).value.values():
        for at, char in enumerate(place.value):
            line, column = position_in(document, place, at)
            if not char.isspace():
                assert lines[line - 1][column - 1] == char


def test_the_shape_names_expressions_and_tests_are_all_judged_at_once() -> None:
    tests = TESTS.replace("eventName: x", "eventName: login")
    document = HEAD + rule('contry == "X" and metadata.amount > "5"', name="a").replace(
        "score: 5", "score: 500"
    )
    document += rule('event.kind == "login"', tests, name="b") + rule("hour > 23", TESTS, name="c")
    assert places(document) == [
        (5, 11, "there is no name contry"),
        (5, 47, "a number is compared with a text here"),
        (6, 12, "must be a whole number from 0 to 100"),
        (17, 9, "test 'no': the rule fires, but should not"),
        (21, 18, "hour > 23 is never true"),
    ]


def test_a_failing_test_shows_what_the_rule_saw() -> None:
    when = 'event.kind == "login" and metadata.level > 2 and count(by=customer.key, within="1h") >= 3'
    tests = """
    tests:
      - name: the third
        given: [{eventName: login, customer: {externalId: c}, repeat: 2}]
        event: {eventName: login, customer: {externalId: c}}
        fires: true
      - {name: none, event: {eventName: login}, fires: false}
"""
    (fault,) = found(HEAD + rule(when, tests)).errors
    assert fault.saw == (
        ("event.kind", "login"),
        ("metadata.level", None),
        ("customer.key", "c"),
        ('count(by=customer.key, within="1h")', 2),
    )
    assert str(fault).endswith(
        """
    it saw:
      event.kind = "login"
      metadata.level is missing
      customer.key = "c"
      count(by=customer.key, within="1h") = 2"""
    )


def test_a_shadow_rule_without_tests_is_warned_about_and_passes() -> None:
    examined = found(HEAD + rule("hour < 5", "\n    mode: shadow"))
    assert [(fault.warning, fault.line) for fault in examined.faults] == [(True, 3)]
    assert "this shadow rule has no test in which it fires, and none" in examined.faults[0].message
    examined.passed()
    assert found(HEAD + rule("hour < 5", "\n    mode: off")).faults == ()
    assert found(HEAD + rule('event.kind == "login"', "\n    mode: shadow" + TESTS)).faults == ()


def test_a_warning_refuses_nothing_and_an_error_shows_the_warnings_too() -> None:
    always = rule('event.kind == "login" and hour >= 0', TESTS)
    assert [fault.warning for fault in found(HEAD + always).faults] == [True]
    found(HEAD + always).passed()
    both = found(HEAD + always.replace(">= 0", ">= 0 and weekday < 1"))
    with pytest.raises(RuleSetRefused) as caught:
        both.passed()
    assert [fault.warning for fault in caught.value.faults] == [True, False]
    assert "hour" not in str(caught.value.details)


def test_more_faults_than_anybody_reads_are_counted() -> None:
    document = HEAD + "".join(rule("contry", name=f"r{number}") for number in range(80))
    faults = found(document).faults
    assert len(faults) == 101
    assert faults[-1].message == "there are 140 more faults, not shown here"


def test_any_number_of_warnings_refuses_nothing_and_of_failed_tests_no_trial() -> None:
    shadows = "".join(rule("hour < 5", "\n    mode: shadow", f"r{number}") for number in range(150))
    warned = found(HEAD + shadows)
    assert (len(warned.faults), warned.errors) == (101, ())
    warned.passed()
    untested = found(HEAD + "".join(rule("hour < 5", name=f"r{number}") for number in range(80)))
    assert (len(untested.missed), untested.broken) == (101, ())
    mixed = found(HEAD + shadows + rule("hour <", name="last"))
    assert {fault.where for fault in mixed.errors} == {"rule last"}


def test_what_is_no_rule_at_all_is_one_fault() -> None:
    assert places(HEAD + "  - just a text\n") == [(3, 5, "must be a mapping of names to values")]


def test_a_document_that_is_no_yaml_is_one_fault() -> None:
    assert [fault.where for fault in found("name: [").faults] == ["document"]


def test_a_hold_out_of_rules_that_answer_nothing_is_a_warning() -> None:
    document = "name: Shop\nexplore: {percent: 1, below: 100}\nrules:\n" + rule(
        'event.kind == "login"', TESTS
    )
    assert found(document).faults == ()
    (warned,) = examine(document, CONTEXT._replace(answers=False)).faults
    assert (warned.where, warned.warning) == ("explore", True)
