"""The manual for rule authors says what is true: its tables are generated, its examples compiled.

`APPROVE=1 pytest tests/rules/test_docs.py` writes the tables anew.
"""

import os
import re
from pathlib import Path

import pytest

from vettance.decisions.features import fraud_schema
from vettance.decisions.network import Network
from vettance.events.event import read_taken_event
from vettance.rules import (
    calls,
    document_layout,
    functions,
    gate,
    language,
    operators,
    parse,
    plan_builder,
    scanner,
    windows,
)
from vettance.rules.document import DOCUMENT_BYTES_MAX
from vettance.rules.language import RuleFault, check
from vettance.rules.manual import aggregate_entries, manual_table, word_entries
from vettance.rules.packs import default_pack
from vettance.rules.ruleset import admit, read_ruleset
from vettance.rules.schema import Schema
from vettance.velocity import aggregates
from vettance.velocity.memory.memory_velocity import MemoryVelocity

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
TEXT = PAGE.read_text("utf-8")

LIMITS = [
    ("characters of a rule", scanner.TEXT_CHARS_MAX),
    ("levels of nesting", scanner.NESTING_MAX),
    ("parts of a rule (names, values, words, operators)", parse.NODES_MAX),
    ("items of a list", parse.ITEMS_MAX),
    ("characters of a text", scanner.STRING_CHARS_MAX),
    ("characters of a pattern", functions.PATTERN_CHARS_MAX),
    ("greatest number written in a rule", f"{operators.NUMBER_MAX:.0e}".replace("+", "")),
    ("parts of a key", windows.KEY_PARTS_MAX),
    ("longest window", f"{aggregates.WINDOW_MS_MAX // aggregates.DAY_MS} days"),
    ("cost of a rule", language.COST_MAX),
    ("different aggregates of a rule set", plan_builder.AGGREGATES_MAX),
    ("cost of a rule set", gate.COST_MAX),
    ("rules of a rule set", document_layout.RULES_MAX),
    ("tests of a rule", document_layout.TESTS_MAX),
    ("events of all tests of a rule set", gate.TRIAL_EVENTS_MAX),
    ("size of a rule set", f"{DOCUMENT_BYTES_MAX // 1024} KiB"),
]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return fraud_schema(Network())


def blocks(kind: str) -> list[str]:
    return [match[1] for match in re.finditer(rf"```{kind}\n(.*?)\n```", TEXT, re.DOTALL)]


def limits_table() -> str:
    rows = [
        f"| {what} | {most:,} |" if isinstance(most, int) else f"| {what} | {most} |" for what, most in LIMITS
    ]
    return "\n".join(["| what | at most |", "|---|---|", *rows])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("words", manual_table(word_entries())),
        ("aggregates", manual_table(aggregate_entries())),
        ("limits", limits_table()),
    ],
)
def test_the_tables_of_the_manual_are_those_of_the_code(name: str, expected: str) -> None:
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    text = PAGE.read_text("utf-8")
    written = pattern.sub(lambda match: f"{match[1]}{expected}\n{match[2]}", text)
    if os.environ.get("APPROVE"):
        PAGE.write_text(written, "utf-8")
        text = written
    assert written == text


@pytest.mark.parametrize("rule", blocks("rule"))
def test_every_example_of_the_manual_is_a_good_rule(rule: str, schema: Schema) -> None:
    assert not check(rule, schema).doubts


@pytest.mark.parametrize("entry", word_entries() + aggregate_entries(), ids=lambda entry: entry.name)
def test_every_example_of_a_word_is_a_good_rule_that_uses_it(entry: object, schema: Schema) -> None:
    name, example = entry.name, entry.example  # type: ignore[attr-defined]
    assert f"{name}(" in example
    assert not check(example, schema).doubts


UNKNOWN_VALUES = TEXT.partition("## Unknown values")[2].partition("## Looking back")[0]


@pytest.mark.parametrize("expression", re.findall(r"^\| `([^`]+)` \|", UNKNOWN_VALUES, re.MULTILINE))
def test_every_expression_in_the_table_of_unknown_values_is_a_rule(expression: str, schema: Schema) -> None:
    check(expression, schema)


def test_the_rule_set_of_the_manual_passes_the_gate(schema: Schema) -> None:
    (document,) = blocks("yaml")
    admit(read_ruleset(document), schema, read_taken_event, MemoryVelocity)


def test_the_file_of_the_manual_that_builds_on_the_pack_passes_the_gate(schema: Schema) -> None:
    (document,) = blocks("yaml extends")
    context = gate.Context(schema, read_taken_event, MemoryVelocity, default_pack("fraud"))
    assert gate.examine(document, context).faults == ()


def test_every_doubt_of_the_manual_is_the_true_one(schema: Schema) -> None:
    pairs = re.findall(r"```doubted\n(.*?)\n```\n\n```text\n(.*?)\n```", TEXT, re.DOTALL)
    assert len(pairs) == len(blocks("doubted")) > 0
    for rule, message in pairs:
        assert "\n".join(map(str, check(rule, schema).doubts)) == message


def test_every_refusal_of_the_manual_is_the_true_one(schema: Schema) -> None:
    pairs = re.findall(r"```refused\n(.*?)\n```\n\n```text\n(.*?)\n```", TEXT, re.DOTALL)
    assert len(pairs) == len(blocks("refused"))
    for rule, message in pairs:
        with pytest.raises(RuleFault) as caught:
            check(rule, schema)
        assert str(caught.value) == message


def test_every_word_that_authors_know_from_elsewhere_leads_to_one_of_ours() -> None:
    known = {*functions.WORDS, *aggregates.AGGREGATES}
    assert {better.partition("(")[0] for better in calls._SYNONYMS.values()} <= known
