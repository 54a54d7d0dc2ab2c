"""What the store remembers of labels as rules count them: the log of what feedback changed."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import OF_TENANT, Statement, everyone, in_list, in_pieces, scoped
from vettance.db.tables import EVENT, LABEL
from vettance.feedback.label_change import LabelChange

_INSERTS: Final = LABEL.reading(EVENT)
#: What `logged_label` reads: the event as the log of events gives it, and what was said of it.
_COLUMNS: Final = (
    "label.seq, label.tenant, label.id, label.received_at_ms, event.sent, event.signals, "
    "event.received_at_ms, label.event, label.fraud, label.weight, label.at_ms, label.after_seq"
)
_JOINED: Final = (
    f"SELECT {_COLUMNS} FROM label JOIN event ON event.tenant = label.tenant AND event.id = label.event "
)


def insert_label(tenant: str, change: LabelChange, received_at_ms: int) -> Statement:
    """Append what feedback changed, at the end of the log of events; a `Clash` when it is known already."""
    return scoped(
        _INSERTS,
        tenant,
        "INSERT INTO label (tenant, id, event, fraud, weight, at_ms, received_at_ms, after_seq) "
        "SELECT ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(seq), 0) FROM event WHERE tenant = ?)",
        (
            change.id,
            change.event,
            int(change.fraud),
            change.weight,
            change.at_ms,
            received_at_ms,
            tenant,
        ),
    )._replace(
        postgres=scoped(
            _INSERTS,
            tenant,
            "INSERT INTO label (tenant, id, event, fraud, weight, at_ms, received_at_ms, after_seq) "
            "SELECT ?::text, ?::text, ?::text, ?::bigint, ?::bigint, ?::bigint, ?::bigint, "
            "(SELECT COALESCE(MAX(seq), 0) FROM event WHERE tenant = ?)",
            (
                change.id,
                change.event,
                int(change.fraud),
                change.weight,
                change.at_ms,
                received_at_ms,
                tenant,
            ),
        )
    )


def select_changes(tenant: str, event: str) -> Statement:
    """(id, event, fraud, weight, at_ms) of what feedback changed about an event, oldest first."""
    return scoped(
        LABEL,
        tenant,
        "SELECT id, event, fraud, weight, at_ms FROM label WHERE tenant = ? AND event = ? ORDER BY seq",
        (event,),
    )


def select_log(after: int, since_ms: int, limit: int) -> Statement:
    """The labels of all tenants behind a number, given since a moment, with their events."""
    return in_pieces(
        everyone(
            LABEL.reading(EVENT),
            f"{_JOINED}WHERE label.seq > ? AND label.received_at_ms >= ? ORDER BY label.seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_tenant_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """The same of one tenant."""
    return in_pieces(
        scoped(
            LABEL.reading(EVENT),
            tenant,
            f"{_JOINED}WHERE label.tenant = ? AND label.seq > ? AND label.received_at_ms >= ? "
            "ORDER BY label.seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_moments(tenant: str, after: int, base: int, span: tuple[int, int], limit: int) -> Statement:
    """(seq, at_ms) of the labels that count within a span of time, given up to a place of the log."""
    return scoped(
        LABEL,
        tenant,
        "SELECT seq, at_ms FROM label WHERE tenant = ? AND seq > ? AND after_seq <= ? "
        "AND at_ms >= ? AND at_ms <= ? ORDER BY seq LIMIT ?",
        (after, base, *span, limit),
    )


def select_rows(tenant: str, seqs: Sequence[int]) -> Statement:
    """The labels of some numbers, with their events."""
    places, args = in_list(seqs)
    return in_pieces(
        scoped(
            LABEL.reading(EVENT),
            tenant,
            f"{_JOINED}WHERE label.tenant = ? AND label.seq IN ({places})",
            args,
        )
    )


def select_newest(tenant: str) -> Statement:
    """(seq,) of the newest label of a tenant; null where there is none."""
    return scoped(LABEL, tenant, "SELECT MAX(seq) FROM label WHERE tenant = ?")


def select_present(tenant: str, ids: Sequence[str]) -> Statement:
    """Which of some ids are those of events in the log, or of labels."""
    places, args = in_list(ids)
    return scoped(
        EVENT.reading(LABEL),
        tenant,
        f"SELECT id FROM event WHERE {OF_TENANT} AND id IN ({places}) "
        f"UNION ALL SELECT id FROM label WHERE {OF_TENANT} AND id IN ({places})",
        (*args, tenant, *args),
    )
