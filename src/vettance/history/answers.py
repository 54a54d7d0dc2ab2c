"""What the lists and statistics of decisions and events take and answer."""

import base64
import binascii
import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec

from vettance.decisions.answers import CorrelationIds, DecisionRecord, RuleVersion, Score
from vettance.decisions.coverage import Coverage
from vettance.decisions.decision import LOWERCASE, Action, Decision, Reason
from vettance.decisions.searchable_fields import SEARCHABLE_FIELDS
from vettance.decisions.sql import ListedDecision
from vettance.errors import Invalid
from vettance.history.decision_search import PageEnd
from vettance.history.result_page import Order
from vettance.history.rollup import Count, SpanCounts
from vettance.history.search_criteria import DECISION_FILTERS, EVENT_FILTERS, FilterParameter
from vettance.history.statistics import Uniques
from vettance.reviews.answers import ReviewAnswer
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import From, To
from vettance.wire.payload import Wire, timestamp

REASONS_SHOWN: Final = 10
_RATE_DIGITS: Final = 6


class DecisionSort(enum.StrEnum):
    """What decisions are sorted by."""

    EVALUATED_AT = "evaluatedAt"
    RISK_SCORE = "riskScore"
    DECISION = "decision"


class EventSort(enum.StrEnum):
    """What events are sorted by; `createdAt` and `evaluatedAt` are the order in which they were decided."""

    CREATED_AT = "createdAt"
    EVALUATED_AT = "evaluatedAt"
    RECEIVED_AT = "receivedAt"
    SCORE = "score"
    RISK_SCORE = "riskScore"
    DECISION = "decision"


ORDERS: Final = {
    "createdAt": Order.EVALUATED,
    "evaluatedAt": Order.EVALUATED,
    "receivedAt": Order.RECEIVED,
    "score": Order.SCORE,
    "riskScore": Order.SCORE,
    "decision": Order.OUTCOME,
}


_Declared = TypeVar("_Declared", bound=msgspec.Struct)


def _with_fields(
    fields: Iterable[tuple[Any, ...]],
) -> Callable[[type[_Declared]], type[_Declared]]:
    """Add fields that a table names to a struct, behind those that it declares itself."""

    def add(declared: type[_Declared]) -> type[_Declared]:
        names = {"__doc__": declared.__doc__}
        added: Any = msgspec.defstruct(
            declared.__name__,
            fields,
            bases=(declared,),
            module=declared.__module__,
            namespace=names,
            frozen=True,
        )
        return cast(type[_Declared], added)

    return add


def _parameters(filters: Sequence[FilterParameter]) -> Iterator[tuple[Any, ...]]:
    return ((one.name, one.type | None, None) for one in filters)


@_with_fields(_parameters(DECISION_FILTERS))
class DecisionFilters(PageQuery, frozen=True):
    """The filters of the list of decisions."""


@_with_fields(_parameters(EVENT_FILTERS))
class EventFilters(PageQuery, frozen=True):
    """The filters of the list of events."""


_SEARCHED: Final = dict.fromkeys(field.searched_as for field in SEARCHABLE_FIELDS if field.searched_as)


class DecisionQuery(DecisionFilters, frozen=True):
    """Which decisions, in which order, and which page of them. `from` and `to` are about their evaluation."""

    moment_from: From | None = msgspec.field(name="from", default=None)
    moment_to: To | None = msgspec.field(name="to", default=None)
    search: (
        Annotated[
            str,
            msgspec.Meta(
                description=f"A part, in any letter case, of the id, {', '.join(_SEARCHED)} or a reason code."
            ),
        ]
        | None
    ) = None
    sort_by: DecisionSort = DecisionSort.EVALUATED_AT


class EventQuery(EventFilters, frozen=True):
    """Which events, in which order, and which page of them. `from` and `to` are about their receipt."""

    moment_from: From | None = msgspec.field(name="from", default=None)
    moment_to: To | None = msgspec.field(name="to", default=None)
    sort_by: EventSort = EventSort.CREATED_AT


class SpanQuery(Wire, frozen=True):
    """A span of event time; everything when left out."""

    moment_from: From | None = msgspec.field(name="from", default=None)
    moment_to: To | None = msgspec.field(name="to", default=None)


class CustomerShown(Wire, frozen=True, omit_defaults=True):
    """Whom an event is about."""

    external_id: str | None = None
    email: str | None = None


class DeviceShown(Wire, frozen=True, omit_defaults=True):
    """The device it came from."""

    external_id: str | None = None
    fingerprint: str | None = None


#: The searchable fields that a list shows by their own names: all but those inside an object.
_SHOWN: Final = tuple(
    field.column
    for field in SEARCHABLE_FIELDS
    if field.column != "event_name" and not field.path.startswith(("customer.", "device."))
)


@_with_fields((column, str | None) for column in _SHOWN)
class DecisionItem(Wire, frozen=True):
    """A decision in a list: its result, and what it was about."""

    id: str
    decision: Annotated[str, msgspec.Meta(description="`approve`, `review` or `deny`.")]
    risk_score: Score
    risk_level: str
    reason_codes: tuple[Reason, ...]
    correlation_ids: CorrelationIds
    rule_version: RuleVersion
    recommended_actions: tuple[Action, ...]
    evaluated_at: str
    event_name: str
    customer: CustomerShown | None
    device: DeviceShown | None


class DecisionPage(PageAnswer[DecisionItem], frozen=True):
    """A page of decisions; `nextCursor` leads to the next one at the same cost, however deep."""


class EventPage(PageAnswer[dict[str, Any]], frozen=True):
    """A page of events, each as `GET /events/{id}` answers it."""


def decision_item(listed: ListedDecision, decision: Decision) -> DecisionItem:
    """Write a decision as a list shows it."""
    stored, texts = listed.stored, listed.texts
    customer = CustomerShown(external_id=texts["customer_id"], email=texts["email"])
    device = DeviceShown(external_id=texts["device_id"], fingerprint=texts["fingerprint"])
    return DecisionItem(
        id=stored.id,
        decision=LOWERCASE[decision.outcome],
        risk_score=decision.score,
        risk_level=decision.level,
        reason_codes=decision.reasons,
        correlation_ids=CorrelationIds(
            request_id=stored.record.request_id,
            event_id=stored.id,
            customer_id=texts["customer_id"],
            device_fingerprint=texts["fingerprint"],
        ),
        rule_version=RuleVersion(version=str(decision.ruleset_version)),
        recommended_actions=decision.actions,
        evaluated_at=timestamp(stored.evaluated_at_ms),
        event_name=texts["event_name"],
        customer=customer if stored.entities["customer"] is not None else None,
        device=device if stored.entities["device"] is not None else None,
        **{column: texts[column] for column in _SHOWN},
    )


class DecisionTotals(Wire, frozen=True):
    """How many decisions there were."""

    evaluated: int
    approve: int
    review: int
    deny: int


class Rates(Wire, frozen=True):
    """Shares of the decisions, from 0 to 1; 0 when there were none."""

    approve: float
    review: float
    deny: float


class ReasonCount(Wire, frozen=True):
    """How many decisions gave a reason."""

    code: str
    count: int


class Bucket(DecisionTotals, frozen=True, kw_only=True):
    """The decisions of a part of the span that begins at `start`."""

    start: str


class DecisionStats(Wire, frozen=True):
    """The answer of `GET /decisions/stats`, by event time. Parts without decisions are left out."""

    totals: DecisionTotals
    rates: Rates
    average_risk_score: float
    top_reason_codes: list[ReasonCount]
    buckets: list[Bucket]


class EventStats(Wire, frozen=True):
    """The answer of `GET /events/stats`: counts by event time, and what the newest events lack."""

    total_events: int
    blocked_events: int
    events_under_review: int
    unique_customers: int
    unique_devices: int
    newest: Coverage


def decision_stats(span: SpanCounts) -> DecisionStats:
    """Write what was counted as `GET /decisions/stats` answers it."""
    totals = _totals(span.totals)
    rates = [round(part / max(totals.evaluated, 1), _RATE_DIGITS) for part in _parts(totals)]
    reasons = sorted(span.codes.items(), key=lambda item: (-item[1], item[0]))[:REASONS_SHOWN]
    return DecisionStats(
        totals=totals,
        rates=Rates(approve=rates[0], review=rates[1], deny=rates[2]),
        average_risk_score=round(span.totals.score_sum / max(totals.evaluated, 1), 2),
        top_reason_codes=[ReasonCount(code=code, count=count) for code, count in reasons],
        buckets=[
            Bucket(start=timestamp(start_s * 1000), **msgspec.structs.asdict(_totals(count)))
            for start_s, count in sorted(span.buckets.items())
        ],
    )


def event_stats(span: SpanCounts, uniques: Uniques, newest: Coverage) -> EventStats:
    """Write what was counted as `GET /events/stats` answers it."""
    return EventStats(
        total_events=span.totals.evaluated,
        blocked_events=span.totals.block,
        events_under_review=span.totals.review,
        unique_customers=uniques.customers,
        unique_devices=uniques.devices,
        newest=newest,
    )


def _totals(count: Count) -> DecisionTotals:
    approve = count.evaluated - count.review - count.block
    return DecisionTotals(evaluated=count.evaluated, approve=approve, review=count.review, deny=count.block)


def _parts(totals: DecisionTotals) -> tuple[int, int, int]:
    return totals.approve, totals.review, totals.deny


def write_cursor(order: Order, place: PageEnd, *, descending: bool) -> str:
    """Write where a page ended, in a text that says which list it belongs to."""
    packed = msgspec.msgpack.encode((order.value, descending, *place))
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def read_cursor(cursor: str, order: Order, *, descending: bool) -> PageEnd:
    """Read where a page ended. Raises `Invalid` (400) when it is none, or one of a list in another order."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        own_order, own_direction, key, seq = msgspec.msgpack.decode(packed, type=tuple[str, bool, int, int])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        own_order, own_direction, key, seq = "", False, 0, 0
    if (own_order, own_direction) != (order.value, descending) or not 0 < seq < 2**62:
        raise Invalid(
            "The cursor cannot be used.",
            {"cursor": "must be the nextCursor of an earlier page of the same list, in the same order"},
        )
    return PageEnd(key, seq)


class DecisionDetail(DecisionRecord, frozen=True):
    """The answer of `GET /decisions/{id}`: the decision explained, and the review that it opened or null."""

    review: ReviewAnswer | None
