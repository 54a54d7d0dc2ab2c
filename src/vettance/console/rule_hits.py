"""The newest hits of a rule, with what became of them: decisions of fraud rules, alerts of AML rules."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.console.aml_cases_page import alert_shown
from vettance.console.decisions_page import decision_row
from vettance.console.page import QUEUE_READERS, Visit
from vettance.console.review_forms import blind_reviews
from vettance.console.rule_place import RulePlace
from vettance.db.engine import Row
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.sql import record_of
from vettance.errors import Refusal
from vettance.history.answers import decision_item
from vettance.quality.sql import select_newest_records
from vettance.rules.rule import Rule
from vettance.wire.payload import decode, encode

SHOWN: Final = 10
#: The newest decisions that are looked through, whatever the rule; what fires less often is searched for.
LOOKED: Final = 500
#: Decisions with the reason of the rule that a search brings: other rules may give the same one.
_SOUGHT: Final = 50


class RuleHit(NamedTuple):
    """A decision on which a rule fired, as tables show it; `labels` are what people said of it."""

    row: dict[str, Any]
    labels: Sequence[str]
    acted: bool


class _RulesOfVersions:
    """Tells on which decisions a rule fired, by the rules of their versions, each found once for a page."""

    def __init__(self, visit: Visit, rule_id: str) -> None:
        self._visit = visit
        self._rule_id = rule_id
        self._known: dict[int, tuple[int | None, bool]] = {}

    async def fired(self, record: DecisionRecordData, *, acting: bool = False) -> bool:
        """Tell whether the rule fired in a decision, or whether it acted."""
        if not record.fired:
            return False
        place, is_active = await self._place(record.ruleset_version)
        return place in (record.acting if acting else record.fired) and (is_active or not acting)

    async def _place(self, version: int) -> tuple[int | None, bool]:
        """Return the place of the rule among those of a version, and whether it is active there."""
        if version not in self._known:
            self._known[version] = None, False
            try:
                active = await self._visit.parts.explainer.rules_of(self._visit.tenant.id, version)
            except (LookupError, Refusal):
                return self._known[version]  # Its rules are gone, or cannot be read any more.
            for place, rule in enumerate(active.ruleset.running):
                if rule.id == self._rule_id:
                    self._known[version] = place, rule.mode == "active"
        return self._known[version]


async def newest_hits(visit: Visit, rule: Rule) -> list[RuleHit]:
    """Return the newest decisions on which a fraud rule fired.

    Those of the newest decisions are looked for in their records. Of a rule that fires less often, the search
    of decisions finds those with its reason: a decision has it only where the rule acted. Records that cannot
    be read are passed over.
    """
    tenant, explainer, versions = visit.tenant.id, visit.parts.explainer, _RulesOfVersions(visit, rule.id)
    rows = await visit.parts.store.read(select_newest_records(tenant, LOOKED))
    read = await asyncio.to_thread(_records, rows)
    found = [event for event, record in read if await versions.fired(record)]
    ids = found[:SHOWN]
    if len(ids) < SHOWN and rule.mode == "active":
        sought = await visit.ask("GET", "/api/v1/decisions", {"reasonCode": rule.reason, "limit": _SOUGHT})
        ids += [one["id"] for one in sought["data"] if one["id"] not in found]
    listed = await explainer.find_by_ids(tenant, ids)
    kept = [pair for pair in listed if await versions.fired(pair[0].stored.record)]
    kept = sorted(kept, key=lambda pair: -pair[0].seq)[:SHOWN]
    labels: dict[str, list[str]] = {}
    chosen = [one.stored.id for one, _ in kept]
    hidden = await blind_reviews(visit, chosen)
    for said in await explainer.feedback(tenant, [one for one in chosen if one not in hidden]):
        labels.setdefault(said.target, []).append(said.label.value)
    return [
        RuleHit(
            decision_row(visit, decode(encode(decision_item(one, decision)))),
            labels.get(one.stored.id, ()),
            await versions.fired(one.stored.record, acting=True),
        )
        for one, decision in kept
    ]


def _records(rows: Sequence[Row]) -> list[tuple[str, DecisionRecordData]]:
    found = []
    for event, stored in rows:
        try:
            found.append((event, record_of(stored)))
        except ValueError:
            continue  # It is damaged; others can be shown.
    return found


async def newest_alerts(visit: Visit, place: RulePlace, rule: Rule) -> list[dict[str, Any]] | None:
    """Return the newest alerts that an AML rule raised; None for those who may not see alerts."""
    if place.is_fraud or not visit.may(*QUEUE_READERS):
        return None
    found = await visit.ask("GET", "/api/v1/aml/alerts", {"ruleId": rule.id, "limit": SHOWN})
    return [alert_shown(one) for one in found["data"]]
