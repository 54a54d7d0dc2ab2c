"""What the quality of AML rules is answered as."""

from typing import Final

import msgspec

from vettance.quality.answers import (
    OverlapAnswer,
    ShareAnswer,
    TrendAnswer,
    rule_members,
    share_answer,
    span_members,
)
from vettance.quality.quality_desk import SpanReport
from vettance.quality.quality_kind import QualityKind
from vettance.quality.rule_quality import LabelledHits, RuleQuality
from vettance.wire.payload import Wire


class AlertsAnswer(Wire, frozen=True):
    """Alerts that were raised in the span, and what the cases of those that are closed turned out to be."""

    raised: int
    true_matches: int
    false_positives: int


class AmlShadowQuality(Wire, frozen=True):
    """Hits that were recorded and had no effect: of shadow rules, and outside a roll-out."""

    hits: int


class AmlRuleQualityAnswer(Wire, frozen=True):
    """What one rule did in the span; a rule that is no longer in the rule set has the mode `gone`.

    `alerts` are those it raised, `joined` those that another rule raised when it fired with it. `precision`
    is the share of true matches among the resolved ones that it raised. `alerted` counts the hits on events
    that are behind an alert.
    """

    rule_id: str
    name: str
    mode: str
    hits: int
    share: float
    trend: TrendAnswer
    alerted: int
    alerts: AlertsAnswer
    joined: AlertsAnswer
    precision: ShareAnswer | None
    alone: int
    overlap: list[OverlapAnswer]
    last_hit_at: str | None
    shadow: AmlShadowQuality
    failures: int
    cost_us: float | None
    remarks: list[str]


class AmlQualityAnswer(Wire, frozen=True):
    """What the AML rules of a tenant did in a span: events by their own time, alerts by when they came up.

    `from` and `to` are the whole hours, or days, that are counted. `complete` is false while events from
    before this was counted are still being counted.
    """

    moment_from: str = msgspec.field(name="from")
    moment_to: str = msgspec.field(name="to")
    complete: bool
    events: int
    alerted: int
    alerts: AlertsAnswer
    rules: list[AmlRuleQualityAnswer]


def aml_quality_answer(report: SpanReport) -> AmlQualityAnswer:
    """Write a report as the endpoint answers it."""
    quality = report.quality
    return AmlQualityAnswer(
        **span_members(report),
        events=quality.decisions,
        alerted=quality.held,
        alerts=_alerts(quality.alerts, quality.alerts_labelled),
        rules=[_rule(one) for one in quality.rules],
    )


def _rule(one: RuleQuality) -> AmlRuleQualityAnswer:
    return AmlRuleQualityAnswer(
        **rule_members(one),
        alerted=one.held,
        alerts=_alerts(one.alerts, one.alerts_labelled),
        joined=_alerts(one.joined, one.joined_labelled),
        precision=share_answer(one.alerts_labelled.precision),
        shadow=AmlShadowQuality(one.shadow_hits),
    )


def _alerts(raised: int, labelled: LabelledHits) -> AlertsAnswer:
    return AlertsAnswer(raised, labelled.fraud, labelled.legit)


AML_QUALITY: Final = QualityKind(
    "/api/v1/aml/rules/quality",
    "What each AML rule is worth",
    "AML rule sets",
    "aml",
    AmlQualityAnswer,
    aml_quality_answer,
)
