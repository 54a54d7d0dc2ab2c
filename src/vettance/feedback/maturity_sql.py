"""What the store says of how long labels take: their delays, and how far the stream of events has come."""

from vettance.db.engine import Statement, scoped
from vettance.db.tables import DECISION, LABEL


def select_newest_delays(tenant: str, limit: int) -> Statement:
    """(milliseconds,) from an event to its label, of the newest labels."""
    return scoped(
        LABEL.reading(DECISION),
        tenant,
        "SELECT newest.at_ms - decision.occurred_at_ms FROM (SELECT event, at_ms FROM label WHERE tenant = ? "
        "AND weight > 0 ORDER BY seq DESC LIMIT ?) AS newest JOIN decision ON decision.id = newest.event "
        "WHERE decision.tenant = ?",
        (limit, tenant),
    )


def select_reached(tenant: str) -> Statement:
    """(moment,) of the newest decisions' latest event."""
    text = (
        "SELECT MAX(occurred_at_ms) FROM (SELECT occurred_at_ms FROM decision WHERE tenant = ? "
        "ORDER BY seq DESC LIMIT 1000) AS newest"
    )
    rows = (
        "SELECT MAX(occurred_at_ms) FROM (SELECT occurred_at_ms FROM decision WHERE tenant >= ? "
        "AND tenant <= ? ORDER BY tenant DESC, seq DESC LIMIT 1000) AS newest"
    )
    return scoped(DECISION, tenant, text)._replace(postgres=scoped(DECISION, tenant, rows, (tenant,)))
