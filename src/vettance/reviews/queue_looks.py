"""Looks into the queue that people share who ask at the same moment."""

import asyncio
from collections.abc import Callable
from typing import Final

from vettance.db.engine import Row, Store
from vettance.reviews import sql

#: How many free reviews are read at once, for all who ask at that moment; other processes may take some.
FREE_READ: Final = 64


class QueueLooks:
    """Tells what comes first in the queue of a tenant, in one query for all who ask meanwhile."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        #: By tenant, who asks in this turn of the loop, and the query that will answer them.
        self._asking: dict[str, tuple[set[str], asyncio.Future[list[Row]]]] = {}
        #: By tenant, the query of the first free reviews that is running.
        self._reading: dict[str, asyncio.Future[list[Row]]] = {}

    async def first_assigned(self, tenant: str, by: str, until_ms: int) -> str | None:
        """Return the first review that a lead has assigned to somebody beyond a moment."""
        if tenant not in self._asking:
            people: set[str] = set()
            self._asking[tenant] = people, asyncio.ensure_future(self._assigned(tenant, people, until_ms))
        people, answer = self._asking[tenant]
        people.add(by)
        return next((str(decision) for decision, to in await asyncio.shield(answer) if to == by), None)

    async def _assigned(self, tenant: str, people: set[str], until_ms: int) -> list[Row]:
        await asyncio.sleep(0)
        del self._asking[tenant]
        return await self._store.read(sql.select_assigned(tenant, sorted(people), until_ms))

    async def first_free(self, tenant: str) -> list[str]:
        """Return the first reviews that nobody holds."""
        reading = self._reading.get(tenant)
        if reading is None:
            asked = self._store.read(sql.select_next(tenant, self._now_ms(), FREE_READ))
            reading = self._reading[tenant] = asyncio.ensure_future(asked)
            reading.add_done_callback(lambda _: self._reading.pop(tenant))
        return [str(decision) for (decision,) in await asyncio.shield(reading)]
