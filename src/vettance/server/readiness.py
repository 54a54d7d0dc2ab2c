"""Readiness: what must be so for this process to decide, and what somebody should mend although it does."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from vettance.db.engine import Store
from vettance.tenants import sql as tenants_sql
from vettance.web.pages import Check


class Deciding(Protocol):
    """Knows the tenants for whom it decides otherwise than the store says."""

    @property
    def impaired(self) -> Mapping[str, str]:
        """Their ids, and what went wrong."""


def checks_of(
    store: Store, configuration_faults: Callable[[], Iterable[str | None]], redis: Check | None
) -> dict[str, Check]:
    """Return what must be so for this process to decide."""

    async def check_store() -> str | None:
        await store.read(tenants_sql.select_last_change())
        return None if store.healthy() else "takes no writes"

    async def check_configuration() -> str | None:
        return next(filter(None, configuration_faults()), None)

    checks: dict[str, Check] = {"store": check_store, "configuration": check_configuration}
    return checks if redis is None else {**checks, "redis": redis}


def notices_of(watchlists: Check, deciding: Iterable[Deciding], replica: Check | None) -> dict[str, Check]:
    """Return what readiness says in addition, because somebody should mend it."""

    async def notice_impaired() -> str | None:
        count = len({tenant for one in deciding for tenant in one.impaired})
        return f"{count} not by what the store says: see `vettance doctor`" if count else None

    notices: dict[str, Check] = {"watchlists": watchlists, "tenants": notice_impaired}
    return notices if replica is None else {**notices, "replica": replica}
