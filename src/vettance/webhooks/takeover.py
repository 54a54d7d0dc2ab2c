"""Succeed: what a deliverer that died had claimed is free at once, and the others know of its retries."""

import asyncio
from typing import Final, Protocol

from vettance.db.engine import Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.webhooks import delivery_queue

#: How often a deliverer looks who is still there. What a dead one had claimed is sent within twice this time.
LOOK_S: Final = 0.5

_log = logger()


class Members(Protocol):
    """Knows who delivers from a store (see `db.membership`)."""

    #: By which the others know this process.
    number: int

    async def look(self) -> frozenset[int]:
        """Be among them, and return the numbers of all. Raises `StoreDown`."""

    async def leave(self) -> None:
        """Be no more among them."""


class DelivererTakeover:
    """Takes over from deliverers that are gone. Run `keep` along with the work, after a first `look`."""

    def __init__(self, store: Store, members: Members) -> None:
        self._store = store
        self._members = members
        self._known: frozenset[int] = frozenset()
        self._isolation = Isolation("webhook_succession", lambda: asyncio.get_running_loop().time())
        #: Whether somebody went since this was last set to False: nobody has their retries in mind.
        self.is_open = False

    @property
    def leads(self) -> bool:
        """Whether this process does what one of them is enough for. Two may think so for a moment."""
        return self._members.number <= min(self._known, default=self._members.number)

    async def look(self) -> None:
        """See who is there, and free what others had claimed who are not. Raises `StoreDown`."""
        present = await self._members.look()
        rows = await self._store.read(delivery_queue.select_lease_owners())
        owners = {delivery_queue.owner_of(row[0]) for row in rows}
        gone = (self._known | owners) - present - {self._members.number}
        for number in gone & owners:
            freed = (await self._store.write(delivery_queue.release_of(number)))[0]
            _log.warning("webhook_claims_taken_over", deliveries=freed)
        self.is_open = self.is_open or bool(gone)
        self._known = present

    async def keep(self) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                with self._isolation.of(""):
                    await self.look()
            except StoreDown:
                continue  # Others report that the store does not answer.

    async def leave(self) -> None:
        """Go oneself, everything claimed having been given back."""
        await self._members.leave()
