"""What one asks the store about the log of AML in a turn; in words of PostgreSQL, which alone gives turns."""

from collections.abc import Mapping
from typing import Final

from vettance.aml.sql import AREA
from vettance.db.engine import Statement, everyone
from vettance.db.tables import AML_EVENT, CHANGE

_SELECT_SINCE: Final = (
    "SELECT one.tenant, one.changed, log.seq, log.id, log.external_id, log.received_at_ms, log.sent "
    "FROM (SELECT given.tenant, given.reached, (SELECT COALESCE(MAX(change.seq), 0) FROM change "
    f"WHERE change.tenant = given.tenant AND change.area = '{AREA}') AS changed "
    "FROM unnest(?::TEXT[], ?::BIGINT[]) AS given (tenant, reached)) AS one "
    "LEFT JOIN LATERAL (SELECT * FROM (SELECT seq, id, external_id, received_at_ms, sent, "
    "SUM(octet_length(sent)) OVER (ORDER BY seq) - octet_length(sent) AS before_bytes "
    "FROM (SELECT seq, id, external_id, received_at_ms, sent FROM aml_event "
    "WHERE aml_event.tenant = one.tenant AND aml_event.seq > one.reached "
    "ORDER BY aml_event.seq LIMIT ?) AS next) AS weighed WHERE before_bytes < ?) AS log ON TRUE "
    "ORDER BY log.seq"
)


def select_since(reached: Mapping[str, int], limit: int, bytes_max: int) -> Statement:
    """(tenant, newest change, seq, id, external_id, received_at_ms, sent) of each tenant's next events.

    Of each at most `limit`, and none after the one with which they reach `bytes_max`; but at least one
    row: a tenant that has no event beyond what it `reached` has NULL for it.
    """
    return Statement(
        _SELECT_SINCE,
        (list(reached), list(reached.values()), limit, bytes_max),
        tables=CHANGE.reading(AML_EVENT),
    )


def select_tenants_since(after: int) -> Statement:
    """(tenant, seq of the last) of all tenants with events beyond a place in the log."""
    return everyone(
        AML_EVENT, "SELECT tenant, MAX(seq) FROM aml_event WHERE seq > ? GROUP BY tenant", (after,)
    )
