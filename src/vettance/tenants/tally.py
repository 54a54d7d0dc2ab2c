"""The tally: what each tenant used of its quota, kept in the store lest a loss of Redis give it back."""

from collections.abc import Iterable
from typing import Protocol

from vettance.db.engine import Store
from vettance.tenants import sql


class SharedQuota(Protocol):
    """What counts the quota of every process. Each call raises `StateDown`."""

    async def used(self, tenants: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return (tenant, hour, requests counted in it)."""

    async def restore(self, tenant: str, hour: int, used: int) -> None:
        """Take up what was counted before a loss; the larger count stands."""


class Tally:
    """Writes down what Redis counted, and gives it back when Redis counts less than was written down."""

    def __init__(self, store: Store, quota: SharedQuota) -> None:
        self._store = store
        self._quota = quota
        self._saved: dict[str, tuple[int, int]] = {}

    async def restore(self, hour: int) -> None:
        """Take up what is written down of an hour (Unix hours)."""
        for tenant, used in await self._store.read(sql.select_quota_use(hour)):
            self._saved[tenant] = (hour, used)
            await self._quota.restore(tenant, hour, used)

    async def save(self) -> None:
        """Write down what was counted since; first mend what was lost."""
        tenants = [row[0] for row in await self._store.read(sql.select_tenants())]
        counted = {tenant: (hour, used) for tenant, hour, used in await self._quota.used(tenants)}
        for tenant, saved in self._saved.items():
            if counted.get(tenant, (0, 0)) < saved:
                await self._quota.restore(tenant, *saved)
                counted[tenant] = saved
        fresh = {tenant: count for tenant, count in counted.items() if self._saved.get(tenant) != count}
        if not fresh:
            return
        newest = max(hour for hour, _ in fresh.values())
        used = [(tenant, count) for tenant, (hour, count) in fresh.items() if hour == newest]
        await self._store.write(*sql.save_quota_use(newest, used))
        self._saved.update(fresh)
