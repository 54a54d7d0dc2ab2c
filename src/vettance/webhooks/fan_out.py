"""Fan out: make the deliveries of a message to many subscriptions in pieces, in turns by tenant."""

import asyncio
import contextlib
from typing import Final

from vettance import outbox
from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.webhooks.takeover import DelivererTakeover

#: The part of the time that pieces may take, of all tenants together: a decision that is to be written
#: meanwhile waits for the piece that is being written, and fewer than one in twenty must meet any.
_PART: Final = 0.04
_FAULT_PAUSE_S: Final = 0.25
#: Sorts before every tenant.
_FIRST: Final = ""

_log = logger()


class FanOut:
    """Makes what `outbox.enqueue` has left to be made. A piece is one commit, and notes in its message who is
    next: a process that dies between two pieces, or in one, leaves nothing out and makes nothing twice.

    Tenants take turns, a piece each, in the order of their ids. Of several deliverers, which `succession`
    knows, one does this.
    """

    def __init__(self, store: Store, succession: DelivererTakeover | None = None) -> None:
        self._store = store
        self._succession = succession
        self._tenant_after = _FIRST
        self._has_made = False
        self._wanted = asyncio.Event()
        self._isolation = Isolation("webhook_fan_out", lambda: asyncio.get_running_loop().time())

    def wake(self) -> None:
        """Have a look: there may be something to make."""
        if self._succession is None or self._succession.leads:
            self._wanted.set()

    async def run(self) -> None:
        """Make what there is whenever it is woken, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            started_s = loop.time()
            self._wanted.clear()
            try:
                if await self.piece():
                    self._wanted.set()
                pause_s = (loop.time() - started_s) * (1 / _PART - 1)
            except StoreDown:
                self._wanted.set()
                pause_s = _FAULT_PAUSE_S
            except Exception:  # noqa: BLE001 - a loop that died silently would leave subscribers out
                _log.exception("webhook_fan_out_failed")
                pause_s = _FAULT_PAUSE_S
            await asyncio.sleep(pause_s)

    async def piece(self) -> bool:
        """Make the next piece, of the next tenant; tell whether there may be more. Raises `StoreDown`."""
        rows = await self._store.read(outbox.select_fan_out(self._tenant_after))
        if not rows:
            may_be_more, self._has_made, self._tenant_after = self._has_made, False, _FIRST
            return may_be_more
        tenant, message, next_subscription = rows[0]
        self._tenant_after = tenant
        if self._isolation.is_due(tenant):
            # Another process may have been first.
            with self._isolation.of(tenant), contextlib.suppress(Lost):
                await self._store.write(*outbox.fan_out(tenant, message, next_subscription))
                self._has_made = True
        return True
