"""What the doors answer about a decision: one value inside, two vocabularies outside."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from vettance.decisions.decision import LOWERCASE, Action, Decision, Reason
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.sql import StoredDecision
from vettance.events.event import Category
from vettance.feedback.answers import FeedbackAnswer
from vettance.feedback.answers import answer as feedback_answer
from vettance.feedback.label import Feedback
from vettance.models.model_score import Contribution, ModelResult
from vettance.wire.payload import JSON, Wire, decode, timestamp


class CorrelationIds(Wire, frozen=True, omit_defaults=True):
    """Ids to find everything about this decision again."""

    request_id: str
    event_id: str
    customer_id: str | None = None
    device_fingerprint: str | None = None


class RuleVersion(Wire, frozen=True):
    """Which version of the rule set decided."""

    version: str


Score = Annotated[int, msgspec.Meta(ge=0, le=100)]


_DEGRADED = (
    "There and true while the memory of past events is being rebuilt: what the decision knew of the past may "
    "be incomplete."
)
Degraded = Annotated[bool, msgspec.Meta(description=_DEGRADED)] | msgspec.UnsetType


_INEXACT = (
    "There when some of the features that look at the past may be off, with their names: the event is older "
    "than what the memory still holds of its windows, or a window holds too many events to count one by one."
)
Inexact = Annotated[list[str], msgspec.Meta(description=_INEXACT)] | msgspec.UnsetType


class DecisionAnswer(Wire, frozen=True):
    """The answer of `POST /decisions/evaluate`."""

    decision: Annotated[str, msgspec.Meta(description="`approve`, `review` or `deny`.")]
    risk_score: Score
    risk_level: Annotated[str, msgspec.Meta(description="`low`, `medium`, `high` or `critical`.")]
    reason_codes: tuple[Reason, ...]
    correlation_ids: CorrelationIds
    rule_version: RuleVersion
    recommended_actions: tuple[Action, ...]
    evaluated_at: str
    degraded: Degraded = msgspec.UNSET


class EventAnswer(Wire, frozen=True):
    """The answer of `POST /events`."""

    event_id: str
    decision: Annotated[str, msgspec.Meta(description="`ALLOW`, `REVIEW` or `BLOCK`.")]
    score: Score
    event_category: str
    rules_evaluated: int
    received_at: str
    processing_time_ms: float
    degraded: Degraded = msgspec.UNSET


def decision_answer(evaluated: EvaluatedEvent, request_id: str) -> DecisionAnswer:
    """Answer an evaluation in the vocabulary of the decisions endpoints."""
    decision, event = evaluated.decision, evaluated.event
    return DecisionAnswer(
        decision=LOWERCASE[decision.outcome],
        risk_score=decision.score,
        risk_level=decision.level,
        reason_codes=decision.reasons,
        correlation_ids=CorrelationIds(
            request_id=request_id,
            event_id=evaluated.id,
            customer_id=event.customer_id,
            device_fingerprint=event.fingerprint,
        ),
        rule_version=RuleVersion(version=str(decision.ruleset_version)),
        recommended_actions=decision.actions,
        evaluated_at=timestamp(evaluated.evaluated_at_ms),
        degraded=evaluated.degraded or msgspec.UNSET,
    )


def event_answer(evaluated: EvaluatedEvent) -> EventAnswer:
    """Answer an ingested event in the vocabulary of the events endpoints."""
    event = evaluated.event
    return EventAnswer(
        event_id=evaluated.id,
        decision=evaluated.decision.outcome.value,
        score=evaluated.decision.score,
        event_category=event.category.value,
        rules_evaluated=evaluated.decision.rules_evaluated,
        received_at=timestamp(event.received_at_ms),
        processing_time_ms=evaluated.processing_ms,
        degraded=evaluated.degraded or msgspec.UNSET,
    )


class RuleResult(Wire, frozen=True, omit_defaults=True):
    """What one rule said of an event. `error` is there when the rule failed and was skipped.

    `withheld` is there when it would have acted and did not: `rollout`, for a customer outside of its share;
    `dates`, before or after its time; `snoozed`, for an entity it is snoozed for.
    """

    rule_id: str
    rule_name: str
    matched: bool
    score: int
    mode: str
    error: str | None = None
    withheld: str | None = None


class UnknownValue(Wire, frozen=True):
    """A field, or what a rule counts by, that could not be computed of an event: it counted as missing."""

    name: str
    error: str


class ListMatch(Wire, frozen=True):
    """A list entry that the event matched."""

    id: str
    list_type: str
    type: str


class ListAddition(Wire, frozen=True):
    """What a rule put on a list. `result` is `added`, `extended`, or why not: `present`, for an entry that is
    there already; `absent`, for an event without such a value; `full`, for lists that take no more; `over`,
    for one that would have ended before the decision; `contended`, where others changed it each time that it
    was tried. `id` is the entry, where there is one.
    """

    rule_id: str
    list_type: str
    type: str
    result: str
    id: str | None


class ChangedValue(Wire, frozen=True):
    """One value as it would have had to be. `relation` is `<=`, `<`, `>=`, `>`, `==`, `!=`, `in`, `not in`,
    `missing` or `present`; `value` is what it is compared with, null for the last two."""

    name: str
    was: Any
    relation: str
    value: Any


class CounterfactualAnswer(Wire, frozen=True):
    """Another answer, and the smallest set of changes that would have led to it, verified by the rules.

    `withoutList` names the list (`BLOCK` or `ALLOW`) whose entries would have had to be gone as well.
    """

    decision: str
    risk_score: Score
    changes: list[ChangedValue]
    without_list: str | None
    text: str


class LinkedEntity(Wire, frozen=True, omit_defaults=True):
    """An entity of the event, and how many events, customers and devices were seen with it so far."""

    id: str
    events: int = 0
    customers: int | None = None
    devices: int | None = None
    first_seen_at: str | None = None
    last_seen_at: str | None = None


class LinkedEntities(Wire, frozen=True, omit_defaults=True):
    """What ties the event to others."""

    customer: LinkedEntity | None = None
    device: LinkedEntity | None = None
    ip: LinkedEntity | None = None
    email: LinkedEntity | None = None
    session: LinkedEntity | None = None


class ModelContribution(Wire, frozen=True):
    """What one feature of an event added to the log-odds of fraud."""

    feature: str
    value: float | None
    effect: float
    text: str


class ModelOutput(Wire, frozen=True, omit_defaults=True):
    """What the tenant's model said. `base` and all effects add up to the log-odds of `probability`.

    `error` is there when it said nothing. Contributions are gone once the model is.
    """

    version: int
    mode: str
    probability: float | None
    score: int | None
    base: float | None = None
    contributions: list[ModelContribution] | None = None
    error: str | None = None


def model_output(
    result: ModelResult | None, found: Sequence[Contribution] | None = None, base: float | None = None
) -> ModelOutput | None:
    """Write what a model said of an event; None where there was none."""
    if result is None:
        return None
    contributions = None if found is None else [ModelContribution(*one) for one in found]
    return ModelOutput(
        version=result.version,
        mode=result.mode,
        probability=result.probability,
        score=result.score,
        base=base,
        contributions=contributions,
        error=result.error,
    )


class Outputs(Wire, frozen=True):
    """The decision with everything that led to it. `model` is null for a tenant without a model.

    `heldOut` is there when a hold-out let the event through; `withoutHoldOut` is the answer without it.
    `listAdditions` is there when a rule that puts values on lists acted.
    """

    decision: str
    risk_score: int
    risk_level: str
    reason_codes: tuple[Reason, ...]
    recommended_actions: tuple[Action, ...]
    rule_version: RuleVersion
    rules: list[RuleResult]
    lists: list[ListMatch]
    counterfactuals: list[CounterfactualAnswer]
    model: ModelOutput | None = None
    unknown: list[UnknownValue] | msgspec.UnsetType = msgspec.UNSET
    inexact: Inexact = msgspec.UNSET
    degraded: Degraded = msgspec.UNSET
    held_out: bool | msgspec.UnsetType = msgspec.UNSET
    without_hold_out: str | msgspec.UnsetType = msgspec.UNSET
    list_additions: list[ListAddition] | msgspec.UnsetType = msgspec.UNSET


class DecisionRecord(Wire, frozen=True):
    """The answer of `GET /decisions/{id}`.

    `inputs` holds the members of the event as sent, the whole event once more under `event`, and under
    `features` every value that rules saw. `sessionSignals` is there when browser signals were queued before.
    """

    id: str
    inputs: dict[str, Any]
    outputs: Outputs
    linked_entities: LinkedEntities
    feedback: list[FeedbackAnswer]
    evaluated_at: str


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def as_sent(sent: JSON) -> JSON:
    """Return an event as it was sent, without the members that the service ignores."""
    return {key: value for key, value in sent.items() if key != "tenantId"}


def read_sent(sent: bytes) -> JSON:
    """Return the members of an event as it was sent, each as it was written; none where they are damaged."""
    try:
        return _members(sent)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def event_record(stored: StoredDecision, decision: Decision, feedback: Sequence[Feedback]) -> JSON:
    """Write an event as `GET /events/{id}` and the list of events answer it."""
    # Each member stays as it was written: an event may be large, and nothing looks into it here.
    sent = as_sent(read_sent(stored.sent))
    category = sent.get("eventCategory")
    return {
        **sent,
        "eventCategory": (category is not None and decode(category)) or Category.OTHER,
        "id": stored.id,
        "source": stored.source,
        "decision": decision.outcome.value,
        "score": decision.score,
        "riskLevel": decision.level,
        "reasonCodes": decision.reasons,
        "ruleVersion": RuleVersion(version=str(decision.ruleset_version)),
        "receivedAt": timestamp(stored.received_at_ms),
        "processingTimeMs": stored.record.processing_ms,
        "feedback": [feedback_answer(one) for one in feedback],
        "outputs": {"model": model_output(stored.record.model)},
    }
