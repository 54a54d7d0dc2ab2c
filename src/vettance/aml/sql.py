"""What the store remembers of AML: the log of events, alerts, cases, timelines, rule sets and settings."""

import enum
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEvent, read_taken_aml_event
from vettance.aml.case import Alert, Case, OfficerSettings, Resolution
from vettance.db.engine import OF_TENANT, Row, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.tables import (
    AML_ALERT,
    AML_ALERT_COUNT,
    AML_ALERT_EVENT,
    AML_CASE,
    AML_EVENT,
    AML_RULESET,
    AML_SETTING,
    Insert,
    Table,
)
from vettance.lists.rule_additions import RecordedAddition
from vettance.rules.rollout import WithheldRules
from vettance.rules.sql import RuleSets
from vettance.rules.unknowns import Failure
from vettance.velocity.port import Value
from vettance.wire.payload import decode

AREA: Final = "aml"
RULE_SETS: Final = RuleSets(AML_RULESET, AREA, "aml")


class AmlRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """What the rules said of an event: enough to explain it. Names are in the rule set of this version."""

    ruleset_version: int
    facts: tuple[Any, ...]
    answers: tuple[Value, ...]
    inexact: int
    fired: list[int]
    failed: list[tuple[int, str]]
    unknown: list[Failure] = []  # what could not be computed of the event
    withheld: WithheldRules = []  # rules that fired and do not act
    list_additions: list[RecordedAddition] = []  # what rules put on lists
    late_answers: list[tuple[Value, ...]] = []  # of a late event, as of each moment; `answers` is one of them


class StoredEvent(NamedTuple):
    """An event as it was answered. `alerts` is the JSON of its alerts."""

    id: str
    external_id: str
    received_at_ms: int
    digest: bytes
    status: str
    alerts: bytes
    ruleset_version: int | None  # None where the record cannot be read.
    import_id: str | None = None  # Which import brings it; not read back.


_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(AmlRecord).decode

# --- events ---

_INSERT_EVENT: Final = Insert(
    AML_EVENT,
    "tenant, id, external_id, received_at_ms, occurred_at_ms, digest, status, alerts, "
    "sent, record, import_id",
)
_SELECT_EVENT: Final = (
    "SELECT id, external_id, received_at_ms, digest, status, alerts, record FROM aml_event "
    "WHERE tenant = ? AND external_id = ?"
)
_LOG: Final = "SELECT seq, id, external_id, received_at_ms, sent, tenant FROM aml_event "


def insert_event(
    tenant: str, event: AmlEvent, stored: StoredEvent, sent: bytes, record: AmlRecord
) -> Statement:
    """Append an event to the log; `Clash` when the tenant has one of this external id."""
    return insert(
        _INSERT_EVENT,
        tenant,
        (
            stored.id,
            stored.external_id,
            stored.received_at_ms,
            event.occurred_at_ms,
            stored.digest,
            stored.status,
            stored.alerts,
            sent,
            _encode_record(record),
            stored.import_id,
        ),
    )


def record_of(stored: bytes) -> AmlRecord:
    """Read a record of the log."""
    return _decode_record(stored)


def select_event(tenant: str, external_id: str) -> Statement:
    """One event by the tenant's own id of it."""
    return scoped(AML_EVENT, tenant, _SELECT_EVENT, (external_id,))


def stored_of(row: Row) -> StoredEvent:
    """Make a stored event of a row. What was held in former times is read as alerted."""
    try:
        version = record_of(row[-1]).ruleset_version
    except msgspec.MsgspecError:
        version = None  # A damaged record takes nothing from the answer that was given.
    stored = StoredEvent._make((*row[:-1], version, None))
    return stored._replace(status="ALERTED") if stored.status == "HELD" else stored


def select_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """(seq, id, external_id, received_at_ms, sent, tenant) of a tenant's events since a moment."""
    return in_pieces(
        scoped(
            AML_EVENT,
            tenant,
            f"{_LOG}WHERE tenant = ? AND seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_log_of_all(after: int, since_ms: int, limit: int) -> Statement:
    """The same for the events of all tenants."""
    return in_pieces(
        everyone(
            AML_EVENT,
            f"{_LOG}WHERE seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def logged_aml_event(row: Row) -> AmlEvent:
    """Read the event of a row of the log. Raises whatever there is to raise: damage, narrowed bounds."""
    return read_taken_aml_event(decode(row[4]), row[3])


def select_external_ids(tenant: str, after: tuple[str, int], limit: int) -> Statement:
    """(external_id, seq) of a tenant's events, in an order that goes on after such a row."""
    # Each store goes by the index that spares it the payloads, or a sort.
    by_name = (
        "SELECT external_id, seq FROM aml_event WHERE tenant = ? AND external_id > ? "
        "ORDER BY external_id LIMIT ?"
    )
    by_place = "SELECT external_id, seq FROM aml_event WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
    postgres = scoped(AML_EVENT, tenant, by_place, (after[1], limit))
    return in_pieces(scoped(AML_EVENT, tenant, by_name, (after[0], limit))._replace(postgres=postgres))


def select_last_event() -> Statement:
    """(seq, id) of the newest event of the log."""
    return everyone(AML_EVENT, "SELECT seq, id FROM aml_event ORDER BY seq DESC LIMIT 1")


def select_event_at(seq: int) -> Statement:
    """(id,) of the event at a place of the log."""
    return everyone(AML_EVENT, "SELECT id FROM aml_event WHERE seq = ?", (seq,))


def select_events_of_case(tenant: str, case_id: str, limit: int) -> Statement:
    """(alert, rule_id, id, external_id, occurred_at_ms) of the events behind the alerts of a case."""
    # SQLite keeps the order of a CROSS JOIN. Left to itself it went through every alert of the tenant.
    return scoped(
        AML_ALERT.reading(AML_ALERT_EVENT, AML_EVENT),
        tenant,
        "SELECT behind.alert, behind.rule_id, event.id, event.external_id, event.occurred_at_ms "
        "FROM aml_alert AS alert CROSS JOIN aml_alert_event AS behind CROSS JOIN aml_event AS event "
        "WHERE alert.tenant = ? AND alert.case_id = ? AND behind.tenant = alert.tenant "
        "AND behind.alert = alert.id AND event.id = behind.event ORDER BY event.seq LIMIT ?",
        (case_id, limit),
    )


def select_sent(tenant: str, ids: Sequence[str]) -> Statement:
    """(id, sent) of some events, in any order."""
    places, args = in_list(ids)
    return in_pieces(
        scoped(
            AML_EVENT,
            tenant,
            f"SELECT id, sent FROM aml_event WHERE {OF_TENANT} AND id IN ({places})",
            args,
        )
    )


# --- alerts ---

_ALERT: Final = ", ".join(Alert.__struct_fields__)
_SELECT_ALERTS: Final = f"SELECT {_ALERT} FROM aml_alert "


def _values(struct: msgspec.Struct) -> tuple[Any, ...]:
    """Return the fields of a struct in order, as the store keeps them."""
    fields = msgspec.structs.astuple(struct)
    return tuple(field.value if isinstance(field, enum.Enum) else field for field in fields)


_INSERT_ALERT: Final = Insert(AML_ALERT, f"tenant, {_ALERT}")


def insert_alert(tenant: str, alert: Alert) -> Statement:
    """Store a new alert."""
    return insert(_INSERT_ALERT, tenant, _values(alert))


def alert_of(row: Row) -> Alert:
    """Make an alert of a row."""
    return msgspec.convert(dict(zip(Alert.__struct_fields__, row, strict=True)), Alert)


def repeat_alert(tenant: str, alert_id: str, at_ms: int) -> Statement:
    """Count one more event behind an open alert; `Lost` when it was closed meanwhile."""
    return _update(
        AML_ALERT,
        tenant,
        "UPDATE aml_alert SET events = events + 1, "
        "last_at_ms = CASE WHEN last_at_ms < ? THEN ? ELSE last_at_ms END "
        "WHERE tenant = ? AND id = ? AND state = 'OPEN'",
        (at_ms, at_ms),
        (alert_id,),
        rows=1,
    )


def raise_alert(tenant: str, alert: Alert) -> Statement:
    """Count one more event behind an open alert that it makes more severe; `Lost` when it was closed."""
    return _update(
        AML_ALERT,
        tenant,
        "UPDATE aml_alert SET events = events + 1, last_at_ms = ?, typology = ?, severity = ?, summary = ? "
        "WHERE tenant = ? AND id = ? AND state = 'OPEN'",
        (alert.last_at_ms, alert.typology, alert.severity.value, alert.summary),
        (alert.id,),
        rows=1,
    )


def _update(
    table: Table,
    tenant: str,
    text: str,
    values: Sequence[Any],
    condition: Sequence[Any],
    rows: int | None = None,
) -> Statement:
    """Build an UPDATE of a tenant's rows, whose tenant follows the new values."""
    found = scoped(table, tenant, text, (*values, *condition), rows)
    return found._replace(args=(*values, tenant, *condition))


_INSERT_ALERT_EVENT: Final = Insert(AML_ALERT_EVENT, "tenant, alert, event, rule_id")


def insert_alert_event(tenant: str, alert_id: str, event_id: str, rule_id: str) -> Statement:
    """Put an event behind an alert."""
    return insert(_INSERT_ALERT_EVENT, tenant, (alert_id, event_id, rule_id))


# Each part is one range of an index that is read from its end.
_CUSTOMER_ALERTS: Final = " UNION ALL ".join(
    f"SELECT * FROM ({_SELECT_ALERTS}WHERE tenant = ? AND customer = ? AND state = {state} "
    "AND origin = 'rule' ORDER BY resolved_at_ms DESC, id DESC LIMIT 200) AS part"
    for state in ("'OPEN'", "'CLOSED' AND resolved_at_ms >= ?")
)


def select_customer_alerts(tenant: str, customer: str, since_ms: int) -> Statement:
    """A customer's newest alerts of rules that are open, then those that were closed since a moment."""
    return scoped(AML_ALERT, tenant, _CUSTOMER_ALERTS, (customer, tenant, customer, since_ms))


def select_case_alerts(tenant: str, case_id: str) -> Statement:
    """The alerts of a case, oldest first."""
    return scoped(
        AML_ALERT, tenant, _SELECT_ALERTS + "WHERE tenant = ? AND case_id = ? ORDER BY id", (case_id,)
    )


def close_alerts(tenant: str, case_id: str, resolution: Resolution, now_ms: int) -> Statement:
    """Close every open alert of a case; found by the case, as others are open too."""
    return _update(
        AML_ALERT,
        tenant,
        "UPDATE aml_alert SET state = 'CLOSED', resolution = ?, resolved_at_ms = ? "
        "WHERE tenant = ? AND case_id = ? AND state || '' = 'OPEN'",
        (resolution.value, now_ms),
        (case_id,),
    )


def close_alert(tenant: str, alert_id: str, now_ms: int) -> Statement:
    """Close one open alert as a false positive; `Lost` when it was closed meanwhile."""
    return _update(
        AML_ALERT,
        tenant,
        "UPDATE aml_alert SET state = 'CLOSED', resolution = 'FALSE_POSITIVE', resolved_at_ms = ? "
        "WHERE tenant = ? AND id = ? AND state = 'OPEN'",
        (now_ms,),
        (alert_id,),
        rows=1,
    )


def select_outcomes(tenant: str) -> Statement:
    """(rule_id, resolution, how many) of the alerts of rules that were closed."""
    return scoped(
        AML_ALERT_COUNT,
        tenant,
        "SELECT rule_id, resolution, CAST(SUM(alerts) AS BIGINT) FROM aml_alert_count "
        "WHERE tenant = ? AND origin = 'rule' AND state = 'CLOSED' GROUP BY rule_id, resolution",
    )


# --- cases ---

_CASE: Final = ", ".join(Case.__struct_fields__)
_INSERT_CASE: Final = Insert(AML_CASE, f"tenant, {_CASE}")
_SELECT_CASES: Final = f"SELECT {_CASE} FROM aml_case "
_UPDATE_CASE: Final = (
    f"UPDATE aml_case SET {', '.join(f'{name} = ?' for name in Case.__struct_fields__)} "
    "WHERE tenant = ? AND id = ? AND state = ? AND updated_at_ms = ? AND alerts = ?"
)


def insert_case(tenant: str, case: Case) -> Statement:
    """Store a new case; `Clash` when the customer has an open one."""
    return insert(_INSERT_CASE, tenant, _values(case))


def update_case(tenant: str, before: Case, after: Case) -> Statement:
    """Store what became of a case; `Lost` when somebody else changed it meanwhile."""
    known = (before.id, before.state.value, before.updated_at_ms, before.alerts)
    return _update(AML_CASE, tenant, _UPDATE_CASE, _values(after), known, rows=1)


def case_of(row: Row) -> Case:
    """Make a case of a row."""
    return msgspec.convert(dict(zip(Case.__struct_fields__, row, strict=True)), Case)


def select_open_case(tenant: str, customer: str) -> Statement:
    """The case of a customer that is not closed."""
    return scoped(
        AML_CASE,
        tenant,
        _SELECT_CASES + "WHERE tenant = ? AND customer = ? AND state <> 'CLOSED'",
        (customer,),
    )


def select_case(tenant: str, case_id: str) -> Statement:
    """One case."""
    return scoped(AML_CASE, tenant, _SELECT_CASES + "WHERE tenant = ? AND id = ?", (case_id,))


def select_settings(tenant: str) -> Statement:
    """The settings of a tenant, if any were made."""
    return scoped(AML_SETTING, tenant, "SELECT four_eyes, inline_screening FROM aml_setting WHERE tenant = ?")


def settings_of(rows: Sequence[Row]) -> OfficerSettings:
    """Make the settings of the rows of `select_settings`."""
    return OfficerSettings(bool(rows[0][0]), bool(rows[0][1])) if rows else OfficerSettings()
