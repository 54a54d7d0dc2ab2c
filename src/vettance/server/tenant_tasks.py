"""Tenant tasks: do what takes long for a tenant, so that the look for changes need not wait for it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from vettance.db.engine import StoreDown
from vettance.fairness.isolation import Isolation

PAUSE_S: Final = 1.0
#: What `after` is known by among the tenants.
_AFTER: Final = ""


async def _nothing() -> None:
    pass


class TenantTasks:
    """Does `work` for tenants one after the other, again until it is done; what fails for one keeps no other.

    `name` is what the work is called where it fails. `also` returns tenants that need it without anybody
    having asked, `after` is what else is done once a second.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[str], Awaitable[None]],
        also: Callable[[], Iterable[str]] = tuple,
        after: Callable[[], Awaitable[None]] = _nothing,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._also = also
        self._after = after
        self._isolation = Isolation(name, now_s)
        # In the order in which it was asked for; a dict because there is no ordered set.
        self._wanted: dict[str, None] = {}
        self._wake = asyncio.Event()
        #: Why nobody's work is done, for readiness. What fails for one tenant is no fault of the service.
        self.fault: str | None = None

    async def ask(self, tenant: str, _subject: str = "") -> None:
        """Work for a tenant soon."""
        self._wanted[tenant] = None
        self._isolation.hurry(tenant)
        self._wake.set()

    async def look(self) -> None:
        """Do what is wanted now, but for those for whom it has just failed."""
        down = None
        for tenant in self._isolation.due(dict.fromkeys((*self._wanted, *self._also()))):
            # A request from here on wants it done once more.
            self._wanted.pop(tenant, None)
            down = await self._try(tenant, self._work(tenant)) or down
            if not self._isolation.is_due(tenant):
                self._wanted[tenant] = None
        if self._isolation.is_due(_AFTER):
            down = await self._try(_AFTER, self._after()) or down
        failing = {failure.key: failure.error for failure in self._isolation.failing}
        is_held = any(tenant not in failing and not self._isolation.is_due(tenant) for tenant in self._wanted)
        self.fault = down or failing.get(_AFTER) or (self.fault if is_held else None)

    async def run(self) -> None:
        """Look whenever it is asked to, and once a second, for ever."""
        while True:
            try:
                async with asyncio.timeout(PAUSE_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            await self.look()

    async def _try(self, key: str, step: Awaitable[None]) -> str | None:
        """Return why the store did not serve a step; it need not refuse the next one as well."""
        try:
            with self._isolation.of(key):
                await step
        except StoreDown as error:
            return str(error) or "the store is away"
        return None
