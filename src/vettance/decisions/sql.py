"""What the store remembers of events and their decisions: the log."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.db.engine import Row, Statement, everyone, in_list, in_pieces, scoped
from vettance.decisions.decision import Decision, Record
from vettance.events.event import Event, Source

_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(Record).decode

_INSERT_EVENT: Final = (
    "INSERT INTO event (tenant, id, source, received_at_ms, occurred_at_ms, sent, signals) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_DECISION: Final = (
    "INSERT INTO decision (tenant, id, evaluated_at_ms, occurred_at_ms, event_name, event_category, "
    "decision, score, level, customer_id, email, device_id, fingerprint, ip, country, session_id, record, "
    "received_at_ms, reasons) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def insert_event(
    tenant: str, event_id: str, source: Source, event: Event, sent: bytes, signals: bytes | None = None
) -> Statement:
    """Append an event, as it was sent, to the log, with the signals its session had queued by then."""
    return scoped(
        tenant,
        _INSERT_EVENT,
        (event_id, source.value, event.received_at_ms, event.occurred_at_ms, sent, signals),
    )


def insert_decision(
    tenant: str, event_id: str, event: Event, decision: Decision, record: Record, now_ms: int
) -> Statement:
    """Store the decision about an event of the same id."""
    return scoped(
        tenant,
        _INSERT_DECISION,
        (
            event_id,
            now_ms,
            event.occurred_at_ms,
            event.name,
            event.category.value,
            decision.outcome.value,
            decision.score,
            decision.level,
            event.customer_id,
            event.email,
            event.device_id,
            event.fingerprint,
            event.ip,
            event.country,
            event.session_id,
            _encode_record(record),
            event.received_at_ms,
            " ".join([reason.code for reason in decision.reasons]),
        ),
    )


class Stored(NamedTuple):
    """An event and its decision, read back. `sent` is the body as received; moments are Unix milliseconds.

    `signals` is what the browser had queued for the session when the event was decided, as JSON.
    """

    id: str
    source: str
    received_at_ms: int
    evaluated_at_ms: int
    sent: bytes
    record: Record
    entities: "Entities"
    signals: bytes | None


class Entities(NamedTuple):
    """What an event is linked by, in canonical form."""

    customer: str | None
    device: str | None
    ip: str | None
    email: str | None
    session: str | None


_STORED: Final = (
    "event.id, event.source, event.received_at_ms, decision.evaluated_at_ms, event.sent, decision.record, "
    "COALESCE(decision.customer_id, decision.email), COALESCE(decision.fingerprint, decision.device_id), "
    "decision.ip, decision.email, decision.session_id, event.signals"
)


def select_decision(tenant: str, event_id: str) -> Statement:
    """One event with its decision."""
    return scoped(
        tenant,
        f"SELECT {_STORED} FROM event JOIN decision ON decision.id = event.id "
        "WHERE event.tenant = ? AND event.id = ?",
        (event_id,),
    )


class Listed(NamedTuple):
    """A stored decision with what a list shows beside it."""

    stored: Stored
    seq: int
    event_name: str
    customer_id: str | None
    device_id: str | None
    fingerprint: str | None
    country: str | None


def select_listed(tenant: str, seqs: Sequence[int], *, bodies: bool) -> Statement:
    """Some decisions by their places in the log, in any order; `sent` as well with `bodies`."""
    places, args = in_list(seqs)
    stored = _STORED if bodies else _STORED.replace("event.sent", "NULL").replace("event.signals", "NULL")
    return in_pieces(
        scoped(
            tenant,
            f"SELECT decision.seq, {stored}, decision.event_name, decision.customer_id, decision.device_id, "
            "decision.fingerprint, decision.country FROM decision JOIN event ON event.id = decision.id "
            f"WHERE decision.tenant = ? AND decision.seq IN ({places})",
            args,
        )
    )


def listed_of(row: Row) -> Listed:
    """Make a listed decision of a row of `select_listed`."""
    return Listed(stored_of(row[1:13]), row[0], *row[13:18])


def exists_event(tenant: str, event_id: str) -> Statement:
    """One row when the tenant has this event."""
    return scoped(tenant, "SELECT 1 FROM event WHERE tenant = ? AND id = ?", (event_id,))


def stored_of(row: Row) -> Stored:
    """Make a stored decision of a row of `select_decision`."""
    entities = Entities(*row[6:11])
    return Stored(row[0], row[1], row[2], row[3], row[4] or b"", _decode_record(row[5]), entities, row[11])


def select_log(after: int, since_ms: int, limit: int) -> Statement:
    """(seq, tenant, id, received_at_ms, sent, signals) of events received since a moment, in log order.

    All statements of the log read in pieces, however many rows they are asked for.
    """
    return in_pieces(
        everyone(
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event "
            "WHERE seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_tenant_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """The same for one tenant."""
    return in_pieces(
        scoped(
            tenant,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event WHERE tenant = ? AND seq > ? "
            "AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_decided_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """The same with the record of each decision, and the door its event came in by, behind it."""
    return in_pieces(
        scoped(
            tenant,
            "SELECT event.seq, event.tenant, event.id, event.received_at_ms, event.sent, event.signals, "
            "decision.record, event.source FROM event JOIN decision ON decision.id = event.id "
            "WHERE event.tenant = ? AND event.seq > ? AND event.received_at_ms >= ? "
            "ORDER BY event.seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_moments(tenant: str, after: int, base: int, span: tuple[int, int], limit: int) -> Statement:
    """(seq, occurred_at_ms) of the events of a span of time, both ends included, up to a place of the log."""
    return scoped(
        tenant,
        "SELECT seq, occurred_at_ms FROM event WHERE tenant = ? AND seq > ? AND seq <= ? "
        "AND occurred_at_ms >= ? AND occurred_at_ms <= ? ORDER BY seq LIMIT ?",
        (after, base, *span, limit),
    )


def select_rows(tenant: str, seqs: Sequence[int]) -> Statement:
    """The events at some places of the log, as `select_log` gives them."""
    places, args = in_list(seqs)
    return in_pieces(
        scoped(
            tenant,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event "
            f"WHERE tenant = ? AND seq IN ({places})",
            args,
        )
    )


def select_imported_log(tenant: str, after: int, limit: int) -> Statement:
    """The imported events behind a place of the log, as `select_log` gives them."""
    return in_pieces(
        scoped(
            tenant,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event "
            "WHERE tenant = ? AND seq > ? AND source = 'import' ORDER BY seq LIMIT ?",
            (after, limit),
        )
    )


class Run(NamedTuple):
    """An import of events that happened from `first_ms` to `last_ms`, by its id.

    `base` is the place in the log up to which it sees the events of others. What was imported behind it, and
    not behind the base of a later run, is its own: a tenant's imports are decided one after the other.
    """

    id: str
    base: int
    first_ms: int
    last_ms: int


def select_runs(tenant: str) -> Statement:
    """The imports of a tenant of which something may be in the log, in the order in which they came there."""
    return scoped(
        tenant,
        "SELECT id, base, first_ms, last_ms FROM import_run "
        "WHERE tenant = ? AND kind = 'fraud' AND base IS NOT NULL ORDER BY base, begun_at_ms",
    )


def record_of(stored: bytes) -> Record:
    """Read a record of the log."""
    return _decode_record(stored)


def select_present(tenant: str, ids: Sequence[str]) -> Statement:
    """Which of some events are in the log."""
    places, args = in_list(ids)
    return scoped(tenant, f"SELECT id FROM event WHERE tenant = ? AND id IN ({places})", args)


def select_last_evaluated() -> Statement:
    """When the newest decision of the log was made (Unix milliseconds)."""
    return everyone("SELECT evaluated_at_ms FROM decision ORDER BY seq DESC LIMIT 1")


def select_newest_sent(tenant: str, limit: int, bytes_max: int) -> Statement:
    """What stands in the newest events of a tenant, newest first: the rows of `coverage.Newest`.

    Bodies beyond so many bytes are left out.
    """
    text = (
        "SELECT decision.event_category, decision.customer_id, decision.email, decision.device_id, "
        "decision.fingerprint, decision.ip, decision.session_id, "
        f"CASE WHEN LENGTH(event.sent) <= {bytes_max:d} THEN event.sent END "
        "FROM decision JOIN event ON event.id = decision.id WHERE decision."
    )
    # Told `tenant = ?`, PostgreSQL may sort all of a tenant's, or walk the places of all tenants.
    rows = scoped(
        tenant,
        text
        + "tenant >= ? AND decision.tenant <= ? ORDER BY decision.tenant DESC, decision.seq DESC LIMIT ?",
        (tenant, limit),
    )
    newest = scoped(tenant, text + "tenant = ? ORDER BY decision.seq DESC LIMIT ?", (limit,))
    return in_pieces(newest._replace(postgres=in_pieces(rows)))


def select_last_event() -> Statement:
    """(seq, id) of the newest event of the log."""
    return everyone("SELECT seq, id FROM event ORDER BY seq DESC LIMIT 1")


def select_event_at(seq: int) -> Statement:
    """(id,) of the event at a place of the log."""
    return everyone("SELECT id FROM event WHERE seq = ?", (seq,))
