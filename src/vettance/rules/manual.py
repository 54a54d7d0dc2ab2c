"""The manual of the words, made of their own docstrings, so that it cannot fall behind."""

import re
from typing import NamedTuple

from vettance.rules.functions import WORDS
from vettance.rules.novelty import NOVELTY
from vettance.rules.word import RuleWord
from vettance.velocity.aggregates import AGGREGATES, AggregateKind

_EXAMPLE = re.compile(r"\n\s*Example: `(?P<example>.+)`\s*$", re.DOTALL)
_FORMS = {
    "condition": "[condition], by=…, {window}",
    "number": "number, by=…, {window}, [where=condition]",
    "labels": "by=…, {window}",
    "scalar": "value, by=…, {window}, [where=condition]",
}


class ManualEntry(NamedTuple):
    """One word in the manual. `form` shows how to write it; `example` is a rule."""

    name: str
    form: str
    gives: str
    meaning: str
    example: str


def word_entries() -> list[ManualEntry]:
    """Return the words that work on the event at hand, in the order of their table."""
    return [_entry(word.name, _form(word), word.result.value, word.doc) for word in WORDS.values()]


def aggregate_entries() -> list[ManualEntry]:
    """Return the aggregates, in the order of their table, and the word that is put together from them."""
    words = (*AGGREGATES.values(), NOVELTY)
    return [_entry(word.name, _span(word), word.result, word.doc) for word in words]


def manual_table(entries: list[ManualEntry]) -> str:
    """Write entries as a table in Markdown."""
    rows = ["| word | gives | meaning and example |", "|---|---|---|"]
    for entry in entries:
        example = entry.example.replace("|", "\\|")
        rows.append(f"| `{entry.form}` | {entry.gives} | {entry.meaning}<br>`{example}` |")
    return "\n".join(rows)


def _entry(name: str, form: str, gives: str, doc: str) -> ManualEntry:
    match = _EXAMPLE.search(doc)
    if match is None:
        raise AssertionError(f"the word {name} has no example")
    meaning = " ".join(doc[: match.start()].split())
    return ManualEntry(name, form, gives, meaning, match["example"])


def _form(word: RuleWord) -> str:
    names = [parameter.name for parameter in word.parameters]
    if word.many:
        return f"{word.name}({names[0]}, …)"
    if word.optional:
        names[-word.optional :] = [f"[{name}]" for name in names[-word.optional :]]
    return f"{word.name}({', '.join(names)})"


def _span(word: AggregateKind) -> str:
    window = "within=…" if word.window_ms is None else "[within=…]"
    more = ", [expected=…]" if word is NOVELTY else ""
    return f"{word.name}({_FORMS[word.takes].format(window=window)}{more})"
