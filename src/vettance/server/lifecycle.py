"""Running: open what the settings name, run a service on it, and close all of it again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from vettance.deployment.connect import connect_store
from vettance.ops.metrics_server import MetricsDoor
from vettance.ops.start_progress import StartProgress, reporting
from vettance.server.application import Service
from vettance.server.console_front import with_console
from vettance.settings.settings import ProcessRole, Settings
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import take_place
from vettance.webhooks.secret_check import prove_secret

if TYPE_CHECKING:
    from vettance.server.tracing import Tracing

_log = logger()


@contextlib.asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Service]:
    """Open the store that the settings name and run a service on it, until the block ends."""
    place = take_place("worker" if settings.role is ProcessRole.WORKER else "web")
    tracing = _open_tracing(settings)
    progress = StartProgress()
    async with reporting(progress):
        progress.begin("opening the store")
        store = await connect_store(settings, writer="process", meters=place.meters)
        try:
            progress.begin("bringing the store to the newest schema")
            await store.migrate()
            await prove_secret(store, settings)
            service = Service(settings, store if tracing is None else tracing.store(store), place)
            if tracing is not None:
                service.app = tracing.edge(service.edge, service.routes)
            if settings.console and settings.console_address is None:
                service.app = with_console(service, service.app)
            await service.start(progress)
        except BaseException:
            await store.close()
            raise
    door = MetricsDoor(service.measurer(settings.data).text)
    try:
        # Of several processes of a server the first one answers for all.
        if settings.metrics is not None and place.slot == 0:
            host, port = await door.start(*settings.metrics)
            _log.info("metrics_listen", host=host, port=port)
        yield service
    finally:
        await door.stop()
        await service.stop()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)


def _open_tracing(settings: Settings) -> "Tracing | None":
    if settings.traces is None:
        return None
    from vettance.server.tracing import Tracing  # OpenTelemetry is there only for those who ask for it.

    return Tracing(settings.traces, "web")
