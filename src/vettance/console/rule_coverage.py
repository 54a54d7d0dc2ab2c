"""What the newest AML events leave out, for the page of the AML rules."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.console.page import Visit
from vettance.console.rule_figures import SpanFigures
from vettance.console.rule_place import RulePlace
from vettance.console.words import Words

#: Members in fewer of the events than this share are somebody's slip, or meant for nobody.
_UNKNOWN_MIN: Final = 0.05
_PARTS: Final = {
    "amount": Words("an amount"),
    "currency": Words("a currency"),
    "counterparty": Words("a counterparty"),
    "counterpartyCountry": Words("the country of the counterparty"),
}


class ShownCoverage(NamedTuple):
    """What is worth a line: parts that transactions lack (with the share), amounts, members, and rules.

    `silent` are the rules that none of the events can make fire and that did not fire in 30 days.
    """

    events: int
    lacking: Sequence[tuple[Words, float]]
    unreadable: Sequence[Mapping[str, Any]]
    unread: Sequence[Mapping[str, Any]]
    silent: Sequence[Mapping[str, Any]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is worth a line."""
        return not (self.lacking or self.unreadable or self.unread or self.silent)


async def coverage_of(visit: Visit, place: RulePlace) -> Mapping[str, Any] | None:
    """Return what the endpoint says of the newest AML events; nothing for rules that decide."""
    if place.is_fraud:
        return None
    found: Mapping[str, Any] = await visit.ask("GET", "/api/v1/aml/coverage")
    return found


def shown_coverage(found: Mapping[str, Any] | None, figures: SpanFigures) -> ShownCoverage | None:
    """Return what of it is shown; nothing where there is nothing to say."""
    if found is None or not found["events"]:
        return None
    shown = ShownCoverage(
        found["events"],
        [(_PARTS[part], share) for part, share in found["without"].items() if share and part in _PARTS],
        found["unreadableAmounts"],
        [one for one in found["unknownMembers"] if one["events"] >= _UNKNOWN_MIN * found["events"]],
        [one for one in found["silentRules"] if not _fired(figures, one["ruleId"])],
    )
    return None if shown.is_empty else shown


def _fired(figures: SpanFigures, rule_id: str) -> bool:
    rule = figures.rules.get(rule_id)
    return rule is not None and rule.days.total > 0
