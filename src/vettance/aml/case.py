"""Cases: what an officer works on. Alerts of rules and of screening share them, one open case a customer."""

import enum
from typing import Annotated, Final

import msgspec

from vettance.aml.findings import SEVERITIES, Severity
from vettance.errors import Conflict
from vettance.ids import is_id
from vettance.wire.body import how

NOTE_CHARS_MAX: Final = 4_000
OFFICER_CHARS_MAX: Final = 200
#: The kinds of id by which a signer is known: an API key, or a user of the console.
SIGNERS: Final = ("key", "usr")
#: The priority, in thousandths, of an alert that no model has looked at: it comes before all others.
NO_PRIORITY: Final = 1_001
#: Who acts where no officer does.
SERVICE: Final = "vettance"


class CaseState(enum.StrEnum):
    """Where a case stands. `PENDING` waits for a second officer to agree."""

    OPEN = "OPEN"
    PENDING = "PENDING"
    CLOSED = "CLOSED"


class AlertState(enum.StrEnum):
    """An alert is open until its case is closed."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Resolution(enum.StrEnum):
    """What a case turned out to be."""

    TRUE_MATCH = "TRUE_MATCH"
    FALSE_POSITIVE = "FALSE_POSITIVE"


class AlertOrigin(enum.StrEnum):
    """What raised an alert."""

    RULE = "rule"
    SCREENING = "screening"


class EntryKind(enum.StrEnum):
    """What happened to a case."""

    OPENED = "OPENED"
    ALERTED = "ALERTED"
    ASSIGNED = "ASSIGNED"
    NOTED = "NOTED"
    PROPOSED = "PROPOSED"
    REJECTED = "REJECTED"
    RESOLVED = "RESOLVED"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert. `rule_id` names the rule, or the algorithm of a screening whose id is `subject`."""

    id: str
    case_id: str
    customer: str
    typology: str
    rule_id: str
    severity: Severity
    summary: str
    created_at_ms: int
    last_at_ms: int
    origin: AlertOrigin = AlertOrigin.RULE
    figures: bytes = b"{}"
    subject: str | None = None
    state: AlertState = AlertState.OPEN
    resolution: Resolution | None = None
    events: int = 1
    resolved_at_ms: int | None = None
    priority: int = NO_PRIORITY


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case of one customer. Moments are Unix milliseconds."""

    id: str
    customer: str
    state: CaseState
    severity: Severity
    alerts: int
    opened_at_ms: int
    updated_at_ms: int
    assignee: str | None = None
    resolution: Resolution | None = None
    proposed_by: str | None = None
    resolved_by: str | None = None
    resolved_at_ms: int | None = None


class CaseEntry(msgspec.Struct, frozen=True):
    """One line of the timeline of a case."""

    at_ms: int
    kind: EntryKind
    actor: str
    text: str


class OfficerSettings(msgspec.Struct, frozen=True):
    """How a tenant's officers work."""

    four_eyes: bool = False
    inline_screening: bool = False


class CaseStep(msgspec.Struct, frozen=True):
    """What an act makes of a case: the case after it, and the line it leaves."""

    case: Case
    entry: CaseEntry


def open_case(case_id: str, customer: str, now_ms: int) -> Case:
    """Return a new case without alerts."""
    return Case(
        id=case_id,
        customer=customer,
        state=CaseState.OPEN,
        severity=Severity.LOW,
        alerts=0,
        opened_at_ms=now_ms,
        updated_at_ms=now_ms,
    )


def with_alert(case: Case, alert: Alert, now_ms: int) -> CaseStep:
    """Put a new alert into a case: it is as severe as its most severe alert.

    A resolution that was proposed before this alert falls: nobody has looked at the alert yet.
    """
    severity = max(case.severity, alert.severity, key=SEVERITIES.index)
    after = msgspec.structs.replace(
        case,
        alerts=case.alerts + 1,
        severity=severity,
        state=CaseState.OPEN,
        resolution=None,
        proposed_by=None,
        updated_at_ms=now_ms,
    )
    return CaseStep(
        after, CaseEntry(now_ms, EntryKind.ALERTED, SERVICE, f"{alert.severity}: {alert.summary}")
    )


def with_raised(case: Case, before: Alert, alert: Alert, now_ms: int) -> CaseStep:
    """Take note that an alert of a case became more severe; a proposed resolution falls."""
    after = with_alert(case, alert, now_ms).case
    said = f"{before.typology} is {alert.typology}" if before.typology != alert.typology else alert.typology
    text = f"{before.severity} to {alert.severity}, {said}: {alert.summary}"
    return CaseStep(
        msgspec.structs.replace(after, alerts=case.alerts),
        CaseEntry(now_ms, EntryKind.ALERTED, SERVICE, text),
    )


def assign(case: Case, assignee: str | None, actor: str, now_ms: int) -> CaseStep:
    """Give a case to an officer, or to nobody. Raises `Conflict` when it is closed."""
    _require_open(case)
    after = msgspec.structs.replace(case, assignee=assignee, updated_at_ms=now_ms)
    text = f"Assigned to {assignee}." if assignee is not None else "Assigned to nobody."
    return CaseStep(after, CaseEntry(now_ms, EntryKind.ASSIGNED, actor, text))


def resolve(
    case: Case,
    resolution: Resolution,
    notes: str,
    actor: str,
    settings: OfficerSettings,
    now_ms: int,
    *,
    signer: str,
) -> CaseStep:
    """Resolve a case; with four eyes the first officer proposes, and another one who says the same closes it.

    `signer` is the id of the API key or of the signed-in user: `actor` is a name that anybody could send.
    Raises `Conflict`: `already_resolved`; `second_officer_needed` when the signer that proposed confirms it,
    or when it is not known who did; `resolution_differs` when the second officer says otherwise (reject the
    proposal first).
    """
    _require_open(case)
    said = f"{resolution.value}. {notes}".strip()
    if settings.four_eyes and case.state is CaseState.OPEN:
        after = msgspec.structs.replace(
            case, state=CaseState.PENDING, resolution=resolution, proposed_by=signer, updated_at_ms=now_ms
        )
        return CaseStep(after, CaseEntry(now_ms, EntryKind.PROPOSED, actor, said))
    if settings.four_eyes and (case.proposed_by == signer or not _is_signer(case.proposed_by or "")):
        raise Conflict(
            "Another officer must confirm this resolution, with another API key. Reject it to propose anew.",
            "second_officer_needed",
        )
    if settings.four_eyes and case.resolution is not resolution:
        raise Conflict("The proposed resolution is another one; reject it first.", "resolution_differs")
    after = msgspec.structs.replace(
        case,
        state=CaseState.CLOSED,
        resolution=resolution,
        resolved_by=actor,
        resolved_at_ms=now_ms,
        updated_at_ms=now_ms,
    )
    return CaseStep(after, CaseEntry(now_ms, EntryKind.RESOLVED, actor, said))


def _is_signer(text: str) -> bool:
    return any(is_id(text, prefix) for prefix in SIGNERS)


def reject(case: Case, notes: str, actor: str, now_ms: int) -> CaseStep:
    """Turn a proposed resolution down. Raises `Conflict` when none is proposed."""
    _require_open(case)
    if case.state is not CaseState.PENDING:
        raise Conflict("No resolution of this case is proposed.", "nothing_proposed")
    after = msgspec.structs.replace(
        case, state=CaseState.OPEN, resolution=None, proposed_by=None, updated_at_ms=now_ms
    )
    return CaseStep(after, CaseEntry(now_ms, EntryKind.REJECTED, actor, notes or "The proposal is rejected."))


def _require_open(case: Case) -> None:
    if case.state is CaseState.CLOSED:
        raise Conflict("This case is resolved already.", "already_resolved")


def _name(value: str) -> str | None:
    return value.strip() or None


Officer = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=OFFICER_CHARS_MAX),
    how(check=_name, message="must hold letters or digits"),
]
