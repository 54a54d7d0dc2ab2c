"""Attend: what takes long for a tenant is done beside the look for changes, which must not wait for it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from vettance.db.engine import StoreDown

PAUSE_S = 1.0

_log = structlog.get_logger()


async def _nothing() -> None:
    pass


class Attendant:
    """Does `work` for tenants one after the other, again until it is done; what fails for one keeps no other.

    `also` tells of tenants that need it without anybody having asked, `after` is what else is done once a
    second.
    """

    def __init__(
        self,
        work: Callable[[str], Awaitable[None]],
        also: Callable[[], Iterable[str]] = tuple,
        after: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        self._work = work
        self._also = also
        self._after = after
        # In the order in which it was asked for; a dict for want of an ordered set.
        self._wanted: dict[str, None] = {}
        self._wake = asyncio.Event()
        #: Why something of the newest round is not done, for readiness; None when all went well.
        self.fault: str | None = None

    async def ask(self, tenant: str, _subject: str = "") -> None:
        """See to a tenant soon."""
        self._wanted[tenant] = None
        self._wake.set()

    async def look(self) -> None:
        """Do what is wanted now."""
        fault = None
        for tenant in dict.fromkeys((*self._wanted, *self._also())):
            # Whoever asks from here on wants it done once more.
            self._wanted.pop(tenant, None)
            if failed := await self._try(self._work(tenant), tenant):
                self._wanted[tenant] = None
                fault = fault or failed
        self.fault = await self._try(self._after()) or fault

    async def run(self) -> None:
        """Look whenever it is asked to, and once a second, for ever."""
        while True:
            try:
                async with asyncio.timeout(PAUSE_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            if self.fault is not None:
                await asyncio.sleep(PAUSE_S)  # Whoever asks does not make what fails be tried faster.
            self._wake.clear()
            await self.look()

    async def _try(self, step: Awaitable[None], tenant: str | None = None) -> str | None:
        """Return why a step failed, None when it went well."""
        try:
            await step
        except StoreDown as error:
            return str(error) or "the store is away"
        except Exception as error:  # noqa: BLE001
            # A loop that died silently would leave every tenant as it is; this one says what happened. Its
            # text may repeat somebody's data, and anybody may ask whether we are ready.
            _log.exception("tenant_not_attended", tenant=tenant)
            return type(error).__name__
        return None
