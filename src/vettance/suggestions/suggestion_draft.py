"""What a suggestion changes: the members of the rules that its draft adds or replaces."""

from collections.abc import Sequence
from typing import Final

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
        case "calibration":
            raise LookupError("a calibration has a draft of its own")
        case _:
            changed = [one for one in result["rules"] if one["score"] != one["suggested"]]
            return _some([{"id": one["ruleId"], "score": one["suggested"]} for one in changed])
    return _some(found if number == EVERYTHING else found[number : number + 1])


def _some(changes: Sequence[JSON | None]) -> list[JSON]:
    found = [one for one in changes if one is not None]
    if not found:
        raise LookupError("there is no such suggestion")
    return found
