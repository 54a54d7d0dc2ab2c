"""Finds how long the labels of a tenant take, and when an event without one counts as legitimate."""

from typing import Final

from vettance.db.engine import Store
from vettance.errors import NotFound
from vettance.feedback import maturity_sql
from vettance.feedback.maturity import LabelTiming, timing_of
from vettance.tenants import sql as tenants_sql

#: The newest labels by which is measured how long they take.
_LABELS: Final = 20_000


async def find_label_timing(store: Store, tenant: str) -> LabelTiming:
    """Return it by the tenant's setting and its newest labels. Raises `NotFound`."""
    rows = await store.read(tenants_sql.select_tenant(tenant))
    if not rows:
        raise NotFound
    delays = await store.read(maturity_sql.select_newest_delays(tenant, _LABELS))
    reached = await store.read(maturity_sql.select_reached(tenant))
    days = tenants_sql.tenant_of(rows[0]).label_maturity
    return timing_of(reached[0][0] or 0, [row[0] for row in delays], days)
