"""Rule sets that build on a pack: the document's own members are laid over those of the pack.

A rule whose id the pack has changes the members that it gives, any other rule is added. What comes out is a
whole rule set, which no longer knows of the pack.
"""

import difflib
import functools
import hashlib
import re
from typing import Final, NamedTuple

from vettance.rules.document import Node, read_document
from vettance.rules.rule import Fault

_DIGITS: Final = 8  # Of the digest that is a pack's version: enough to tell a few dozen packs apart.
_MERGED: Final = ("levels", "thresholds", "actions")
_NAMED: Final = re.compile(r"([a-z][a-z0-9-]{0,63})(?:@([0-9a-f]{8}))?", re.ASCII)


class Pack(NamedTuple):
    """A rule set that others may build on: the names it goes by, the first being shown, and its text."""

    names: tuple[str, ...]
    text: str

    @property
    def version(self) -> str:
        """What tells this pack from the same of another release: the beginning of its SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:_DIGITS]


class Extension(NamedTuple):
    """A document with its pack in it. `extends` is what it builds on, as `default@1a2b3c4d`, or None."""

    root: Node
    extends: str | None
    faults: list[Fault]


def extend(root: Node, pack: Pack | None) -> Extension:
    """Lay a document over the pack that its member `extends` names; without that member it stays as it is."""
    members = root.value
    if not isinstance(members, dict) or "extends" not in members:
        return Extension(root, None, [])
    own = {name: place for name, place in members.items() if name != "extends"}
    faults = _faults_of(members["extends"], pack)
    if pack is None:
        return Extension(root._replace(value=own), None, faults)
    # A pack that was named wrongly is taken all the same, so that only what is truly wrong is said.
    base: dict[str, Node] = _read(pack.text).value
    merged = base | {name: place for name, place in own.items() if place.value is not None}
    for name in _MERGED:
        if name in own and isinstance(own[name].value, dict):
            merged[name] = own[name]._replace(value=base[name].value | own[name].value)
    if "rules" in own and isinstance(own["rules"].value, list):
        rules = _rules(base["rules"].value, own["rules"].value, pack.names[0], faults)
        merged["rules"] = own["rules"]._replace(value=rules)
    return Extension(root._replace(value=merged), f"{pack.names[0]}@{pack.version}", faults)


@functools.lru_cache(maxsize=4)
def _read(text: str) -> Node:
    return read_document(text)


def _faults_of(place: Node, pack: Pack | None) -> list[Fault]:
    if pack is None:
        message = "only a file that is checked or pushed builds on a pack; what is stored stands alone"
        return [Fault("extends", message, place.line, place.column)]
    named = _NAMED.fullmatch(place.value) if isinstance(place.value, str) else None
    current = f"{pack.names[0]}@{pack.version}"
    if named is None or named[1] not in pack.names:
        message = f"there is no such pack; write {pack.names[0]}, or {current}"
        return [Fault("extends", message, place.line, place.column)]
    if named[2] not in (None, pack.version):
        message = f"the pack of this release is {current}, not {place.value}"
        hint = f"see by diff what the pack changed, then name {current}"
        return [Fault("extends", message, place.line, place.column, hint)]
    return []


def _rules(base: list[Node], own: list[Node], name: str, faults: list[Fault]) -> list[Node]:
    """Return the rules of the pack, changed where the document says so, and after them those it adds."""
    rules = {str(place.value["id"].value): place for place in base}
    added: list[Node] = []
    changed: set[str] = set()
    for place in own:
        members = place.value if isinstance(place.value, dict) else {}
        rule_id = members["id"].value if "id" in members else None
        known = rules.get(rule_id) if isinstance(rule_id, str) else None
        if rule_id in changed:
            faults.append(Fault(f"rule {rule_id}", "the id stands twice", place.line, place.column))
        elif known is not None:
            changed.add(str(rule_id))
            at = place.line, place.column
            pack_members = {member: _moved(value, at) for member, value in known.value.items()}
            rules[str(rule_id)] = place._replace(value=pack_members | members)
        elif isinstance(rule_id, str) and "when" not in members:
            faults.append(_unknown(place, rule_id, list(rules), name))
        else:
            added.append(place)
    return [*rules.values(), *added]


def _unknown(place: Node, rule_id: str, known: list[str], name: str) -> Fault:
    close = difflib.get_close_matches(rule_id[:64], known, 1)
    hint = f"did you mean {close[0]}?" if close else "a rule of your own needs a condition in when"
    message = f"the pack {name} has no such rule to change"
    return Fault(f"rule {rule_id[:64]}", message, place.line, place.column, hint)


def _moved(place: Node, at: tuple[int, int]) -> Node:
    """Return a value of the pack as if it stood where the document changes its rule."""
    value = place.value
    if isinstance(value, dict):
        value = {name: _moved(member, at) for name, member in value.items()}
    elif isinstance(value, list):
        value = [_moved(item, at) for item in value]
    return Node(value, *at)
