"""Makes a draft of a suggestion: the document in force with the members of rules added or changed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from vettance.wire.payload import JSON

#: Every suggestion of a result together.
EVERYTHING: Final = -1


def changes_of(result: JSON, number: int) -> list[JSON]:
    """Return the members of rules that a suggestion changes: that of a place in the result, or all.

    Raises `LookupError` where the result has no such suggestion.
    """
    match result["kind"]:
        case "rules":
            found = [one["rule"] for one in result["suggestions"]]
        case "threshold":
            found = [
                {"id": result["ruleId"], "when": one["suggested"]["when"]} if one["suggested"] else None
                for one in result["comparisons"]
            ]
        case _:
            changed = [one for one in result["rules"] if one["score"] != one["suggested"]]
            return _some([{"id": one["ruleId"], "score": one["suggested"]} for one in changed])
    return _some(found if number == EVERYTHING else found[number : number + 1])


def _some(changes: Sequence[JSON | None]) -> list[JSON]:
    found = [one for one in changes if one is not None]
    if not found:
        raise LookupError("there is no such suggestion")
    return found


def with_changes(document: str, changes: Sequence[Mapping[str, Any]]) -> str:
    """Return a document in which rules have other members, or which has further rules."""
    members = yaml.safe_load(document) or {}
    rules = members.get("rules") or []
    known = {rule.get("id"): rule for rule in rules}
    for change in changes:
        if change["id"] in known:
            known[change["id"]].update(change)
        else:
            rules.append(dict(change))
    members["rules"] = rules
    return yaml.safe_dump(members, sort_keys=False, allow_unicode=True, width=108)
