"""The alert of a screening: which one it is, how severe, and into which case it goes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.case import SERVICE as BY_SERVICE
from vettance.aml.case import Alert, AlertOrigin, Case, CaseEntry, EntryKind, open_case, with_alert
from vettance.aml.evidence import Figures
from vettance.aml.findings import SEVERITIES, Severity
from vettance.ids import IdSource
from vettance.watchlists.match import Classification
from vettance.watchlists.subject_screening import (
    REVIEW_BOUNDS,
    Profile,
    ScreenedMatch,
    Screening,
    ScreeningOutcome,
    entity_digest,
    source_code,
)
from vettance.wire.payload import encode

TYPOLOGY: Final = "WATCHLIST_MATCH"
_SHOWN_CHARS_MAX: Final = 200


class ScreeningSettings(msgspec.Struct, frozen=True):
    """How a tenant screens: the profile of requests that name none, and the review bounds."""

    profile: Profile = Profile.BALANCED
    bounds: Mapping[Profile, int] = msgspec.field(default_factory=lambda: REVIEW_BOUNDS)

    @property
    def is_ordered(self) -> bool:
        """Whether a more sensitive profile never clears what a less sensitive one holds."""
        bounds = [self.bounds[name] for name in Profile]
        return bounds == sorted(bounds)


class SeenAlert(NamedTuple):
    """An open alert of a subject, with the entities behind it and their digests."""

    id: str
    case_id: str
    severity: str
    entities: dict[str, str]


class History(NamedTuple):
    """What is known of a subject: entities that it is not, with their digests, and its open alerts."""

    cleared: Mapping[str, str]
    open_alerts: tuple[SeenAlert, ...]


#: Of a subject that was found on no list nothing needs to be known.
NO_HISTORY: Final = History({}, ())


class AlertLink(NamedTuple):
    """The alert of a screening and its case."""

    alert_id: str
    case_id: str
    case_created: bool

    def members(self) -> dict[str, Any]:
        """Return what the answer says of it."""
        return {
            "caseId": self.case_id,
            "alertId": self.alert_id,
            "caseCreated": self.case_created,
            "reusedExistingCase": not self.case_created,
        }


class NewAlert(msgspec.Struct, frozen=True):
    """A new alert, its case before (None: a new case) and after, the lines it leaves, the entities behind."""

    alert: Alert
    before: Case | None
    after: Case
    entries: tuple[CaseEntry, ...]
    entities: Mapping[str, str]

    @property
    def link(self) -> AlertLink:
        """Return where the screening belongs."""
        return AlertLink(self.alert.id, self.after.id, self.before is None)


def open_matches(screening: Screening) -> list[ScreenedMatch]:
    """Return the matches that somebody must look at."""
    return [one for one in screening.matches if one.held and not one.cleared]


def entities_of(screening: Screening) -> dict[str, str]:
    """Return the listed entities that somebody must look at, with their digests."""
    return {one.match.entity.id: entity_digest(one.match.entity) for one in open_matches(screening)}


def severity_of(screening: Screening) -> Severity:
    """Return how severe an alert is: what is confirmed outranks everything, then what the best match is."""
    if screening.decision is ScreeningOutcome.CONFIRMED:
        return Severity.CRITICAL
    strong = {Classification.EXACT, Classification.STRONG}
    found = any(one.classification in strong for one in open_matches(screening))
    return Severity.HIGH if found else Severity.MEDIUM


def repeated(screening: Screening, history: History) -> SeenAlert | None:
    """Find the open alert that says all of this already: the same entities unchanged, no less severe."""
    entities, severity = entities_of(screening), SEVERITIES.index(severity_of(screening))
    for alert in history.open_alerts:
        if SEVERITIES.index(Severity(alert.severity)) >= severity and entities.items() <= (
            alert.entities.items()
        ):
            return alert
    return None


def raise_alert(
    screening: Screening,
    screening_id: str,
    subject: tuple[str, str],
    before: Case | None,
    ids: IdSource,
    now_ms: int,
    trigger: str | None = None,
) -> NewAlert:
    """Make the one alert of a screening, however many lists were hit, and put it into a case.

    `subject` is (external id, name); `before` is the subject's case that is not closed, if there is one.
    `trigger` says what made the screening, where that was no request.
    """
    external_id, name = subject
    case, entries = before, []
    if case is None:
        case = open_case(ids.make("cas", now_ms), external_id, now_ms)
        entries.append(CaseEntry(now_ms, EntryKind.OPENED, BY_SERVICE, f"Opened for {external_id}."))
    # A case must be newer after every change, so that changes can be distinguished.
    now_ms = max(now_ms, before.updated_at_ms + 1) if before is not None else now_ms
    matches = open_matches(screening)
    alert = Alert(
        id=ids.make("alr", now_ms),
        case_id=case.id,
        customer=external_id,
        typology=TYPOLOGY,
        rule_id=screening.algorithm,
        severity=severity_of(screening),
        summary=summary_of(screening, name),
        created_at_ms=now_ms,
        last_at_ms=now_ms,
        origin=AlertOrigin.SCREENING,
        subject=screening_id,
        figures=encode(_figures(screening, screening_id, name, matches, trigger)),
    )
    step = with_alert(case, alert, now_ms)
    return NewAlert(alert, before, step.case, (*entries, step.entry), entities_of(screening))


def summary_of(screening: Screening, name: str) -> str:
    """Say in a sentence whom a screening may have found; there must be a match to look at."""
    matches = open_matches(screening)
    best = matches[0].match
    lists = ", ".join(dict.fromkeys(source_code(one.match.entity) for one in matches))
    strength = matches[0].classification.value.lower()
    verb = "is" if screening.decision is ScreeningOutcome.CONFIRMED else "may be"
    return (
        f"{name[:_SHOWN_CHARS_MAX]} {verb} {best.entity.name[:_SHOWN_CHARS_MAX]} "
        f"({strength} match, score {best.score}) on {lists}."
    )


def _figures(
    screening: Screening,
    screening_id: str,
    name: str,
    matches: Sequence[ScreenedMatch],
    trigger: str | None,
) -> Figures:
    values: dict[str, Any] = {
        "screening": screening_id,
        "name": name,
        "decision": screening.decision.value,
        "profile": screening.profile.value,
        "reviewBound": screening.review_bound,
    }
    if trigger is not None:
        values["trigger"] = trigger
    for number, one in enumerate(matches, 1):
        entity = one.match.entity
        values[f"match {number}"] = (
            f"{entity.name} ({source_code(entity)}, {entity.id}): {one.match.score}, "
            f"{one.classification.value}"
        )
    return Figures(screening.algorithm, "Watchlist screening", values)
