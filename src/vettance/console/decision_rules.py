"""The rules of a decision with the values that each read, those that fired first."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from vettance.console.page import Visit
from vettance.console.rule_place import FRAUD, RULE_READERS
from vettance.console.value_words import value_in_words
from vettance.rules.rule import Rule


class RuleValue(NamedTuple):
    """A value that a rule read: the name the decision keeps it under, and the value as it is shown.

    `words` say what an aggregate counted; None where the name says it.
    """

    name: str
    value: str
    is_doubtful: bool
    words: str | None


class RuleShown(NamedTuple):
    """A rule as the page shows it; `url` is its page, empty for those who may not see it.

    `withheld` says why a rule that matched did not act, as the record does; empty for all others.
    """

    id: str
    name: str
    state: str
    score: int
    reason: str
    explanation: str
    when: str
    values: tuple[RuleValue, ...]
    error: str
    url: str
    withheld: str


class RulesShown(NamedTuple):
    """The rules by what became of them; `used` are the names of all values that any rule read."""

    fired: list[RuleShown]
    shadow: list[RuleShown]
    failed: list[RuleShown]
    others: list[RuleShown]
    used: frozenset[str]


#: Names of features that are numbers or words of ours, whatever their type: no person is found by them.
_OPEN_FEATURES = ("event.", "signals.", "country", "ip.country", "user_agent.", "metadata.currency")


async def rules_shown(visit: Visit, record: dict[str, Any]) -> RulesShown:
    """Return the rules of a decision."""
    outputs, features = record["outputs"], record["inputs"]["features"]
    doubtful = set(outputs.get("inexact") or ()) | {one["name"] for one in outputs.get("unknown") or ()}
    version = int(outputs["ruleVersion"]["version"])
    try:
        active = await visit.parts.explainer.rules_of(visit.tenant.id, version)
        texts = {rule.id: rule for rule in active.ruleset.running}
    except LookupError:
        texts = {}
    # The conditions of a pack that nobody has looked at yet take a fifth of a second to read.
    read = await asyncio.to_thread(_names_read, visit, texts.values())
    shown: list[RuleShown] = []
    used: set[str] = set()
    for result in outputs["rules"]:
        rule = texts.get(result["ruleId"])
        names = read.get(result["ruleId"], ())
        used.update(names)
        shown.append(
            RuleShown(
                result["ruleId"],
                result["ruleName"],
                _state(result),
                result["score"],
                rule.reason if rule is not None else "",
                rule.explanation if rule is not None else "",
                rule.when if rule is not None else "",
                tuple(
                    RuleValue(
                        name,
                        value_shown(visit, name, features.get(name)),
                        name in doubtful,
                        value_in_words(name),
                    )
                    for name in names
                ),
                result.get("error", ""),
                FRAUD.url_of(result["ruleId"]) if visit.may(*RULE_READERS) else "",
                result.get("withheld") or "",
            )
        )
    parts = {word: [one for one in shown if one.state == word] for word in ("fired", "shadow", "failed", "")}
    parts["fired"].sort(key=lambda one: -one.score)
    return RulesShown(parts["fired"], parts["shadow"], parts["failed"], parts[""], frozenset(used))


def _names_read(visit: Visit, rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    return {rule.id: visit.parts.names_read(rule.when) for rule in rules}


def _state(result: dict[str, Any]) -> str:
    if result.get("error"):
        return "failed"
    if result.get("withheld"):
        return "shadow"
    if not result["matched"]:
        return ""
    return "fired" if result["mode"] == "active" else "shadow"


def value_shown(visit: Visit, name: str, value: Any) -> str:
    """Show a value that rules read, masked for those who see masks."""
    if isinstance(value, str) and not name.startswith(_OPEN_FEATURES):
        value = visit.sight.text(value)
    return visit.show.value(value)
