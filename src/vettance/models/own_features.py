"""Features that a tenant writes itself, in addition to or instead of those that come along."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.errors import Invalid
from vettance.models.feature_set import FAMILIES, FEATURES_MAX, Feature, FeatureSet, set_of, write_feature_set
from vettance.rules.document import DocumentFault, Node, read_document
from vettance.rules.parse import alike
from vettance.rules.rule import Fault

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_TEXT_CHARS_MAX: Final = 200
_MEMBERS: Final = ("value", "family", "text")
_HOW: Final = "write a name and an expression of the rule language, such as amount: metadata.amount"
_FAMILY: Final = "behaviour"


class OwnFeatures(NamedTuple):
    """What a document makes of the features that come along.

    `places` has where the expression of each feature of the document is written; `faults` what is wrong.
    """

    features: tuple[Feature, ...]
    places: Mapping[str, Node]
    faults: list[Fault]


def read_own(found: Sequence[Feature], document: str) -> OwnFeatures:
    """Read a document of features that change those that come along, and name every fault.

    `name: expression` adds a feature, or takes the place of the one of that name; `name: null` leaves it out.
    """
    faults: list[Fault] = []
    members = _read_members(document, faults)
    known = {one.name: one for one in found}
    features, places = dict(known), dict[str, Node]()
    for name, node in members.items():
        if node.value is None:
            if features.pop(name, None) is None:
                hint = alike(name, list(known)) or "only what comes along can be left out"
                faults.append(_fault(name, node, "no feature of that name comes along", hint))
            continue
        if name not in known and not _NAME.fullmatch(name):
            faults.append(
                _fault(name[:60], node, "this is no name for a feature", "use letters, digits and _")
            )
            continue
        place = node.value.get("value", node) if isinstance(node.value, dict) else node
        places[name] = place
        if (one := _read_feature(name, node, faults)) is not None:
            features[name] = one
    if not faults and not 0 < len(features) <= FEATURES_MAX:
        faults.append(
            Fault("document", f"a feature set has 1 to {FEATURES_MAX} features, not {len(features)}")
        )
    return OwnFeatures(tuple(features.values()), places, faults)


def add_own(found: Sequence[Feature], document: str) -> FeatureSet:
    """Return the features that come along, changed by a document of a tenant's own. Raises `Invalid`."""
    own = read_own(found, document)
    if own.faults:
        raise Invalid(
            "The feature set is not well-formed; see details.", {one.where: str(one) for one in own.faults}
        )
    return set_of(own.features)


def own_names(document: str) -> frozenset[str]:
    """Return the names that a document adds or changes."""
    return frozenset(name for name, node in _read_members(document, []).items() if node.value is not None)


def own_document(found: Iterable[Feature], features: FeatureSet) -> str:
    """Return a document that makes a set out of the features that come along."""
    known = {one.name: one for one in found}
    now = {one.name: one for one in features.features}
    changed = write_feature_set([one for one in features.features if known.get(one.name) != one])
    gone = [f"{name}: null\n" for name in known if name not in now]
    return ("" if changed == "{}\n" else changed) + "".join(gone)


def _read_members(document: str, faults: list[Fault]) -> dict[str, Node]:
    lines = (line.strip() for line in document.splitlines())
    if all(not line or line.startswith("#") for line in lines):
        return {}
    try:
        root = read_document(document)
    except DocumentFault as fault:
        faults.append(Fault("document", fault.message, fault.line))
        return {}
    if root.value is None:
        return {}
    if not isinstance(root.value, dict):
        faults.append(_fault("document", root, "a feature set is an object of named expressions"))
        return {}
    return root.value


def _read_feature(name: str, node: Node, faults: list[Fault]) -> Feature | None:
    """Read one feature, adding what is wrong with it to the faults."""
    parts: dict[str, Node] = node.value if isinstance(node.value, dict) else {"value": node}
    before = len(faults)
    for member, said in parts.items():
        if member not in _MEMBERS:
            hint = alike(member, list(_MEMBERS)) or "a feature has value, family and text"
            faults.append(_fault(name, said, f"a feature has no {member[:40]}", hint))
    value = _text_of(parts.get("value"))
    if not value:
        faults.append(_fault(name, parts.get("value", node), "has no expression as its value", _HOW))
    family = _text_of(parts["family"]) if "family" in parts else _FAMILY
    if family not in FAMILIES:
        near = alike(family, list(FAMILIES))
        faults.append(_fault(name, parts["family"], f"its family is one of {', '.join(FAMILIES)}", near))
    text = _text_of(parts["text"]) if "text" in parts else name
    if not text or len(text) > _TEXT_CHARS_MAX:
        faults.append(_fault(name, parts["text"], f"its text has 1 to {_TEXT_CHARS_MAX} characters"))
    return None if len(faults) > before else Feature(name, value, family, text)


def _text_of(node: Node | None) -> str:
    """Return a scalar as text; empty for anything else."""
    said: Any = None if node is None else node.value
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return ""
    return str(said).strip()


def _fault(where: str, node: Node, message: str, hint: str | None = None) -> Fault:
    return Fault(where, message, node.line, node.column, hint)
