"""The tally: what each tenant used of its quota, kept in the store lest a restart or a loss give it back."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from vettance.db.engine import Clash, Lost, Misuse, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.limits import sql
from vettance.redis_link.down import StateDown
from vettance.tenants import sql as tenants_sql

#: So much of the quota is lost at the most when a machine fails, or Redis loses its memory. A process that is
#: killed loses nothing (`quota_journal`).
SAVE_S: Final = 5.0
#: What the counts of all tenants are known by among them.
_ALL: Final = ""


class QuotaUsage(Protocol):
    """Keeps what was counted. Each call raises `StoreDown` and `StateDown`."""

    async def restore(self, hour: int) -> None:
        """Take up what is written down of an hour (Unix hours)."""

    async def save(self) -> None:
        """Write down what was counted."""


async def keep_saving(tally: QuotaUsage) -> None:
    """Write down every few seconds, for ever."""
    isolation = Isolation("quota")
    while True:
        await asyncio.sleep(SAVE_S)
        # Of a Redis that is away its own line tells, once.
        with contextlib.suppress(StoreDown), isolation.of(_ALL), contextlib.suppress(StateDown):
            await tally.save()


class OwnQuota(Protocol):
    """What counts the quota of this process, the only one that counts."""

    def used(self) -> tuple[int, dict[str, int]]:
        """Return the hour being counted and what each tenant used of it."""

    def restore(self, hour: int, used: Mapping[str, int]) -> None:
        """Take up what was counted before a restart."""


class OwnQuotaUsage:
    """Writes down what this process counted."""

    def __init__(self, store: Store, quota: OwnQuota) -> None:
        self._store = store
        self._quota = quota
        self._isolation = Isolation("quota")

    async def restore(self, hour: int) -> None:
        """Take up what is written down of an hour (Unix hours)."""
        self._quota.restore(hour, dict(await self._store.read(sql.select_quota_use(hour))))

    async def save(self) -> None:
        """Write down what was counted."""
        hour, used = self._quota.used()
        # Of a tenant that was deleted, nothing is written again.
        rows = await self._store.read(tenants_sql.select_tenants())
        there = {row[0]: used[row[0]] for row in rows if row[0] in used}
        await _save(self._store, self._isolation, hour, there)


async def _save(store: Store, isolation: Isolation, hour: int, used: Mapping[str, int]) -> None:
    """Write down what tenants used, all at once; where that is refused, each by itself."""
    try:
        await store.write(*sql.save_quota_use(hour, used.items()))
    except (Misuse, Clash, Lost):
        for tenant, count in used.items():
            if isolation.is_due(tenant):
                with isolation.of(tenant):
                    await store.write(*sql.save_quota_use(hour, ((tenant, count),)))
    else:
        for failure in isolation.failing:
            isolation.forget(failure.key)


class SharedQuota(Protocol):
    """What counts the quota of every process. Each call raises `StateDown`."""

    async def used(self, tenants: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return (tenant, hour, requests counted in it)."""

    async def restore(self, tenant: str, hour: int, used: int) -> None:
        """Take up what was counted before a loss; the larger count stands."""


class SharedQuotaUsage:
    """Writes down what Redis counted, and gives it back when Redis counts less than was written down."""

    def __init__(self, store: Store, quota: SharedQuota) -> None:
        self._store = store
        self._quota = quota
        self._saved: dict[str, tuple[int, int]] = {}
        self._isolation = Isolation("quota")

    async def restore(self, hour: int) -> None:
        """Take up what is written down of an hour (Unix hours); where Redis is away, `save` gives it back."""
        rows = await self._store.read(sql.select_quota_use(hour))
        self._saved.update((tenant, (hour, used)) for tenant, used in rows)
        with contextlib.suppress(StateDown):
            for tenant, used in rows:
                await self._quota.restore(tenant, hour, used)

    async def save(self) -> None:
        """Write down what was counted since; first mend what was lost."""
        tenants = [row[0] for row in await self._store.read(tenants_sql.select_tenants())]
        self._saved = {tenant: self._saved[tenant] for tenant in tenants if tenant in self._saved}
        counted = {tenant: (hour, used) for tenant, hour, used in await self._quota.used(tenants)}
        for tenant, saved in tuple(self._saved.items()):
            if tenant in counted and counted[tenant][0] < saved[0] - 1:
                # The clock was ahead by more than the hour in which counting goes on, and is right again.
                del self._saved[tenant]
            elif counted.get(tenant, (0, 0)) < saved:
                await self._quota.restore(tenant, *saved)
                counted[tenant] = saved
        fresh = {tenant: count for tenant, count in counted.items() if self._saved.get(tenant) != count}
        if not fresh:
            return
        newest = max(hour for hour, _ in fresh.values())
        used = {tenant: count for tenant, (hour, count) in fresh.items() if hour == newest}
        await _save(self._store, self._isolation, newest, used)
        self._saved.update(fresh)
