"""What is different between two rule sets: rules that are added, changed and removed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.rules.rule import RULE_MEMBERS, Rule, RuleSet

KINDS: Final = ("added", "changed", "removed")
_RULE_SET: Final = "(the rule set)"
_SHORT_CHARS_MAX: Final = 40  # Of a value that is in one line with its successor.
_OWN: Final = ("name", "levels", "thresholds", "actions", "explore")


class RuleChange(NamedTuple):
    """One difference of two rule sets: `rule` is an id, or None for the rule set itself.

    `before` and `after` have the members that differ as they were and as they are now; of a rule that was
    added or removed, its name, score and mode.
    """

    kind: str  # one of `KINDS`
    rule: str | None
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """The members that differ."""
        return tuple(self.after) if self.kind == "changed" else ()


def diff(old: RuleSet, new: RuleSet) -> list[RuleChange]:
    """Return what is different in `new`: the rule set itself, then its rules in order, then lost ones."""
    own = _changed(None, old, new, _OWN)
    changes = [own] if own is not None else []
    before = {rule.id: rule for rule in old.rules}
    for rule in new.rules:
        known = before.pop(rule.id, None)
        if known is None:
            changes.append(RuleChange("added", rule.id, after=_summary(rule)))
        elif (changed := _changed(rule.id, known, rule, Rule.__struct_fields__)) is not None:
            changes.append(changed)
    return changes + [RuleChange("removed", rule.id, before=_summary(rule)) for rule in before.values()]


def _changed(rule: str | None, old: Any, new: Any, names: Iterable[str]) -> RuleChange | None:
    differing = [name for name in names if getattr(old, name) != getattr(new, name)]
    if not differing:
        return None
    before, after = (
        {RULE_MEMBERS.get(name, name): msgspec.to_builtins(getattr(one, name)) for name in differing}
        for one in (old, new)
    )
    return RuleChange("changed", rule, before, after)


def _summary(rule: Rule) -> dict[str, Any]:
    return {"name": rule.name, "score": rule.score, "mode": rule.mode}


def count_changes(changes: Sequence[RuleChange]) -> dict[str, int]:
    """Count the rules that were added, changed and removed."""
    return {
        kind: sum(change.kind == kind and change.rule is not None for change in changes) for kind in KINDS
    }


def change_lines(changes: Sequence[RuleChange]) -> list[str]:
    """Write differences for people, a line for each rule, and more where a text changed."""
    width = max((len(change.rule or _RULE_SET) for change in changes), default=0)
    lines: list[str] = []
    for change in changes:
        name = (change.rule or _RULE_SET).ljust(width)
        if change.kind == "changed":
            short, long = _change_lines(change)
            lines.append(f"~ {name}  {'; '.join(short)}".rstrip())
            lines += long
        else:
            about = change.after or change.before
            mark = "+" if change.kind == "added" else "-"
            mode = "" if about["mode"] == "active" else f", {about['mode']}"
            lines.append(f"{mark} {name}  {about['name']} (score {about['score']}{mode})")
    return lines


def _change_lines(change: RuleChange) -> tuple[list[str], list[str]]:
    """Return what changed in few words, and the texts for which that is no way."""
    short: list[str] = []
    long: list[str] = []
    for member, new in change.after.items():
        old = change.before[member]
        if isinstance(old, dict) and isinstance(new, dict):
            short += _member_lines(member, old, new)
        elif isinstance(old, list | tuple):
            short.append(f"{member} {len(old)} → {len(new)}" if len(old) != len(new) else f"{member} changed")
        elif max(len(str(old)), len(str(new))) <= _SHORT_CHARS_MAX:
            short.append(f"{member} {_shown(old)} → {_shown(new)}")
        else:
            short.append(member)
            long += [f"      {mark} {_flat(text)}" for mark, text in (("-", old), ("+", new))]
    return short, long


def _member_lines(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys((*old, *new))
    return [
        f"{name}.{one} {_shown(old.get(one))} → {_shown(new.get(one))}"
        for one in names
        if old.get(one) != new.get(one)
    ]


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else _flat(value)


def _flat(value: Any) -> str:
    return " ".join(str(value).split())
