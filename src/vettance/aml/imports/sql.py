"""What imports ask of the log of AML: its events in the order of their own time, what one has brought."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import Statement, in_list, in_pieces, scoped
from vettance.db.tables import AML_EVENT

_LOG: Final = "SELECT seq, id, external_id, received_at_ms, sent FROM aml_event "


def select_moments(tenant: str, after: int, base: int, span: tuple[int, int], limit: int) -> Statement:
    """(seq, occurred_at_ms) of the events of a span of time, both ends included, up to a place of the log."""
    return scoped(
        AML_EVENT,
        tenant,
        "SELECT seq, occurred_at_ms FROM aml_event WHERE tenant = ? AND seq > ? AND seq <= ? "
        "AND occurred_at_ms >= ? AND occurred_at_ms <= ? ORDER BY seq LIMIT ?",
        (after, base, *span, limit),
    )


def select_rows(tenant: str, seqs: Sequence[int]) -> Statement:
    """(seq, id, external_id, received_at_ms, sent) of the events at some places of the log, in any order."""
    places, args = in_list(seqs)
    return in_pieces(scoped(AML_EVENT, tenant, f"{_LOG}WHERE tenant = ? AND seq IN ({places})", args))


def select_imported_log(tenant: str, import_id: str, after: int, limit: int) -> Statement:
    """The same of what an import has brought after a position of the log, as it is there."""
    text = f"{_LOG}WHERE tenant = ? AND import_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return in_pieces(scoped(AML_EVENT, tenant, text, (import_id, after, limit)))
