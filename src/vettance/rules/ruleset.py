"""Rule sets: written as YAML, and all that is done with them under one name."""

from typing import Any, Final

import msgspec
import yaml

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.rules.difference import RuleChange, diff
from vettance.rules.document_layout import read_ruleset
from vettance.rules.gate import admit, compile_document, compile_ruleset
from vettance.rules.rule import (
    JSON,
    RULE_MEMBERS,
    EarlierEvents,
    Fault,
    Rule,
    RuleSet,
    RuleSetRefused,
    RuleTest,
)
from vettance.wire.payload import timestamp

__all__ = [
    "Fault",
    "Rule",
    "RuleChange",
    "RuleSet",
    "RuleSetRefused",
    "RuleTest",
    "admit",
    "compile_document",
    "compile_ruleset",
    "diff",
    "read_ruleset",
    "write_ruleset",
]

_ALWAYS: Final = Rule(id="", name="", when="", score=0, reason="", explanation="")
_UNITS_MS: Final = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", 1_000), ("ms", 1))


class _Inline(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read, and events in one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write equal values twice; anchors are refused when reading."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _represent_inline(dumper: yaml.SafeDumper, mapping: _Inline) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Inline, _represent_inline)


def write_ruleset(ruleset: RuleSet) -> str:
    """Write a rule set as YAML; reading it back gives an equal rule set."""
    document = {
        "name": ruleset.name,
        "levels": _Inline(_members(ruleset.levels)),
        "thresholds": _Inline(_members(ruleset.thresholds)),
        "actions": dict(ruleset.actions),
        **({"explore": _Inline(_members(ruleset.explore))} if ruleset.explore is not None else {}),
        "rules": [_rule_out(rule) for rule in ruleset.rules],
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=108)


def _members(struct: Any) -> JSON:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _rule_out(rule: Rule) -> JSON:
    given = {name: value for name, value in _members(rule).items() if value not in (None, "", ())}
    # What it has been by default is left out, so that a document stays the same to the letter.
    if rule.rollout == _ALWAYS.rollout:
        del given["rollout"]
    if rule.adds is not None:
        given["adds"] = _Inline(msgspec.to_builtins(rule.adds))
    members = {RULE_MEMBERS.get(name, name): value for name, value in given.items()}
    if rule.tests:
        members["tests"] = [_test_out(test) for test in rule.tests]
    return members


def _test_out(test: RuleTest) -> JSON:
    members: JSON = {"name": test.name}
    if test.now_ms is not None:
        members["now"] = timestamp(test.now_ms)
    if test.given:
        members["given"] = [_given_out(given) for given in test.given]
    if test.probability is not None:
        members["model"] = _Inline(probability=test.probability)
    return members | {"event": _Inline(test.event), "fires": test.fires}


def _given_out(given: EarlierEvents) -> JSON:
    members = _Inline(given.event)
    members["at"] = _span(given.at_ms)
    if given.repeat != 1:
        members["repeat"] = given.repeat
    if given.every_ms:
        members["every"] = _span(given.every_ms)
    if given.label is not None:
        members["label"] = given.label
    return members


def _span(span_ms: int) -> str:
    size = abs(span_ms)
    unit, unit_ms = next((unit, ms) for unit, ms in _UNITS_MS if size % ms == 0 and (size or ms == 1))
    return f"{'-' if span_ms <= 0 else ''}{size // unit_ms}{unit}"
