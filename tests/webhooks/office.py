"""A store with subscriptions, and a worker that delivers from it."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from vettance.db.engine import Store
from vettance.db.tables import DELIVERY
from vettance.ids import IdSource
from vettance.outbox import MessageType, enqueue
from vettance.tenants.vault import Vault
from vettance.webhooks import sql
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.retry_policy import RetryPolicy
from vettance.webhooks.webhook import Subscription, free_slot, make_secret

TENANT = "ten_" + "1" * 32
QUICK = RetryPolicy(delays_ms=(50, 60, 70, 80, 90), attempt_s_max=1.0)


class Office:
    """A store, its worker, and short ways to subscribe and to enqueue."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ids = IdSource()
        self.vault = Vault(b"v" * 32)
        self.secrets: dict[str, str] = {}
        self._running: list[tuple[Deliverer, asyncio.Task[None], WebhookClient]] = []

    def begin(
        self, policy: RetryPolicy = QUICK, name_servers: Sequence[str] = (), **options: Any
    ) -> Deliverer:
        """Start a worker."""
        postman = WebhookClient(unsafe=True, name_servers=name_servers)
        deliverer = Deliverer(self.store, postman, self.vault, policy=policy, **options)
        self._running.append((deliverer, asyncio.create_task(deliverer.run()), postman))
        return deliverer

    async def end(self) -> None:
        """Stop every worker as SIGTERM does."""
        for deliverer, task, postman in self._running:
            deliverer.stop()
            async with asyncio.timeout(30):
                await task
            await postman.close()
        self._running.clear()

    async def crash(self) -> None:
        """End every worker in the middle of what it does."""
        for _, task, postman in self._running:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await postman.close()
        self._running.clear()

    async def subscribe(self, url: str, *types: MessageType, tenant: str = TENANT) -> Subscription:
        now_ms = time.time_ns() // 1_000_000
        rows = await self.store.read(sql.select_subscriptions(tenant))
        made = Subscription(
            id=self.ids.make("whs"),
            tenant=tenant,
            slot=free_slot([row[2] for row in rows]),
            url=url,
            event_types=types or tuple(MessageType),
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        self.secrets[made.id] = make_secret()
        sealed = sql.seal(self.vault, self.secrets[made.id], tenant, made.id)
        await self.store.write(*sql.insert_subscription(made, sealed))
        return made

    async def tell(
        self,
        data: bytes = b'{"id":"x"}',
        kind: MessageType = MessageType.BLOCKLIST_ENTRY_ADDED,
        tenant: str = TENANT,
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        await self.store.write(*enqueue(tenant, kind, self.ids.make("msg", now_ms), "lst_x", now_ms, data))

    async def states(self, tenant: str = TENANT) -> list[tuple[str, int]]:
        """(state, attempts) of every delivery of the tenant, in order."""
        rows = await self.store.read(
            sql.scoped(DELIVERY, tenant, "SELECT state, attempts FROM delivery WHERE tenant = ? ORDER BY seq")
        )
        return [(row[0], row[1]) for row in rows]

    async def until(self, *states: tuple[str, int], seconds: float = 30.0) -> None:
        """Wait until the deliveries are so."""
        until_s = time.monotonic() + seconds
        while (found := await self.states()) != list(states):
            assert time.monotonic() < until_s, found
            await asyncio.sleep(0.01)
