"""What the quality of rules is answered as."""

from typing import Any

import msgspec

from vettance.quality.quality_desk import SpanReport
from vettance.quality.rule_quality import RuleQuality
from vettance.quality.wilson import Share
from vettance.web.query import From, To
from vettance.wire.payload import Wire, timestamp

_DIGITS = 6


class QualityQuery(Wire, frozen=True):
    """A span of event time; the last 30 days when left out."""

    moment_from: From | None = msgspec.field(name="from", default=None)
    moment_to: To | None = msgspec.field(name="to", default=None)


class ShareAnswer(Wire, frozen=True):
    """A share from 0 to 1 with its 95 % interval (Wilson)."""

    value: float
    low: float
    high: float


class OverlapAnswer(Wire, frozen=True):
    """Another rule that fired on the same decisions; `share` is of the hits of this one."""

    rule_id: str
    hits: int
    share: float


class ShadowQuality(Wire, frozen=True):
    """Hits that were recorded and had no effect: of shadow rules, and outside a roll-out."""

    hits: int
    fraud: int
    legit: int
    precision: ShareAnswer | None


class TrendAnswer(Wire, frozen=True):
    """Hits in the span of the same length before, and by what factor they have changed."""

    hits_before: int
    change: float | None


class RuleQualityAnswer(Wire, frozen=True):
    """What one rule did in the span; a rule that is no longer in the rule set has the mode `gone`."""

    rule_id: str
    name: str
    mode: str
    hits: int
    share: float
    trend: TrendAnswer
    fraud: int
    legit: int
    precision: ShareAnswer | None
    recall: ShareAnswer | None
    alone: int
    alone_fraud: int
    alone_legit: int
    overlap: list[OverlapAnswer]
    held: int
    amounts: dict[str, float]
    last_hit_at: str | None
    shadow: ShadowQuality
    failures: int
    cost_us: float | None
    remarks: list[str]


class QualityAnswer(Wire, frozen=True):
    """What the rules of a tenant did in a span of event time.

    `from` and `to` are the whole hours, or days, that are counted. `complete` is false while decisions from
    before this was counted are still being counted.
    """

    moment_from: str = msgspec.field(name="from")
    moment_to: str = msgspec.field(name="to")
    complete: bool
    decisions: int
    held: int
    held_out: int
    fraud: int
    legit: int
    amounts: dict[str, float]
    rules: list[RuleQualityAnswer]


def quality_answer(report: SpanReport) -> QualityAnswer:
    """Write a report as the endpoint answers it."""
    quality = report.quality
    return QualityAnswer(
        **span_members(report),
        decisions=quality.decisions,
        held=quality.held,
        held_out=quality.held_out,
        fraud=quality.labelled.fraud,
        legit=quality.labelled.legit,
        amounts=dict(quality.amounts),
        rules=[_rule(one) for one in quality.rules],
    )


def _rule(one: RuleQuality) -> RuleQualityAnswer:
    return RuleQualityAnswer(
        **rule_members(one),
        fraud=one.labelled.fraud,
        legit=one.labelled.legit,
        precision=share_answer(one.labelled.precision),
        recall=share_answer(one.recall),
        alone_fraud=one.alone_labelled.fraud,
        alone_legit=one.alone_labelled.legit,
        held=one.held,
        amounts=dict(one.amounts),
        shadow=ShadowQuality(
            one.shadow_hits,
            one.shadow_labelled.fraud,
            one.shadow_labelled.legit,
            share_answer(one.shadow_labelled.precision),
        ),
    )


def span_members(report: SpanReport) -> dict[str, Any]:
    """Return the members that answers about rules of every kind begin with."""
    return {
        "moment_from": timestamp(report.from_ms),
        "moment_to": timestamp(report.to_ms),
        "complete": report.complete,
    }


def rule_members(one: RuleQuality) -> dict[str, Any]:
    """Return the members that answers about one rule of every kind have."""
    change = round(one.hits / one.hits_before, _DIGITS) if one.hits_before else None
    return {
        "rule_id": one.rule,
        "name": one.name,
        "mode": one.mode,
        "hits": one.hits,
        "share": round(one.share, _DIGITS),
        "trend": TrendAnswer(one.hits_before, change),
        "alone": one.alone,
        "overlap": [
            OverlapAnswer(other.rule, other.hits, round(other.share, _DIGITS)) for other in one.overlaps
        ],
        "last_hit_at": None if one.last_hit_ms is None else timestamp(one.last_hit_ms),
        "failures": one.failures,
        "cost_us": None if one.cost_us is None else round(one.cost_us, 2),
        "remarks": list(one.remarks),
    }


def share_answer(share: Share | None) -> ShareAnswer | None:
    """Write a share with its interval."""
    return None if share is None else ShareAnswer(*(round(part, _DIGITS) for part in share))
