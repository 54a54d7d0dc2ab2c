"""The worker: the process that delivers webhooks, started and fed by the server (`supervise.py`)."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from typing import Final

import uvloop

from vettance.clock import DAY_MS
from vettance.db.engine import StoreDown
from vettance.deployment.connect import stores_of
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import Settings, SettingsError, read_settings
from vettance.telemetry.logs import configure_logs, logger
from vettance.telemetry.meters import take_place
from vettance.tenants.vault import Vault
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.http_client import WebhookClient

#: Where both want a processor, decisions go first: a message may arrive milliseconds later.
_NICENESS: Final = 5

_log = logger()


async def work(settings: Settings, link: socket.socket) -> None:
    """Deliver until a signal says stop, or until the parent is gone.

    Without a parent it ends at once: another server may already be at this store, and sends again what was
    under way here.
    """
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    tracing, postman = (
        None,
        WebhookClient(unsafe=settings.unsafe_webhooks, name_servers=settings.name_servers),
    )
    if settings.traces is not None:
        from vettance.server.tracing import Tracing  # OpenTelemetry is there only for those who ask for it.

        tracing = Tracing(settings.traces, "webhooks")
        postman = tracing.postman(unsafe=settings.unsafe_webhooks, name_servers=settings.name_servers)
    stores = stores_of(settings)
    opening = asyncio.create_task(stores.open_in_child(link, lambda: _note(stopped)))
    await asyncio.wait((opening, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return
    store = await opening
    vault = Vault(load_secret(settings))
    deliverer = Deliverer(
        store,
        postman,
        vault,
        alone=not stores.is_shared,
        members=stores.membership(),
        keep_ms=settings.keep.deliveries * DAY_MS or None,
        meters=take_place("webhooks").meters,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, deliverer.stop)
    running = asyncio.create_task(deliverer.run())
    try:
        await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await postman.close()
        await store.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)


def _note(stopped: "asyncio.Future[None]") -> None:
    if not stopped.done():
        stopped.set_result(None)


def main(arguments: list[str]) -> int:
    """Run the worker: the arguments are the data folder and the descriptor of the link to the parent."""
    try:
        folder, descriptor = arguments
        settings = read_settings(data=folder)
        configure_logs(settings.log_level)
        with contextlib.suppress(OSError):
            os.nice(_NICENESS)
        uvloop.run(work(settings, socket.socket(fileno=int(descriptor))))
    except (StoreDown, SettingsError, OSError) as error:
        _log.error("webhook_worker_failed", reason=str(error) or type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
