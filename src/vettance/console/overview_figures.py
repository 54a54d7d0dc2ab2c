"""What the overview says of speed and of rules: decisions a second, how long they took, what changed most."""

from typing import Any, Final, NamedTuple

import msgspec

from vettance.console.page import Visit, url_of
from vettance.console.rule_place import FRAUD, RULE_READERS
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.sql import listed_decision_of, select_listed_decisions, select_places
from vettance.history.rollup import SpanCounts
from vettance.models.serving_model import ModelMode
from vettance.models.sql import select_in_service
from vettance.rules.sql import DECIDING

_MINUTE_S: Final = 60
#: So many of the newest decisions say how long deciding takes.
_TIMED: Final = 100
_SHOWN: Final = 5
#: A share that moved less is noise of the last digit.
_POINTS_MIN: Final = 0.0005


class DecisionPace(NamedTuple):
    """How fast decisions come and are made; `version` is that of the rules of the newest one."""

    per_second: float
    p50_ms: float | None
    p99_ms: float | None
    timed: int
    version: int | None


class ModelInForce(NamedTuple):
    """The model that is in service; its page is empty for those who may not see it."""

    version: int
    is_active: bool
    url: str


class ReasonChange(NamedTuple):
    """A reason whose share of all decisions changed, with the rules that give it: (name, page) of each.

    The page is empty for those who may not see it.
    """

    code: str
    rules: tuple[tuple[str, str], ...]
    decisions: int
    before: int
    change: str
    url: str


async def pace(visit: Visit, in_last_minute: int) -> DecisionPace:
    """Return the speed of the last minute, and of the newest decisions."""
    records = await _newest_records(visit)
    took = sorted(one.processing_ms for one in records if one.ruleset_version >= 0)
    return DecisionPace(
        per_second=in_last_minute / _MINUTE_S,
        p50_ms=_at(took, 0.5),
        p99_ms=_at(took, 0.99),
        timed=len(took),
        version=records[0].ruleset_version if records else None,
    )


async def model_in_force(visit: Visit) -> ModelInForce | None:
    """Return the model in service; None where there is none, or models are off."""
    for mode, champion in await visit.parts.store.read(select_in_service(visit.tenant.id)):
        if champion is not None and mode != ModelMode.OFF:
            url = url_of(f"/console/models/{champion}") if visit.may(*RULE_READERS) else ""
            return ModelInForce(champion, mode == ModelMode.ACTIVE, url)
    return None


async def rules_in_force(visit: Visit) -> int | None:
    """Return the version of the rules in force; None while they are those of the release."""
    rows = await visit.parts.store.read(DECIDING.select_active_number(visit.tenant.id))
    return rows[0][0] if rows else None


async def _newest_records(visit: Visit) -> list[DecisionRecordData]:
    """Return what was recorded of the newest decisions, the newest first."""
    listed = await visit.ask("GET", "/api/v1/decisions", {"limit": _TIMED})
    ids, store, tenant = [one["id"] for one in listed["data"]], visit.parts.store, visit.tenant.id
    if not ids:
        return []
    seqs = [seq for _, seq in await store.read(select_places(tenant, ids))]
    rows = await store.read(select_listed_decisions(tenant, seqs, bodies=False))
    return [one.stored.record for one in sorted(map(listed_decision_of, rows), key=lambda one: -one.seq)]


async def changed_rules(
    visit: Visit, now: SpanCounts, then: SpanCounts, version: int | None
) -> list[ReasonChange]:
    """Return the reasons whose share of the decisions changed most since the span before."""
    if not now.totals.evaluated or not then.totals.evaluated:
        return []
    shares = {
        code: (
            now.codes.get(code, 0) / now.totals.evaluated,
            then.codes.get(code, 0) / then.totals.evaluated,
        )
        for code in now.codes.keys() | then.codes.keys()
    }
    moved = sorted(shares, key=lambda code: (-abs(shares[code][0] - shares[code][1]), code))
    names = await _rule_names(visit, version)
    return [
        ReasonChange(
            code=code,
            rules=names.get(code, ()),
            decisions=now.codes.get(code, 0),
            before=then.codes.get(code, 0),
            change=visit.show.change(*shares[code]),
            url=url_of("/console/decisions", reasonCode=code),
        )
        for code in moved[:_SHOWN]
        if abs(shares[code][0] - shares[code][1]) >= _POINTS_MIN
    ]


async def _rule_names(visit: Visit, version: int | None) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the names and pages of the rules that give each reason."""
    try:
        active = (
            await visit.parts.explainer.rules_of(visit.tenant.id, version) if version is not None else None
        )
    except (LookupError, msgspec.MsgspecError):
        return {}
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    may_read = visit.may(*RULE_READERS)
    rules: Any = active.ruleset.running if active is not None else ()
    for rule in rules:
        shown = rule.name, FRAUD.url_of(rule.id) if may_read else ""
        found[rule.reason] = (*found.get(rule.reason, ()), shown)
    return found


def _at(ordered: list[float], share: float) -> float | None:
    """Return the value of a sorted list below which a share of it lies; None of an empty one."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
