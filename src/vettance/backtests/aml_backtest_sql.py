"""What backtests of AML rules ask of the log of AML events and of cases."""

from vettance.db.engine import Statement, in_pieces, scoped
from vettance.db.tables import AML_CASE, AML_EVENT


def select_watched_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """(seq, id, received_at_ms, sent, alerts, import_id, record, external_id, occurred_at_ms) of a tenant's
    events received since a moment.
    """
    return in_pieces(
        scoped(
            AML_EVENT,
            tenant,
            "SELECT seq, id, received_at_ms, sent, alerts, import_id, record, external_id, occurred_at_ms "
            "FROM aml_event "
            "WHERE tenant = ? AND seq > ? AND received_at_ms >= ? ORDER BY seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_record_beginnings(tenant: str, span: tuple[int, int], after: int, limit: int) -> Statement:
    """(beginning, place) of the next events of the log, a row for each beginning of their records.

    The beginning is the first bytes of a record, null of events received outside of a span (Unix
    milliseconds, from and before); the place is that of its last event among these.
    """
    text = (
        "SELECT beginning, MAX(seq) FROM (SELECT seq, CASE WHEN received_at_ms >= ? AND received_at_ms < ? "
        "THEN substr(record, 1, 12) END AS beginning FROM aml_event WHERE tenant = ? AND seq > ? "
        "ORDER BY seq LIMIT ?) AS step GROUP BY beginning"
    )
    return Statement(text, (*span, tenant, after, limit), tenant=tenant, tables=AML_EVENT)


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
