"""What the store remembers of AML: the log of events, alerts, cases, timelines, rule sets and settings."""

import enum
from collections.abc import Sequence, Set
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEvent
from vettance.aml.case import Alert, Case, CaseEntry, EntryKind, OfficerSettings, Resolution
from vettance.db.engine import Row, Statement, everyone, in_list, in_pieces, scoped
from vettance.ids import first_id
from vettance.rules.sql import RuleSets
from vettance.rules.unknowns import Failure
from vettance.velocity.port import Value

AREA: Final = "aml"
RULE_SETS: Final = RuleSets("aml_ruleset", AREA, "aml")


class AmlRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """What the rules said of an event: enough to explain it. Names stand in the rule set of this version."""

    ruleset_version: int
    facts: tuple[Any, ...]
    answers: tuple[Value, ...]
    inexact: int
    fired: list[int]
    failed: list[tuple[int, str]]
    unknown: list[Failure] = []  # what could not be computed of the event


class StoredEvent(NamedTuple):
    """An event as it was answered. `alerts` is the JSON of its alerts."""

    id: str
    external_id: str
    received_at_ms: int
    digest: bytes
    status: str
    alerts: bytes
    import_id: str | None = None  # Which import brings it; not read back.


_encode_record = msgspec.json.Encoder().encode

# --- events ---

_INSERT_EVENT: Final = (
    "INSERT INTO aml_event (tenant, id, external_id, received_at_ms, occurred_at_ms, digest, status, alerts, "
    "sent, record, import_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT_EVENT: Final = (
    "SELECT id, external_id, received_at_ms, digest, status, alerts FROM aml_event "
    "WHERE tenant = ? AND external_id = ?"
)
_LOG: Final = "id, external_id, received_at_ms, sent FROM aml_event "


def insert_event(
    tenant: str, event: AmlEvent, stored: StoredEvent, sent: bytes, record: AmlRecord
) -> Statement:
    """Append an event to the log; `Clash` when the tenant has one of this external id."""
    return scoped(
        tenant,
        _INSERT_EVENT,
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


def select_event(tenant: str, external_id: str) -> Statement:
    """One event by the tenant's own id of it."""
    return scoped(tenant, _SELECT_EVENT, (external_id,))


def stored_of(row: Row) -> StoredEvent:
    """Make a stored event of a row. What was held in former times is read as alerted."""
    stored = StoredEvent(*row)
    return stored._replace(status="ALERTED") if stored.status == "HELD" else stored


def select_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """(seq, id, external_id, received_at_ms, sent) of a tenant's events since a moment, as in the log."""
    return in_pieces(
        scoped(
            tenant,
            f"SELECT seq, {_LOG}WHERE tenant = ? AND seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_log_of_all(after: int, since_ms: int, limit: int) -> Statement:
    """(seq, tenant, id, external_id, received_at_ms, sent) of all events since a moment, as in the log."""
    return in_pieces(
        everyone(
            f"SELECT seq, tenant, {_LOG}WHERE seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_external_ids(tenant: str, after: tuple[str, int], limit: int) -> Statement:
    """(external_id, seq) of a tenant's events, in an order that goes on after such a row."""
    # Each store goes by the index that spares it the payloads, or a sort.
    by_name = (
        "SELECT external_id, seq FROM aml_event WHERE tenant = ? AND external_id > ? "
        "ORDER BY external_id LIMIT ?"
    )
    by_place = "SELECT external_id, seq FROM aml_event WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
    postgres = scoped(tenant, by_place, (after[1], limit))
    return in_pieces(scoped(tenant, by_name, (after[0], limit))._replace(postgres=postgres))


def select_last_event() -> Statement:
    """(seq, id) of the newest event of the log."""
    return everyone("SELECT seq, id FROM aml_event ORDER BY seq DESC LIMIT 1")


def select_event_at(seq: int) -> Statement:
    """(id,) of the event at a place of the log."""
    return everyone("SELECT id FROM aml_event WHERE seq = ?", (seq,))


def select_events_of_case(tenant: str, case_id: str, limit: int) -> Statement:
    """(alert, rule_id, id, external_id, occurred_at_ms) of the events behind the alerts of a case."""
    # SQLite keeps the order of a CROSS JOIN. Left to itself it went through every alert of the tenant.
    return scoped(
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
        scoped(tenant, f"SELECT id, sent FROM aml_event WHERE tenant = ? AND id IN ({places})", args)
    )


# --- alerts ---

_ALERT: Final = ", ".join(Alert.__struct_fields__)
_SELECT_ALERTS: Final = f"SELECT {_ALERT} FROM aml_alert "


def _values(struct: msgspec.Struct) -> tuple[Any, ...]:
    """Return the fields of a struct in order, as the store keeps them."""
    fields = msgspec.structs.astuple(struct)
    return tuple(field.value if isinstance(field, enum.Enum) else field for field in fields)


def _insert(table: str, struct: type[msgspec.Struct]) -> str:
    names = struct.__struct_fields__
    return f"INSERT INTO {table} (tenant, {', '.join(names)}) VALUES (?{', ?' * len(names)})"


def insert_alert(tenant: str, alert: Alert) -> Statement:
    """Store a new alert."""
    return scoped(tenant, _insert("aml_alert", Alert), _values(alert))


def alert_of(row: Row) -> Alert:
    """Make an alert of a row."""
    return msgspec.convert(dict(zip(Alert.__struct_fields__, row, strict=True)), Alert)


def repeat_alert(tenant: str, alert_id: str, at_ms: int) -> Statement:
    """Count one more event behind an open alert; `Lost` when it was closed meanwhile."""
    return _update(
        tenant,
        "UPDATE aml_alert SET events = events + 1, "
        "last_at_ms = CASE WHEN last_at_ms < ? THEN ? ELSE last_at_ms END "
        "WHERE tenant = ? AND id = ? AND state = 'OPEN'",
        (at_ms, at_ms),
        (alert_id,),
        rows=1,
    )


def _update(
    tenant: str, text: str, values: Sequence[Any], condition: Sequence[Any], rows: int | None = None
) -> Statement:
    """Build an UPDATE of a tenant's rows, whose tenant stands behind the new values."""
    found = scoped(tenant, text, (*values, *condition), rows)
    return found._replace(args=(*values, tenant, *condition))


def insert_alert_event(tenant: str, alert_id: str, event_id: str, rule_id: str) -> Statement:
    """Put an event behind an alert."""
    return scoped(
        tenant,
        "INSERT INTO aml_alert_event (tenant, alert, event, rule_id) VALUES (?, ?, ?, ?)",
        (alert_id, event_id, rule_id),
    )


# Each part is one range of an index that is read from its end.
_CUSTOMER_ALERTS: Final = " UNION ALL ".join(
    f"SELECT * FROM ({_SELECT_ALERTS}WHERE tenant = ? AND customer = ? AND state = {state} "
    "AND origin = 'rule' ORDER BY resolved_at_ms DESC, id DESC LIMIT 200) AS part"
    for state in ("'OPEN'", "'CLOSED' AND resolved_at_ms >= ?")
)


def select_customer_alerts(tenant: str, customer: str, since_ms: int) -> Statement:
    """A customer's newest alerts of rules that are open, then those that were closed since a moment."""
    return scoped(tenant, _CUSTOMER_ALERTS, (customer, tenant, customer, since_ms))


def select_case_alerts(tenant: str, case_id: str) -> Statement:
    """The alerts of a case, oldest first."""
    return scoped(tenant, _SELECT_ALERTS + "WHERE tenant = ? AND case_id = ? ORDER BY id", (case_id,))


def close_alerts(tenant: str, case_id: str, resolution: Resolution, now_ms: int) -> Statement:
    """Close every open alert of a case; found by the case, as others are open too."""
    return _update(
        tenant,
        "UPDATE aml_alert SET state = 'CLOSED', resolution = ?, resolved_at_ms = ? "
        "WHERE tenant = ? AND case_id = ? AND state || '' = 'OPEN'",
        (resolution.value, now_ms),
        (case_id,),
    )


def select_outcomes(tenant: str) -> Statement:
    """(rule_id, resolution, how many) of the alerts of rules that were closed."""
    return scoped(
        tenant,
        "SELECT rule_id, resolution, CAST(SUM(alerts) AS BIGINT) FROM aml_alert_count "
        "WHERE tenant = ? AND origin = 'rule' AND state = 'CLOSED' GROUP BY rule_id, resolution",
    )


# --- cases ---

_CASE: Final = ", ".join(Case.__struct_fields__)
_SELECT_CASES: Final = f"SELECT {_CASE} FROM aml_case "
_UPDATE_CASE: Final = (
    f"UPDATE aml_case SET {', '.join(f'{name} = ?' for name in Case.__struct_fields__)} "
    "WHERE tenant = ? AND id = ? AND state = ? AND updated_at_ms = ? AND alerts = ?"
)


def insert_case(tenant: str, case: Case) -> Statement:
    """Store a new case; `Clash` when the customer has an open one."""
    return scoped(tenant, _insert("aml_case", Case), _values(case))


def update_case(tenant: str, before: Case, after: Case) -> Statement:
    """Store what became of a case; `Lost` when somebody else changed it meanwhile."""
    known = (before.id, before.state.value, before.updated_at_ms, before.alerts)
    return _update(tenant, _UPDATE_CASE, _values(after), known, rows=1)


def case_of(row: Row) -> Case:
    """Make a case of a row."""
    return msgspec.convert(dict(zip(Case.__struct_fields__, row, strict=True)), Case)


def select_open_case(tenant: str, customer: str) -> Statement:
    """The case of a customer that is not closed."""
    return scoped(
        tenant, _SELECT_CASES + "WHERE tenant = ? AND customer = ? AND state <> 'CLOSED'", (customer,)
    )


def select_case(tenant: str, case_id: str) -> Statement:
    """One case."""
    return scoped(tenant, _SELECT_CASES + "WHERE tenant = ? AND id = ?", (case_id,))


def insert_entry(tenant: str, case_id: str, entry: CaseEntry) -> Statement:
    """Add a line to the timeline of a case."""
    return scoped(
        tenant,
        "INSERT INTO aml_case_entry (tenant, case_id, at_ms, kind, actor, text) VALUES (?, ?, ?, ?, ?, ?)",
        (case_id, entry.at_ms, entry.kind.value, entry.actor, entry.text),
    )


def select_entries(tenant: str, case_id: str) -> Statement:
    """The timeline of a case, oldest first."""
    return scoped(
        tenant,
        "SELECT at_ms, kind, actor, text FROM aml_case_entry WHERE tenant = ? AND case_id = ? ORDER BY seq",
        (case_id,),
    )


def entry_of(row: Row) -> CaseEntry:
    """Make a line of a timeline of a row."""
    return CaseEntry(row[0], EntryKind(row[1]), row[2], row[3])


#: By what the store keeps count of them.
_ALERTS_COUNTED_BY: Final = frozenset({"state", "severity", "typology", "rule_id"})
_CASES_COUNTED_BY: Final = frozenset({"state", "severity", "assignee"})


class RowFilter(NamedTuple):
    """Which alerts or cases are wanted: column and value pairs, all of which must hold, and a span of time.

    The span is `[since_ms, until_ms)` of when they were made. A page begins after the id `after`.
    """

    columns: tuple[tuple[str, Any], ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    after: str | None = None

    def count_alerts(self, tenant: str) -> Statement:
        """How many alerts."""
        return self._count("aml_alert", "alerts", _ALERTS_COUNTED_BY, "created_at_ms", tenant)

    def alerts(self, tenant: str, limit: int, offset: int, *, descending: bool) -> Statement:
        """A page of alerts, by when they were made."""
        return self._page(_SELECT_ALERTS, "alr", "created_at_ms", tenant, limit, offset, descending)

    def count_cases(self, tenant: str) -> Statement:
        """How many cases."""
        return self._count("aml_case", "cases", _CASES_COUNTED_BY, "opened_at_ms", tenant)

    def cases(self, tenant: str, limit: int, offset: int, *, descending: bool) -> Statement:
        """A page of cases, by when they were opened."""
        return self._page(_SELECT_CASES, "cas", "opened_at_ms", tenant, limit, offset, descending)

    def _count(self, table: str, number: str, kept_by: Set[str], moment: str, tenant: str) -> Statement:
        """Add up what the store keeps count of; where it does not, count the rows."""
        where, args = self._where(moment)
        # An empty text is what stands there for NULL.
        chosen = {column if value != "" else "" for column, value in self.columns if value is not None}
        total = "COUNT(*)"
        if (self.since_ms, self.until_ms) == (None, None) and chosen <= kept_by:
            table, total = f"{table}_count", f"CAST(COALESCE(SUM({number}), 0) AS BIGINT)"
        return scoped(tenant, f"SELECT {total} FROM {table} WHERE {where}", args)

    def _page(
        self, select: str, prefix: str, moment: str, tenant: str, limit: int, offset: int, descending: bool
    ) -> Statement:
        where, args = self._where(moment)
        order, beyond = ("DESC", "<") if descending else ("ASC", ">")
        if self.since_ms is not None:
            # No id is older than its row.
            where, args = f"{where} AND id >= ?", [*args, first_id(prefix, self.since_ms)]
        if self.after is not None:
            where, args, offset = f"{where} AND id {beyond} ?", [*args, self.after], 0
        text = f"{select}WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?"
        return scoped(tenant, text, (*args, limit, offset))

    def _where(self, moment: str) -> tuple[str, list[Any]]:
        parts, args = ["tenant = ?"], []
        for column, value in self.columns:
            if value is not None:
                parts.append(f"{column} = ?")
                args.append(value)
        for sign, bound in ((">=", self.since_ms), ("<", self.until_ms)):
            if bound is not None:
                parts.append(f"{moment} {sign} ?")
                args.append(bound)
        return " AND ".join(parts), args


def select_settings(tenant: str) -> Statement:
    """The settings of a tenant, if any were made."""
    return scoped(tenant, "SELECT four_eyes, inline_screening FROM aml_setting WHERE tenant = ?")


def settings_of(rows: Sequence[Row]) -> OfficerSettings:
    """Make the settings of the rows of `select_settings`."""
    return OfficerSettings(bool(rows[0][0]), bool(rows[0][1])) if rows else OfficerSettings()


def save_settings(tenant: str, settings: OfficerSettings) -> Statement:
    """Store the settings of a tenant."""
    return scoped(
        tenant,
        "INSERT INTO aml_setting (tenant, four_eyes, inline_screening) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant) DO UPDATE SET four_eyes = excluded.four_eyes, "
        "inline_screening = excluded.inline_screening",
        (int(settings.four_eyes), int(settings.inline_screening)),
    )
