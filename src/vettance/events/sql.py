"""What the store remembers of events: the log."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.db.engine import Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.tables import EVENT, IMPORT_RUN, Insert
from vettance.events.event import Event, EventSource

_INSERT_EVENT: Final = Insert(EVENT, "tenant, id, source, received_at_ms, occurred_at_ms, sent, signals")


def insert_event(
    tenant: str, event_id: str, source: EventSource, event: Event, sent: bytes, signals: bytes | None = None
) -> Statement:
    """Append an event, as it was sent, to the log, with the signals its session had queued by then."""
    return insert(
        _INSERT_EVENT,
        tenant,
        (event_id, source.value, event.received_at_ms, event.occurred_at_ms, sent, signals),
    )


def exists_event(tenant: str, event_id: str) -> Statement:
    """One row when the tenant has this event."""
    return scoped(EVENT, tenant, "SELECT 1 FROM event WHERE tenant = ? AND id = ?", (event_id,))


def select_event(tenant: str, event_id: str) -> Statement:
    """One event, as `select_log` gives it."""
    return scoped(
        EVENT,
        tenant,
        "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event WHERE tenant = ? AND id = ?",
        (event_id,),
    )


def select_log(after: int, since_ms: int, limit: int) -> Statement:
    """(seq, tenant, id, received_at_ms, sent, signals) of events received since a moment, in log order.

    All statements of the log read in pieces, however many rows they are asked for.
    """
    return in_pieces(
        everyone(
            EVENT,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event "
            "WHERE seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_tenant_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """The same for one tenant."""
    return in_pieces(
        scoped(
            EVENT,
            tenant,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event WHERE tenant = ? AND seq > ? "
            "AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_moments(tenant: str, after: int, base: int, span: tuple[int, int], limit: int) -> Statement:
    """(seq, occurred_at_ms) of the events of a span of time, both ends included, up to a place of the log."""
    return scoped(
        EVENT,
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
            EVENT,
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
            EVENT,
            tenant,
            "SELECT seq, tenant, id, received_at_ms, sent, signals FROM event "
            "WHERE tenant = ? AND seq > ? AND source = 'import' ORDER BY seq LIMIT ?",
            (after, limit),
        )
    )


class ImportRun(NamedTuple):
    """An import of events that happened from `first_ms` to `last_ms`, by its id.

    `base` is the place in the log up to which it sees the events of others. What was imported behind it, and
    not behind the base of a later run, is its own: a tenant's imports are decided one after the other.
    """

    id: str
    base: int
    first_ms: int
    last_ms: int


def select_runs(tenant: str, kind: str = "fraud") -> Statement:
    """The imports of a tenant of which something may be in the log, in the order in which they came there."""
    return scoped(
        IMPORT_RUN,
        tenant,
        "SELECT id, base, first_ms, last_ms FROM import_run "
        "WHERE tenant = ? AND kind = ? AND base IS NOT NULL ORDER BY base, begun_at_ms",
        (kind,),
    )


def select_last_event() -> Statement:
    """(seq, id) of the newest event of the log."""
    return everyone(EVENT, "SELECT seq, id FROM event ORDER BY seq DESC LIMIT 1")


def select_event_at(seq: int) -> Statement:
    """(id,) of the event at a place of the log."""
    return everyone(EVENT, "SELECT id FROM event WHERE seq = ?", (seq,))
