"""What would have changed a decision, and what computing it again gives."""

from typing import Any, Final, NamedTuple

from vettance.console.decision_rules import value_shown
from vettance.console.page import Visit
from vettance.console.value_words import value_in_words
from vettance.decisions.counterfactual import change_words, list_words
from vettance.lists.entry import ListType


class OtherAnswer(NamedTuple):
    """Another answer, and the conditions under which it would have been given, in words."""

    decision: str
    score: int
    conditions: tuple[str, ...]


class DifferenceShown(NamedTuple):
    """A part of a decision that comes out otherwise when it is computed again."""

    name: str
    recorded: str
    computed: str


class RecomputedShown(NamedTuple):
    """What computing a decision again gave."""

    is_identical: bool
    unreadable: str | None
    differences: tuple[DifferenceShown, ...]


#: Parts of a decision that are no values of the event.
_OPEN: Final = ("rules that fired", "rules that failed", "decision", "score", "level")


def other_answers(visit: Visit, record: dict[str, Any]) -> list[OtherAnswer]:
    """Return the counterfactuals of a decision, in words."""
    shown: list[OtherAnswer] = []
    for one in record["outputs"]["counterfactuals"]:
        words = [] if one["withoutList"] is None else [list_words(ListType(one["withoutList"]))]
        for change in one["changes"]:
            name = change["name"]
            bound = value_shown(visit, name, change["value"])
            was = value_shown(visit, name, change["was"]) if change["was"] is not None else "unknown"
            words.append(change_words(value_in_words(name) or name, change["relation"], was, bound))
        shown.append(OtherAnswer(one["decision"], one["riskScore"], tuple(words)))
    return shown


async def recomputed(visit: Visit) -> RecomputedShown:
    """Compute the decision of a page again."""
    found = await visit.parts.explainer.recompute(visit.tenant.id, visit.path["id"])
    return RecomputedShown(
        found.is_identical,
        found.unreadable,
        tuple(
            DifferenceShown(one.name, *(_part(visit, one.name, value) for value in one[1:]))
            for one in found.differences
        ),
    )


def _part(visit: Visit, name: str, value: Any) -> str:
    return visit.show.value(value) if name in _OPEN else value_shown(visit, name, value)
