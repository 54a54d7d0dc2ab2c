"""What training reads of the store: decisions in the order of the log, labels, and recent bodies."""

from typing import Final

from vettance.db.engine import Statement, everyone, in_pieces, scoped
from vettance.db.log_walk import walk_log, walk_newest
from vettance.db.tables import DECISION, EVENT, LABEL

_ROW: Final = "seq, id, occurred_at_ms, record, customer_id, email FROM decision WHERE "


def select_decided(tenant: str, after: int, limit: int) -> Statement:
    """(place, id, moment, record, customer, e-mail) of the next decisions of the log."""
    text = f"SELECT {_ROW}{{places}} {{order}} LIMIT ?"
    return in_pieces(walk_log(DECISION, tenant, text, first=after + 1, rest=(limit,)))


def select_labels(tenant: str, after: int, limit: int) -> Statement:
    """(place, event, fraud, weight, at_ms) of the next changes that labels have made."""
    return scoped(
        LABEL,
        tenant,
        "SELECT seq, event, fraud, weight, at_ms FROM label WHERE tenant = ? AND seq > ? "
        "ORDER BY seq LIMIT ?",
        (after, limit),
    )


def select_recent_bodies(tenant: str, limit: int) -> Statement:
    """(body,) of the newest events of a tenant."""
    text = "SELECT seq, sent FROM event WHERE {places} {order} LIMIT ?"
    return in_pieces(walk_newest(EVENT, tenant, text, limit))


def count_recent_events(tenant: str, limit: int) -> Statement:
    """(count,) of a tenant's events; the limit where there are more."""
    text = "SELECT COUNT(*) FROM (SELECT 1 FROM event WHERE tenant = ? LIMIT ?) AS newest"
    rows = (
        "SELECT COUNT(*) FROM (SELECT 1 FROM event WHERE tenant >= ? AND tenant <= ? "
        "ORDER BY tenant DESC, seq DESC LIMIT ?) AS newest"
    )
    return scoped(EVENT, tenant, text, (limit,))._replace(
        postgres=scoped(EVENT, tenant, rows, (tenant, limit))
    )


def select_new_labels(after: int) -> Statement:
    """(tenant, last place, labels of fraud) given after a place, by tenant."""
    return everyone(
        LABEL,
        "SELECT tenant, MAX(seq), SUM(CASE WHEN fraud = 1 THEN weight ELSE 0 END) FROM label "
        "WHERE seq > ? GROUP BY tenant ORDER BY tenant",
        (after,),
    )


def select_newest_labels(tenant: str, limit: int) -> Statement:
    """(event, fraud, weight, at_ms) of the newest changes that labels have made, newest first."""
    return scoped(
        LABEL,
        tenant,
        "SELECT event, fraud, weight, at_ms FROM label WHERE tenant = ? ORDER BY seq DESC LIMIT ?",
        (limit,),
    )
