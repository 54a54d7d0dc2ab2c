"""What the store remembers of screenings: each as answered, the entities behind alerts, the settings."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vettance.aml.screening.alert import History, Link, SeenAlert, Settings
from vettance.db.engine import Row, Statement, scoped
from vettance.watchlists.screening import Profile, Screening


class StoredScreening(NamedTuple):
    """What is kept of a screening besides its outcome. `sent` and `answer` are JSON."""

    id: str
    external_id: str
    index_id: str
    created_at_ms: int
    sent: bytes
    answer: bytes
    link: Link | None


def insert_screening(tenant: str, screening: Screening, stored: StoredScreening) -> Statement:
    """Keep a screening."""
    return scoped(
        tenant,
        "INSERT INTO aml_screening (tenant, id, external_id, decision, profile, algorithm, index_id, alert, "
        "case_id, created_at_ms, sent, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            stored.id,
            stored.external_id,
            screening.decision.value,
            screening.profile.value,
            screening.algorithm,
            stored.index_id,
            stored.link.alert_id if stored.link else None,
            stored.link.case_id if stored.link else None,
            stored.created_at_ms,
            stored.sent,
            stored.answer,
        ),
    )


def select_answer(tenant: str, screening_id: str) -> Statement:
    """(answer,) of one screening."""
    return scoped(tenant, "SELECT answer FROM aml_screening WHERE tenant = ? AND id = ?", (screening_id,))


def insert_alert_entity(tenant: str, alert_id: str, role: str, entity: str, digest: str) -> Statement:
    """Put a listed entity, as its list has it now, behind an alert; `role` is that of the subject."""
    return scoped(
        tenant,
        "INSERT INTO aml_alert_entity (tenant, alert, entity, digest, role) VALUES (?, ?, ?, ?, ?)",
        (alert_id, entity, digest, role),
    )


def select_history(tenant: str, external_id: str, role: str) -> Statement:
    """What alerts of screening a subject has had; read it with `history_of`."""
    return scoped(
        tenant,
        "SELECT alert.id, alert.case_id, alert.severity, alert.resolution, behind.entity, behind.digest "
        "FROM aml_alert AS alert JOIN aml_alert_entity AS behind "
        "ON behind.tenant = alert.tenant AND behind.alert = alert.id "
        "WHERE alert.tenant = ? AND alert.customer = ? AND alert.origin = 'screening' AND behind.role = ? "
        "ORDER BY alert.resolved_at_ms, alert.id",
        (external_id, role),
    )


def history_of(rows: Sequence[Row]) -> History:
    """Make a history of the rows of `select_history`. Of several resolutions of a pair the last counts."""
    cleared: dict[str, str] = {}
    seen: dict[str, SeenAlert] = {}
    for alert_id, case_id, severity, resolution, entity, digest in rows:
        if resolution is None:
            alert = seen.setdefault(alert_id, SeenAlert(alert_id, case_id, severity, {}))
            alert.entities[entity] = digest
        elif resolution == "FALSE_POSITIVE":
            cleared[entity] = digest
        else:
            cleared.pop(entity, None)
    return History(cleared, tuple(seen.values()))


def select_settings(tenant: str) -> Statement:
    """(profile, bounds) of a tenant, if any were made."""
    return scoped(tenant, "SELECT profile, bounds FROM aml_screening_setting WHERE tenant = ?")


def settings_of(rows: Sequence[Row]) -> Settings:
    """Make the settings of the rows of `select_settings`."""
    if not rows:
        return Settings()
    return Settings(Profile(rows[0][0]), msgspec.json.decode(rows[0][1], type=dict[Profile, int]))


def save_settings(tenant: str, settings: Settings) -> Statement:
    """Store how a tenant screens."""
    return scoped(
        tenant,
        "INSERT INTO aml_screening_setting (tenant, profile, bounds) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant) DO UPDATE SET profile = excluded.profile, bounds = excluded.bounds",
        (settings.profile.value, msgspec.json.encode(settings.bounds).decode()),
    )
