"""What backtests of AML rules ask of the log of AML events and of cases."""

from vettance.db.engine import Statement, in_pieces, scoped
from vettance.db.tables import AML_CASE, AML_EVENT


def select_watched_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """(seq, id, received_at_ms, sent, alerts, import_id) of a tenant's events received since a moment."""
    return in_pieces(
        scoped(
            AML_EVENT,
            tenant,
            "SELECT seq, id, received_at_ms, sent, alerts, import_id FROM aml_event "
            "WHERE tenant = ? AND seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def count_events(tenant: str) -> Statement:
    """How many events a tenant has in the log."""
    return scoped(AML_EVENT, tenant, "SELECT COUNT(*) FROM aml_event WHERE tenant = ?")


def select_case_ends(tenant: str, after: str, limit: int) -> Statement:
    """(id, customer, resolved_at_ms, resolution) of a tenant's closed cases behind an id."""
    return in_pieces(
        scoped(
            AML_CASE,
            tenant,
            "SELECT id, customer, resolved_at_ms, resolution FROM aml_case "
            "WHERE tenant = ? AND id > ? AND state = 'CLOSED' ORDER BY id LIMIT ?",
            (after, limit),
        )
    )
