"""What backtests of AML rules ask of the log of AML events, of alerts and of cases."""

from collections.abc import Sequence

from vettance.db.engine import Statement, in_list, in_pieces, scoped
from vettance.db.tables import AML_ALERT, AML_CASE, AML_EVENT


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


def select_alert_ends(tenant: str, alerts: Sequence[str]) -> Statement:
    """(id, rule_id, resolution) of those of some alerts that rules raised."""
    places, args = in_list(alerts)
    read = "SELECT id, rule_id, resolution FROM aml_alert"
    chosen = f"tenant = ? AND origin = 'rule' AND id IN ({places})"
    # By its tenant SQLite would go through all alerts; the plus has it look them up by their ids.
    return scoped(AML_ALERT, tenant, f"{read} WHERE +{chosen}", args)._replace(
        postgres=scoped(AML_ALERT, tenant, f"{read} WHERE {chosen}", args)
    )


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
