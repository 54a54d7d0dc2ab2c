"""Rule sets: written as YAML, compared, and passed through the one gate before they are saved."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import yaml

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.rules.compiler import Compiled, compile_rules
from vettance.rules.fault import RuleFault
from vettance.rules.language import Checked, check
from vettance.rules.layout import read_ruleset
from vettance.rules.remember import TooManyAggregates
from vettance.rules.rule import JSON, Fault, Given, Rule, RuleSet, RuleSetRefused, RuleTest
from vettance.rules.schema import Schema
from vettance.rules.trial import Parse, events_of, try_rule
from vettance.state.port import Velocity
from vettance.wire import timestamp

__all__ = [
    "Change",
    "Fault",
    "Rule",
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

COST_MAX: Final = 150_000  # Of a rule set, in units of about 20 ns: 3 ms for each event, aggregates included.
TRIAL_EVENTS_MAX: Final = 50_000  # Of all tests of a rule set: some seconds of work when it is saved.

_UNITS_MS: Final = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", 1_000), ("ms", 1))


# --- The gate ---


def admit(
    ruleset: RuleSet, schema: Schema, parse_event: Parse, make_velocity: Callable[[], Velocity]
) -> Compiled:
    """Check, compile and try a rule set; return its running rules, compiled.

    `parse_event(body, now_ms)` makes an event of the body of a test; it may raise a `Refusal`.
    `make_velocity` makes an empty state engine. Raises `RuleSetRefused` naming every fault of every rule. An
    active rule needs a test in which it fires and one in which it does not.
    """
    checked, faults = _check(ruleset, schema)
    faults += _missing_tests(ruleset)
    events = sum(events_of(test) for rule in ruleset.running for test in rule.tests)
    if events > TRIAL_EVENTS_MAX:
        message = f"they run {events} events, {TRIAL_EVENTS_MAX} are allowed"
        raise RuleSetRefused([*faults, Fault("tests", message)])
    good = [rule for rule in ruleset.running if rule.id in checked]
    try:
        compiled = _compile(good, checked, schema)
    except RuleSetRefused as refused:
        raise RuleSetRefused([*faults, *refused.faults]) from None
    velocity = make_velocity()
    for index, rule in enumerate(good):
        for test in rule.tests:
            wrong = try_rule(compiled, index, test, parse_event, velocity)
            if wrong is not None:
                faults.append(Fault(f"rule {rule.id}", f"test {test.name!r}: {wrong}"))
    if faults:
        raise RuleSetRefused(faults)
    return compiled


def compile_ruleset(ruleset: RuleSet, schema: Schema) -> Compiled:
    """Compile the running rules of a rule set that passed the gate before; its tests are not run again."""
    checked, faults = _check(ruleset, schema)
    if faults:
        raise RuleSetRefused(faults)
    return _compile(list(ruleset.running), checked, schema)


def compile_document(document: str, schema: Schema) -> tuple[RuleSet, Compiled]:
    """Read and compile a document that passed the gate before. Raises `RuleSetRefused`."""
    ruleset = read_ruleset(document)
    return ruleset, compile_ruleset(ruleset, schema)


def _check(ruleset: RuleSet, schema: Schema) -> tuple[dict[str, Checked], list[Fault]]:
    checked: dict[str, Checked] = {}
    faults: list[Fault] = []
    for rule in ruleset.rules:
        try:
            checked[rule.id] = check(rule.when, schema)
        except RuleFault as fault:
            faults.append(Fault(f"rule {rule.id}", str(fault)))
    return checked, faults


def _missing_tests(ruleset: RuleSet) -> list[Fault]:
    faults: list[Fault] = []
    for rule in ruleset.rules:
        if rule.mode != "active":
            continue
        results = {test.fires for test in rule.tests}
        if True not in results:
            faults.append(Fault(f"rule {rule.id}", "an active rule needs a test in which it fires"))
        if False not in results:
            faults.append(Fault(f"rule {rule.id}", "an active rule needs a test in which it does not fire"))
    return faults


def _compile(rules: list[Rule], checked: Mapping[str, Checked], schema: Schema) -> Compiled:
    try:
        compiled = compile_rules([(rule.id, checked[rule.id]) for rule in rules], schema)
    except TooManyAggregates as error:
        raise RuleSetRefused([Fault("rules", str(error))]) from None
    if compiled.cost > COST_MAX:
        message = f"together they cost {compiled.cost} for each event, {COST_MAX} are allowed"
        raise RuleSetRefused([Fault("rules", message)])
    return compiled


# --- Writing ---


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
        "rules": [_rule_out(rule) for rule in ruleset.rules],
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=108)


def _members(struct: Any) -> JSON:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _rule_out(rule: Rule) -> JSON:
    members = {name: value for name, value in _members(rule).items() if value not in (None, "", ())}
    if rule.tests:
        members["tests"] = [_test_out(test) for test in rule.tests]
    return members


def _test_out(test: RuleTest) -> JSON:
    members: JSON = {"name": test.name}
    if test.now_ms is not None:
        members["now"] = timestamp(test.now_ms)
    if test.given:
        members["given"] = [_given_out(given) for given in test.given]
    return members | {"event": _Inline(test.event), "fires": test.fires}


def _given_out(given: Given) -> JSON:
    members = _Inline(given.event)
    members["at"] = _span(given.at_ms)
    if given.repeat != 1:
        members["repeat"] = given.repeat
    if given.every_ms:
        members["every"] = _span(given.every_ms)
    return members


def _span(span_ms: int) -> str:
    size = abs(span_ms)
    unit, unit_ms = next((unit, ms) for unit, ms in _UNITS_MS if size % ms == 0 and (size or ms == 1))
    return f"{'-' if span_ms <= 0 else ''}{size // unit_ms}{unit}"


# --- Differences ---


class Change(NamedTuple):
    """One difference of two rule sets: `rule` is an id, or None for the rule set itself."""

    kind: str  # "added" | "removed" | "changed"
    rule: str | None
    fields: tuple[str, ...] = ()


def diff(old: RuleSet, new: RuleSet) -> list[Change]:
    """Return what is different in `new`: the rule set itself, then its rules in order, then lost ones."""
    changes: list[Change] = []
    own = tuple(
        name
        for name in ("name", "levels", "thresholds", "actions")
        if getattr(old, name) != getattr(new, name)
    )
    if own:
        changes.append(Change("changed", None, own))
    before = {rule.id: rule for rule in old.rules}
    for rule in new.rules:
        known = before.pop(rule.id, None)
        if known is None:
            changes.append(Change("added", rule.id))
        elif known != rule:
            fields = tuple(
                name for name in Rule.__struct_fields__ if getattr(known, name) != getattr(rule, name)
            )
            changes.append(Change("changed", rule.id, fields))
    changes += [Change("removed", rule_id) for rule_id in before]
    return changes
