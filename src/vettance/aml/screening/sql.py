"""What the store remembers of screenings: each as answered, the entities behind alerts, the settings."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.aml.screening.screening_alert import AlertLink, History, ScreeningSettings, SeenAlert
from vettance.db.engine import Row, Statement, bounded_key, in_pieces, insert, scoped
from vettance.db.log_walk import walk_log
from vettance.db.tables import (
    AML_ALERT,
    AML_ALERT_ENTITY,
    AML_LIST_SET,
    AML_RESCREENING,
    AML_SCREENING,
    AML_SCREENING_SETTING,
    AML_SUBJECT,
    IMPORT_MARK,
    Insert,
)
from vettance.watchlists.subject_screening import Profile, Screening


class StoredSubject(NamedTuple):
    """Whom somebody asked about last, and the set of list versions he was last screened against.

    The store keeps a long `external_id` as its digest (`bounded_key`); `sent` holds it as it is.
    """

    external_id: str
    role: str
    list_set: str
    screening_id: str
    sent: bytes


class StoredScreening(NamedTuple):
    """What is kept of a screening besides its outcome. `sent` and `answer` are JSON."""

    id: str
    external_id: str
    index_id: str
    created_at_ms: int
    sent: bytes
    answer: bytes
    link: AlertLink | None


_INSERT_SCREENING: Final = Insert(
    AML_SCREENING,
    "tenant, id, external_id, decision, profile, algorithm, index_id, alert, case_id, created_at_ms, sent, "
    "answer",
)


def insert_screening(tenant: str, screening: Screening, stored: StoredScreening) -> Statement:
    """Keep a screening."""
    return insert(
        _INSERT_SCREENING,
        tenant,
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
    return scoped(
        AML_SCREENING, tenant, "SELECT answer FROM aml_screening WHERE tenant = ? AND id = ?", (screening_id,)
    )


def select_recent(tenant: str, limit: int) -> Statement:
    """(id, decision, created_at_ms, sent) of the newest screenings."""
    text = "SELECT id, decision, created_at_ms, sent FROM aml_screening WHERE {places} {order} LIMIT ?"
    return in_pieces(walk_log(AML_SCREENING, tenant, text, newest_first=True, rest=(limit,)))


def select_screening(tenant: str, screening_id: str) -> Statement:
    """(sent, answer, created_at_ms) of one screening."""
    return scoped(
        AML_SCREENING,
        tenant,
        "SELECT sent, answer, created_at_ms FROM aml_screening WHERE tenant = ? AND id = ?",
        (screening_id,),
    )


def select_screenings_of(tenant: str, external_id: str, limit: int) -> Statement:
    """(id, decision, profile, created_at_ms) of a subject's newest screenings."""
    return scoped(
        AML_SCREENING,
        tenant,
        "SELECT id, decision, profile, created_at_ms FROM aml_screening WHERE tenant = ? AND external_id = ? "
        "ORDER BY seq DESC LIMIT ?",
        (external_id, limit),
    )


_INSERT_ALERT_ENTITY: Final = Insert(AML_ALERT_ENTITY, "tenant, alert, entity, digest, role")


def insert_alert_entity(tenant: str, alert_id: str, role: str, entity: str, digest: str) -> Statement:
    """Put a listed entity, as its list has it now, behind an alert; `role` is that of the subject."""
    return insert(_INSERT_ALERT_ENTITY, tenant, (alert_id, entity, digest, role))


def select_alert_entities(tenant: str, alert_id: str) -> Statement:
    """(entity, digest, role) of the listed entities behind an alert."""
    return scoped(
        AML_ALERT_ENTITY,
        tenant,
        "SELECT entity, digest, role FROM aml_alert_entity WHERE tenant = ? AND alert = ? ORDER BY entity",
        (alert_id,),
    )


#: How many of the newest alerts of a subject and an entity are looked at. A case holds all that are open, and
#: one more than there are ways to be found together with others says nothing new.
PAIR_ALERTS_MAX: Final = 32
_BEHIND_PAIR: Final = (
    "FROM aml_alert_entity AS {0} WHERE {0}.tenant = ? AND {0}.customer = ? AND {0}.role = ? "
    "AND {0}.entity = wanted.entity"
)
_HISTORY: Final = (
    "SELECT alert.id, alert.case_id, alert.severity, alert.resolution, behind.entity, behind.digest"
)
# SQLite keeps the order of a CROSS JOIN, and this index. Left to itself it went through every alert of the
# tenant.
_SELECT_HISTORY: Final = (
    _HISTORY + " FROM (SELECT column1 AS entity FROM (VALUES {wanted})) AS wanted "
    "CROSS JOIN aml_alert_entity AS behind INDEXED BY aml_alert_entity_pair CROSS JOIN aml_alert AS alert "
    "WHERE behind.tenant = ? AND behind.customer = ? AND behind.role = ? AND behind.entity = wanted.entity "
    "AND behind.alert >= COALESCE((SELECT newer.alert "
    + _BEHIND_PAIR.format("newer")
    + " ORDER BY newer.alert DESC LIMIT 1 OFFSET ?), '') "
    "AND alert.id = behind.alert AND alert.tenant = behind.tenant ORDER BY alert.resolved_at_ms, alert.id"
)
_HISTORY_OF_POSTGRES: Final = (
    _HISTORY + " FROM unnest(?::TEXT[]) AS wanted (entity) CROSS JOIN LATERAL ("
    "SELECT alert, entity, digest "
    + _BEHIND_PAIR.format("own")
    + " ORDER BY own.alert DESC LIMIT ?) AS behind "
    "CROSS JOIN LATERAL (SELECT id, case_id, severity, resolution, resolved_at_ms FROM aml_alert "
    "WHERE aml_alert.tenant = ? AND aml_alert.id = behind.alert LIMIT 1) AS alert "
    "ORDER BY alert.resolved_at_ms NULLS FIRST, alert.id"
)


def select_history(tenant: str, external_id: str, role: str, entities: Sequence[str]) -> Statement:
    """What alerts of screening a subject has had for some listed entities; read it with `history_of`."""
    wanted, pair = list(dict.fromkeys(entities)), (tenant, external_id, role)
    # As many places as the next power of two, for the sake of what connections keep; no entity is NULL.
    places: list[str | None] = [*wanted, *[None] * ((1 << (len(wanted) - 1).bit_length()) - len(wanted))]
    looks = (wanted, *pair, PAIR_ALERTS_MAX, tenant)
    return Statement(
        _SELECT_HISTORY.format(wanted=", ".join(["(?)"] * len(places))),
        (*places, *pair, *pair, PAIR_ALERTS_MAX - 1),
        tenant=tenant,
        postgres=Statement(
            _HISTORY_OF_POSTGRES, looks, tenant=tenant, tables=AML_ALERT.reading(AML_ALERT_ENTITY)
        ),
        tables=AML_ALERT_ENTITY.reading(AML_ALERT),
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


_INSERT_LIST_SET: Final = Insert(AML_LIST_SET, "id, versions", key="id")


def insert_list_set(list_set: str, versions: Mapping[str, str]) -> Statement:
    """Keep which versions a set holds, unless that is known."""
    return insert(_INSERT_LIST_SET, None, (list_set, msgspec.json.encode(dict(versions)).decode()))


def select_list_set(list_set: str) -> Statement:
    """(versions,) of a set."""
    return Statement("SELECT versions FROM aml_list_set WHERE id = ?", (list_set,), tables=AML_LIST_SET)


_SUBJECT: Final = "tenant, external_id, role, list_set, screening, screened_at_ms, sent"
_SUBJECT_KEY: Final = "tenant, external_id, role"
_INSERT_SUBJECT: Final = Insert(AML_SUBJECT, _SUBJECT, key=_SUBJECT_KEY)
_REPLACE_SUBJECT: Final = Insert(
    AML_SUBJECT, _SUBJECT, key=_SUBJECT_KEY, replaces="list_set, screening, screened_at_ms, sent"
)


def insert_subject(tenant: str, subject: StoredSubject, now_ms: int, *, replace: bool) -> Statement:
    """Keep whom to screen again; `replace` says whether this counts when the subject is known already."""
    return insert(
        _REPLACE_SUBJECT if replace else _INSERT_SUBJECT,
        tenant,
        (
            bounded_key(subject.external_id),
            subject.role,
            subject.list_set,
            subject.screening_id,
            now_ms,
            subject.sent,
        ),
    )


_BEHIND: Final = "SELECT external_id, role, list_set, screening, sent FROM aml_subject WHERE tenant = ?"


def select_behind(tenant: str, list_set: str, limit: int) -> Statement:
    """Subjects that were last screened against another set; rows make a `StoredSubject`."""
    # Two ranges of the index, so that a look that finds nobody costs nothing.
    parts = (f"SELECT * FROM ({_BEHIND} AND list_set {sign} ? LIMIT ?) AS part" for sign in "<>")
    return in_pieces(
        scoped(AML_SUBJECT, tenant, " UNION ALL ".join(parts), (list_set, limit, tenant, list_set, limit))
    )


def select_subject(tenant: str, external_id: str, role: str) -> Statement:
    """One subject."""
    return scoped(AML_SUBJECT, tenant, f"{_BEHIND} AND external_id = ? AND role = ?", (external_id, role))


def move_subject(tenant: str, subject: StoredSubject, list_set: str, *, must: bool = False) -> Statement:
    """Note that a subject was screened against a set. With `must`, `Lost` when others did something first."""
    found = scoped(
        AML_SUBJECT,
        tenant,
        "UPDATE aml_subject SET list_set = ? WHERE tenant = ? AND external_id = ? AND role = ? "
        "AND list_set = ? AND screening = ?",
        (subject.external_id, subject.role, subject.list_set, subject.screening_id),
        rows=1 if must else None,
    )
    return found._replace(args=(list_set, *found.args))


def move_unchanged(tenant: str, old: str, new: str, limit: int) -> Statement:
    """Note that subjects were screened against a set from which nothing new was to be learnt."""
    found = scoped(
        AML_SUBJECT,
        tenant,
        "UPDATE aml_subject SET list_set = ? WHERE tenant = ? AND list_set = ? AND (external_id, role) IN "
        "(SELECT external_id, role FROM aml_subject WHERE tenant = ? AND list_set = ? LIMIT ?)",
        (old, tenant, old, limit),
    )
    return found._replace(args=(new, *found.args))


_COUNT_RESCREENED: Final = Insert(
    AML_RESCREENING,
    "tenant, list_set, started_at_ms, subjects, alerts",
    key="tenant, list_set",
    adds="subjects, alerts",
    sets="finished_at_ms = NULL",
)


def count_rescreened(tenant: str, list_set: str, subjects: int, alerts: int, now_ms: int) -> Statement:
    """Count what a screening of known subjects against a set has done so far."""
    return insert(_COUNT_RESCREENED, tenant, (list_set, now_ms, subjects, alerts))


def finish_rescreening(tenant: str, list_set: str, now_ms: int) -> Statement:
    """Note that no subject has another set."""
    found = scoped(
        AML_RESCREENING,
        tenant,
        "UPDATE aml_rescreening SET finished_at_ms = ? WHERE tenant = ? AND list_set = ? "
        "AND finished_at_ms IS NULL",
        (list_set,),
    )
    return found._replace(args=(now_ms, *found.args))


def select_rescreening(tenant: str, list_set: str) -> Statement:
    """(started_at_ms, finished_at_ms, subjects, alerts) of the screening of known subjects against a set."""
    return scoped(
        AML_RESCREENING,
        tenant,
        "SELECT started_at_ms, finished_at_ms, subjects, alerts FROM aml_rescreening "
        "WHERE tenant = ? AND list_set = ?",
        (list_set,),
    )


def delete_batch_mark(tenant: str, name: str) -> Statement:
    """Forget how far a batch has come."""
    return scoped(IMPORT_MARK, tenant, "DELETE FROM import_mark WHERE tenant = ? AND digest = ?", (name,))


def select_settings(tenant: str) -> Statement:
    """(profile, bounds) of a tenant, if any were made."""
    return scoped(
        AML_SCREENING_SETTING, tenant, "SELECT profile, bounds FROM aml_screening_setting WHERE tenant = ?"
    )


def settings_of(rows: Sequence[Row]) -> ScreeningSettings:
    """Make the settings of the rows of `select_settings`."""
    if not rows:
        return ScreeningSettings()
    return ScreeningSettings(Profile(rows[0][0]), msgspec.json.decode(rows[0][1], type=dict[Profile, int]))


_SAVE_SETTINGS: Final = Insert(
    AML_SCREENING_SETTING, "tenant, profile, bounds", key="tenant", replaces="profile, bounds"
)


def save_settings(tenant: str, settings: ScreeningSettings) -> Statement:
    """Store how a tenant screens."""
    values = (settings.profile.value, msgspec.json.encode(settings.bounds).decode())
    return insert(_SAVE_SETTINGS, tenant, values)
