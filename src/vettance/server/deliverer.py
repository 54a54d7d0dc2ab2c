"""The deliverer: the process that delivers webhooks, a companion of the server."""

import asyncio
import socket
import sys
from typing import Final

from vettance.clock import DAY_MS
from vettance.db.engine import Store
from vettance.deployment.companion_process import Companion
from vettance.deployment.connect import stores_of
from vettance.server.companion import accompany, run_companion
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import Settings
from vettance.telemetry.meters import take_place
from vettance.tenants.vault import Vault
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.retry_policy import STOP_S_MAX

#: Sending costs more time of the interpreter than deciding does.
DELIVERER: Final = Companion("webhook_worker", "vettance.server.deliverer", STOP_S_MAX)

#: Where both want a processor, decisions go first: a message may arrive milliseconds later.
_NICENESS: Final = 5


async def work(settings: Settings, link: socket.socket) -> None:
    """Deliver until stopped."""
    tracing, postman = (
        None,
        WebhookClient(unsafe=settings.unsafe_webhooks, name_servers=settings.name_servers),
    )
    if settings.traces is not None:
        from vettance.server.tracing import Tracing  # OpenTelemetry is there only for those who ask for it.

        tracing = Tracing(settings.traces, "webhooks")
        postman = tracing.postman(unsafe=settings.unsafe_webhooks, name_servers=settings.name_servers)
    stores, vault = stores_of(settings), Vault(load_secret(settings))

    def begin(store: Store) -> Deliverer:
        return Deliverer(
            store,
            postman,
            vault,
            alone=not stores.is_shared,
            members=stores.membership(),
            keep_ms=settings.keep.deliveries * DAY_MS or None,
            meters=take_place("webhooks").meters,
        )

    try:
        await accompany(stores, link, begin)
    finally:
        await postman.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)


if __name__ == "__main__":
    sys.exit(run_companion(sys.argv[1:], DELIVERER.name, _NICENESS, work))
