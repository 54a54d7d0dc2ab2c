"""What the coverage of AML events is computed from."""

from vettance.db.engine import Statement, in_pieces, scoped
from vettance.db.tables import AML_EVENT


def select_newest_sent(tenant: str, limit: int, bytes_max: int) -> Statement:
    """(event time, body) of the newest events of a tenant, newest first; large bodies are left out."""
    columns = f"SELECT occurred_at_ms, CASE WHEN LENGTH(sent) <= {bytes_max:d} THEN sent END FROM "
    newest = scoped(
        AML_EVENT, tenant, f"{columns}aml_event WHERE tenant = ? ORDER BY seq DESC LIMIT ?", (limit,)
    )
    # As long as it has not counted them, PostgreSQL sorts all events of the tenant, however it is asked for
    # the last ones; so it is led from each to the one before.
    last = "SELECT MAX(seq) FROM aml_event WHERE tenant = "
    rows = (
        f"WITH RECURSIVE newest (tenant, seq) AS (SELECT ?, ({last}?) UNION ALL "
        f"SELECT tenant, ({last}newest.tenant AND seq < newest.seq) FROM newest WHERE seq IS NOT NULL) "
        f"{columns}newest CROSS JOIN LATERAL (SELECT occurred_at_ms, sent FROM aml_event "
        "WHERE aml_event.tenant = newest.tenant AND aml_event.seq = newest.seq) AS event LIMIT ?"
    )
    shared = scoped(AML_EVENT, tenant, rows, (tenant, limit))
    return in_pieces(newest._replace(postgres=shared))
