"""Finds when an event of a tenant that nobody has labelled counts as legitimate."""

from typing import Final

from vettance.db.engine import Store
from vettance.errors import NotFound
from vettance.feedback import maturity_sql
from vettance.feedback.maturity import maturity_of
from vettance.tenants import sql as tenants_sql

#: The newest labels by which is measured how long they take.
_LABELS: Final = 2_000


async def find_mature_moment(store: Store, tenant: str) -> int:
    """Return the moment (Unix milliseconds, event time) up to which no label is expected any more.

    It goes by the tenant's setting or its newest labels, and by the time that its events have reached.
    """
    days = await find_maturity_days(store, tenant)
    delays = [] if days else await store.read(maturity_sql.select_newest_delays(tenant, _LABELS))
    reached = await store.read(maturity_sql.select_reached(tenant))
    return (reached[0][0] or 0) - maturity_of(days, [row[0] for row in delays])


async def find_maturity_days(store: Store, tenant: str) -> int:
    """Return what a tenant has set, 0 for nothing. Raises `NotFound`."""
    rows = await store.read(tenants_sql.select_tenant(tenant))
    if not rows:
        raise NotFound
    return tenants_sql.tenant_of(rows[0]).label_maturity
