"""Connect: choose the engines that the settings name. The one place that decides it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from vettance.db.engine import Store
from vettance.db.sqlite import Seat
from vettance.db.write_positions import OwnPositions, note_write
from vettance.deployment.embedded import EmbeddedStores, OwnCounters
from vettance.deployment.protocols import Counters, Stores
from vettance.settings.settings import Settings
from vettance.telemetry.meters import Meters
from vettance.velocity.memory.memory_velocity import MemoryVelocity


def stores_of(settings: Settings) -> Stores:
    """Return where the log is: a file in the data folder, or a database."""
    if settings.database_url is None:
        return EmbeddedStores(settings.data)
    from vettance.deployment.shared import DatabaseStores  # The drivers are loaded only where they are used.

    return DatabaseStores(
        settings.database_url,
        counts_alone=settings.redis is None,
        read_url=settings.database_read_url,
        read_lag_s=settings.database_read_lag_s,
    )


def counters_of(settings: Settings, secret: bytes) -> Counters:
    """Return where requests and events are counted: in this process, or in Redis. Raises `SettingsError`."""
    if settings.redis is None:
        return OwnCounters(settings.data)
    from vettance.deployment.shared import RedisCounters

    return RedisCounters(settings.redis, secret)


async def connect_store(settings: Settings, *, writer: Seat, meters: Meters | None = None) -> Store:
    """Open the store that the settings name; see `Stores.open`."""
    return await stores_of(settings).open(writer=writer, meters=meters)


@contextlib.asynccontextmanager
async def long_reads(settings: Settings, store: Store, tenant: str) -> AsyncIterator[Store]:
    """Yield what a command or job reads a log from: the replica where one is set, else the store itself.

    It sees all of the tenant that was written before; a replica that lacks some is waited for as long as it
    may be behind, and the primary is read then.
    """
    positions = OwnPositions()
    replica = stores_of(settings).replica(store, positions)
    if replica is None:
        yield store
        return
    await note_write(store, positions, tenant)
    looking = asyncio.create_task(replica.link.run())
    try:
        await replica.link.wait_for(await positions.newest(tenant) or 0, settings.database_read_lag_s)
        yield replica
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await replica.close()


def connect_velocity(now_ms: Callable[[], int] | None = None) -> MemoryVelocity:
    """Return an empty memory of past events; one without a clock depends on the log alone."""
    return MemoryVelocity(now_ms=now_ms)
