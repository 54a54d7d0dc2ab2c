"""What the coverage of AML events is computed from."""

from vettance.db.engine import Statement, in_pieces, scoped
from vettance.db.tables import AML_EVENT


def select_newest_sent(tenant: str, limit: int, bytes_max: int) -> Statement:
    """(event time, body) of the newest events of a tenant, newest first; large bodies are left out."""
    text = (
        f"SELECT occurred_at_ms, CASE WHEN LENGTH(sent) <= {bytes_max:d} THEN sent END FROM aml_event WHERE "
    )
    newest = scoped(AML_EVENT, tenant, text + "tenant = ? ORDER BY seq DESC LIMIT ?", (limit,))
    # Given `tenant = ?`, PostgreSQL may sort all of a tenant's, or scan the places of all tenants.
    rows = text + "tenant >= ? AND tenant <= ? ORDER BY tenant DESC, seq DESC LIMIT ?"
    return in_pieces(newest._replace(postgres=in_pieces(scoped(AML_EVENT, tenant, rows, (tenant, limit)))))
