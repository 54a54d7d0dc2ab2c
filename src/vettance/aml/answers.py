"""What the AML endpoints take and answer."""

import enum
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from vettance.aml.case import (
    NO_PRIORITY,
    NOTE_CHARS_MAX,
    Alert,
    AlertOrigin,
    AlertState,
    Case,
    CaseEntry,
    CaseState,
    Officer,
    Resolution,
)
from vettance.aml.findings import Severity
from vettance.decisions.answers import RuleVersion
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import From, To, any_case
from vettance.web.routing import Call
from vettance.wire.body import how, must_be_one_of, read_body
from vettance.wire.payload import JSON, Faults, Wire, decode, read_timestamp, timestamp

Notes = Annotated[str, msgspec.Meta(max_length=NOTE_CHARS_MAX)]


def _as_answered(text: str) -> str | None:
    """Return a moment as answers have it, in whichever notation it was sent; None for what is no moment."""
    moment_ms = read_timestamp(text)
    return None if moment_ms is None else timestamp(moment_ms)


#: The optimistic lock of a case.
SeenAt = Annotated[
    str,
    msgspec.Meta(
        max_length=64,
        description="The `updatedAt` of the case you looked at: when the case has changed since, this is "
        "refused with 409 `changed_meanwhile`.",
    ),
    how(check=_as_answered, message="must be an ISO 8601 time"),
]

Body = TypeVar("Body", bound=msgspec.Struct)


def read_case_body(call: Call, shape: type[Body]) -> Body:
    """Read what an officer does to a case. Raises `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = read_body(call.json(), shape, faults)
    faults.raise_unprocessable()
    return said


class EventAlert(Wire, frozen=True):
    """An alert as the event that raised it answers it."""

    id: str
    severity: Severity
    summary: str
    rule_id: str
    created_at: str


class AmlEventAnswer(Wire, frozen=True):
    """The answer of `POST /aml/events` and of its poll."""

    id: str
    external_event_id: str
    status: Annotated[str, msgspec.Meta(description="`CLEAR` or `ALERTED`.")]
    alerts: list[EventAlert] | msgspec.Raw
    rule_version: RuleVersion | None
    received_at: str


class EventSchema(Wire, frozen=True):
    """The answer of `POST /aml/events` and of its poll."""

    id: str
    external_event_id: str
    status: Annotated[str, msgspec.Meta(description="`CLEAR` or `ALERTED`.")]
    alerts: list[EventAlert]
    rule_version: Annotated[
        RuleVersion | None, msgspec.Meta(description="Null where the record of the event is damaged.")
    ]
    received_at: str


AlertPriority = Annotated[
    float | None,
    msgspec.Meta(
        description="How likely officers confirm it, in percent, by what they said of earlier alerts; null "
        "while no model knows."
    ),
]


class AmlAlertAnswer(Wire, frozen=True):
    """An alert with where it stands. `figures` holds every value that made it."""

    id: str
    case_id: str
    customer: str
    severity: Severity
    summary: str
    rule_id: str
    typology: str
    origin: AlertOrigin
    state: AlertState
    resolution: Resolution | None
    priority: AlertPriority
    events: int
    figures: dict[str, Any]
    created_at: str
    last_event_at: str


class AlertSort(enum.StrEnum):
    """What alerts are ordered by."""

    CREATED_AT = "createdAt"
    PRIORITY = "priority"


class AlertPage(PageAnswer[AmlAlertAnswer], frozen=True):
    """A page of alerts; `nextCursor` leads to the next one at the same cost."""


class CaseAnswer(Wire, frozen=True):
    """A case as it stands."""

    id: str
    customer: str
    state: CaseState
    severity: Severity
    alert_count: int
    priority: Annotated[
        float | None, msgspec.Meta(description="The highest of its open alerts; null where none is known.")
    ]
    assignee: str | None
    resolution: Resolution | None
    proposed_by: str | None
    resolved_by: str | None
    opened_at: str
    updated_at: str
    resolved_at: str | None


class CasePage(PageAnswer[CaseAnswer], frozen=True):
    """A page of cases; `nextCursor` leads to the next one at the same cost."""


class TimelineEntry(Wire, frozen=True):
    """What was done, and by whom."""

    at: str
    kind: str
    actor: str
    text: str


class CaseEvent(Wire, frozen=True):
    """An event behind an alert, as it was sent."""

    id: str
    external_event_id: str
    occurred_at: str
    alert_ids: list[str]
    rule_ids: list[str]
    event: JSON


class CaseRecord(CaseAnswer, frozen=True):
    """A case with everything that belongs to it."""

    alerts: list[AmlAlertAnswer]
    events: list[CaseEvent]
    timeline: list[TimelineEntry]


class AlertQuery(PageQuery, frozen=True):
    """Which alerts are wanted."""

    state: Annotated[AlertState | None, any_case()] = None
    severity: Annotated[Severity | None, any_case()] = None
    typology: str | None = None
    rule_id: str | None = None
    customer: str | None = None
    sort_by: AlertSort = AlertSort.CREATED_AT
    created_from: From | None = msgspec.field(name="from", default=None)
    created_to: To | None = msgspec.field(name="to", default=None)


class CaseQuery(PageQuery, frozen=True):
    """Which cases are wanted."""

    state: Annotated[CaseState | None, any_case()] = None
    severity: Annotated[Severity | None, any_case()] = None
    assignee: str | None = None
    customer: str | None = None
    created_from: From | None = msgspec.field(name="from", default=None)
    created_to: To | None = msgspec.field(name="to", default=None)


class ExportFormat(enum.StrEnum):
    """How a case is written for a report."""

    JSON = "json"
    HTML = "html"


class ExportQuery(Wire, frozen=True):
    """How the export is written."""

    format: Annotated[ExportFormat, any_case()] = ExportFormat.JSON


class ResolveBody(Wire, frozen=True):
    """What the case turned out to be. `officer` is who says so, by default the API key."""

    EXAMPLE: ClassVar[JSON] = {"resolution": "FALSE_POSITIVE", "notes": "Another person of that name."}

    resolution: Annotated[Resolution, how(missing=must_be_one_of(Resolution))]
    notes: Notes | None = None
    officer: Officer | None = None
    updated_at: SeenAt | None = None


class NoteBody(Wire, frozen=True):
    """A note on a case."""

    EXAMPLE: ClassVar[JSON] = {"notes": "Asked the customer for the contract."}

    notes: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=NOTE_CHARS_MAX),
        how(check=lambda text: text if text.strip() else None, message="is required"),
    ]
    officer: Officer | None = None


class AssignBody(Wire, frozen=True):
    """Who works on the case; null for nobody."""

    EXAMPLE: ClassVar[JSON] = {"assignee": "officer-2"}

    assignee: Officer | None = None
    officer: Officer | None = None
    updated_at: SeenAt | None = None


class RejectBody(Wire, frozen=True):
    """Why the proposed resolution is turned down."""

    EXAMPLE: ClassVar[JSON] = {"notes": "The passport was not looked at."}

    notes: Notes | None = None
    officer: Officer | None = None
    updated_at: SeenAt | None = None


class DismissBody(Wire, frozen=True):
    """Which listed entity is somebody else than the subject, and why."""

    EXAMPLE: ClassVar[JSON] = {"watchlistEntityId": "sample:35233", "notes": "Another date of birth."}

    watchlist_entity_id: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    notes: Notes | None = None
    officer: Officer | None = None


def alert_answer(alert: Alert) -> AmlAlertAnswer:
    """Shape an alert for the wire."""
    return AmlAlertAnswer(
        id=alert.id,
        case_id=alert.case_id,
        customer=alert.customer,
        severity=alert.severity,
        summary=alert.summary,
        rule_id=alert.rule_id,
        typology=alert.typology,
        origin=alert.origin,
        state=alert.state,
        resolution=alert.resolution,
        priority=shown_priority(alert.priority),
        events=alert.events,
        figures=decode(alert.figures),
        created_at=timestamp(alert.created_at_ms),
        last_event_at=timestamp(alert.last_at_ms),
    )


def shown_priority(priority: int | None) -> float | None:
    """Write a priority as it is stored in percent; None where it is unknown."""
    return None if priority is None or priority == NO_PRIORITY else priority / 10


def case_members(case: Case, priority: int | None = None) -> dict[str, Any]:
    """Return what every answer about a case says of it, by field name; `priority` as it is stored."""
    return {
        "id": case.id,
        "customer": case.customer,
        "state": case.state,
        "severity": case.severity,
        "alert_count": case.alerts,
        "priority": shown_priority(priority),
        "assignee": case.assignee,
        "resolution": case.resolution,
        "proposed_by": case.proposed_by,
        "resolved_by": case.resolved_by,
        "opened_at": timestamp(case.opened_at_ms),
        "updated_at": timestamp(case.updated_at_ms),
        "resolved_at": timestamp(case.resolved_at_ms) if case.resolved_at_ms is not None else None,
    }


def case_answer(case: Case, priority: int | None = None) -> CaseAnswer:
    """Shape a case for the wire; `priority` is the highest of its open alerts, as it is stored."""
    return CaseAnswer(**case_members(case, priority))


def timeline_entry(entry: CaseEntry) -> TimelineEntry:
    """Shape a line of a timeline for the wire."""
    return TimelineEntry(at=timestamp(entry.at_ms), kind=entry.kind.value, actor=entry.actor, text=entry.text)
