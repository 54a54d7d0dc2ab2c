"""What subscribers receive about a decision: the `data` of `EVENT_RISK_EVALUATED`."""

from collections.abc import Sequence
from typing import Final

from vettance.decisions.decision import ALLOWLIST_MATCH, BLOCKLIST_MATCH, LOWERCASE, Decision
from vettance.events.event import Event
from vettance.rules.ruleset import Rule, RuleSet
from vettance.wire.payload import Wire, encode, timestamp

#: A list acts as a rule that overrides all others, so receivers find an id and a name for it, too.
_LISTS: Final = {BLOCKLIST_MATCH: ("blocklist", "Block list"), ALLOWLIST_MATCH: ("allowlist", "Allow list")}


class PayloadReason(Wire, frozen=True, omit_defaults=True, gc=False):
    """Why. The rule is the strongest one that gave this reason, or the list that did."""

    code: str
    explanation: str
    rule_id: str | None = None
    rule_name: str | None = None


class PayloadIds(Wire, frozen=True, omit_defaults=True, gc=False):
    """Ids to find everything about the decision again."""

    request_id: str
    event_id: str
    customer_id: str | None = None


class DecisionPayload(Wire, frozen=True, gc=False):
    """The `data` member."""

    id: str
    decision: str
    risk_score: int
    risk_level: str
    reason_codes: list[PayloadReason]
    correlation_ids: PayloadIds
    evaluated_at: str


def decision_payload(
    event_id: str,
    event: Event,
    decision: Decision,
    ruleset: RuleSet,
    fired: Sequence[int],
    request_id: str,
    now_ms: int,
) -> bytes:
    """Write the `data` as JSON. `fired` indexes the running rules, `now_ms` is when it was decided."""
    rules: dict[str, Rule] = {}
    for rule in (ruleset.running[index] for index in fired):
        if rule.mode == "active" and (rule.reason not in rules or rule.score > rules[rule.reason].score):
            rules[rule.reason] = rule
    givers = _LISTS | {reason: (rule.id, rule.name) for reason, rule in rules.items()}
    reasons = []
    for reason in decision.reasons:
        rule_id, rule_name = givers.get(reason.code, (None, None))
        reasons.append(
            PayloadReason(
                code=reason.code, explanation=reason.explanation, rule_id=rule_id, rule_name=rule_name
            )
        )
    return encode(
        DecisionPayload(
            id=event_id,
            decision=LOWERCASE[decision.outcome],
            risk_score=decision.score,
            risk_level=decision.level,
            reason_codes=reasons,
            correlation_ids=PayloadIds(
                request_id=request_id, event_id=event_id, customer_id=event.customer_id
            ),
            evaluated_at=timestamp(now_ms),
        )
    )
