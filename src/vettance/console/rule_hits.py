"""The newest hits of a rule, with what became of them: decisions of fraud rules, alerts of AML rules."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.console.decisions_page import decision_row
from vettance.console.page import QUEUE_READERS, Visit
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


async def newest_hits(visit: Visit, rule: Rule) -> list[RuleHit]:
    """Return the newest decisions on which a fraud rule fired.

    Those of the newest decisions are looked for in their records. Of a rule that fires less often, the search
    of decisions finds those with its reason: a decision has it only where the rule acted. Records that cannot
    be read are passed over.
    """
    tenant, explainer = visit.tenant.id, visit.parts.explainer
    rows = await visit.parts.store.read(select_newest_records(tenant, LOOKED))
    read = await asyncio.to_thread(_records, rows)
    found = [event for event, record in read if await _has(visit, record, rule)]
    ids = found[:SHOWN]
    if len(ids) < SHOWN and rule.mode == "active":
        sought = await visit.ask("GET", "/api/v1/decisions", {"search": rule.reason, "limit": _SOUGHT})
        ids += [one["id"] for one in sought["data"] if one["id"] not in found]
    listed = await explainer.find_by_ids(tenant, ids)
    kept = [pair for pair in listed if await _has(visit, pair[0].stored.record, rule)]
    kept.sort(key=lambda pair: -pair[0].seq)
    kept = kept[:SHOWN]
    labels: dict[str, list[str]] = {}
    for one in await explainer.feedback(tenant, [listed.stored.id for listed, _ in kept]):
        labels.setdefault(one.target, []).append(one.label.value)
    hits = []
    for one, decision in kept:
        item = decode(encode(decision_item(one, decision)))
        acted = await _has(visit, one.stored.record, rule, acting=True)
        hits.append(RuleHit(decision_row(visit, item), labels.get(one.stored.id, ()), acted))
    return hits


def _records(rows: Sequence[Row]) -> list[tuple[str, DecisionRecordData]]:
    found = []
    for event, stored in rows:
        try:
            found.append((event, record_of(stored)))
        except ValueError:
            continue  # It is damaged; others can be shown.
    return found


async def _has(visit: Visit, record: DecisionRecordData, rule: Rule, *, acting: bool = False) -> bool:
    """Tell whether a rule fired in a decision, by the rules of its version."""
    if not record.fired:
        return False
    try:
        active = await visit.parts.explainer.rules_of(visit.tenant.id, record.ruleset_version)
    except (LookupError, Refusal):
        return False  # Its rules are gone, or cannot be read any more.
    running = active.ruleset.running
    places = record.acting if acting else record.fired
    return any(
        running[place].id == rule.id and (not acting or running[place].mode == "active")
        for place in places
        if place < len(running)
    )


async def newest_alerts(visit: Visit, place: RulePlace, rule: Rule) -> list[dict[str, Any]] | None:
    """Return the newest alerts that an AML rule raised; None for those who may not see alerts."""
    if place.is_fraud or not visit.may(*QUEUE_READERS):
        return None
    found = await visit.ask("GET", "/api/v1/aml/alerts", {"ruleId": rule.id, "limit": SHOWN})
    alerts: list[dict[str, Any]] = found["data"]
    return alerts
