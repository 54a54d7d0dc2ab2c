"""What suggestions read of the store: the outline of every decision, and some decisions whole."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import Statement, in_list, in_pieces, scoped
from vettance.db.log_walk import walk_log
from vettance.db.tables import DECISION, EVENT, LABEL
from vettance.decisions.searchable_fields import entity_sql

_OUTLINE: Final = "seq, id, occurred_at_ms, decision FROM decision WHERE "


def select_outlines(tenant: str, after: int, limit: int) -> Statement:
    """(place, id, moment, decision) of the next decisions of the log."""
    text = f"SELECT {_OUTLINE}{{places}} {{order}} LIMIT ?"
    return in_pieces(walk_log(DECISION, tenant, text, first=after + 1, rest=(limit,)))


def select_keys(tenant: str, after: int, limit: int) -> Statement:
    """(place, moment, event name, category, customer, device, ip) of the next decisions of the log."""
    keys = ", ".join(entity_sql(kind) for kind in ("customer", "device", "ip"))
    columns = f"seq, occurred_at_ms, event_name, event_category, {keys}"
    text = f"SELECT {columns} FROM decision WHERE {{places}} {{order}} LIMIT ?"
    return in_pieces(walk_log(DECISION, tenant, text, first=after + 1, rest=(limit,)))


def select_logged(tenant: str, seqs: Sequence[int], *, bodies: bool = True) -> Statement:
    """(place, id, received_at_ms, sent, signals, record) of the decisions at some places, in their order.

    Without `bodies`, what was sent is null.
    """
    places, args = in_list(seqs)
    columns = "event.received_at_ms, event.sent, event.signals" if bodies else "NULL, NULL, NULL"
    joined = " JOIN event ON event.id = decision.id" if bodies else ""
    return in_pieces(
        scoped(
            DECISION.reading(EVENT) if bodies else DECISION,
            tenant,
            f"SELECT decision.seq, decision.id, {columns}, decision.record FROM decision{joined} "
            f"WHERE decision.tenant = ? AND decision.seq IN ({places}) ORDER BY decision.seq",
            args,
        )
    )


def count_frauds(tenant: str) -> Statement:
    """(count,) of the events that count as fraud by their labels."""
    text = "SELECT COALESCE(SUM(weight), 0) FROM label WHERE tenant = ? AND fraud = 1"
    return scoped(LABEL, tenant, text)
