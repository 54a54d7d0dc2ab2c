"""Connect: open the store and the counters that the settings name. The one place that knows every engine."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from vettance.db.engine import Store, StoreDown, Turns
from vettance.db.exclusive_file import Tell, unserved
from vettance.db.observed import WatchedStore
from vettance.db.sqlite import Seat, SqliteStore, store_path
from vettance.db.write_relay import RelayedStore, watch
from vettance.limits.throttle import THROTTLE_WINDOW_S, Throttle
from vettance.limits.throttle_journal import ThrottleJournal
from vettance.redis_link.down import StateDown
from vettance.settings.settings import Settings, SettingsError
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.telemetry.outages import Outage
from vettance.velocity.memory.memory_velocity import MemoryVelocity

if TYPE_CHECKING:
    from vettance.db.membership import Membership
    from vettance.limits.redis_limits import SharedLimits
    from vettance.redis_link.redis_claims import SharedClaims
    from vettance.redis_link.redis_connection import RedisConnection
    from vettance.velocity.redis.redis_velocity import RedisVelocity

#: How long work that failed is let alone.
_DUTY_PAUSE_S: Final = 1.0
_READY_KEY: Final = b"vettance:ready"
#: How long a child of a server lets a database alone that was away.
_CHILD_PAUSE_S: Final = 0.5

_log = logger()


async def connect_store(settings: Settings, *, writer: Seat, meters: Meters | None = None) -> Store:
    """Open the store; its schema is left to `migrate`. `writer` is "process" for a server, else "thread".

    A server's outages are told to its log. Raises `StoreDown` with one line that says what is wrong.
    """
    if settings.database_url is None:
        store: Store = await SqliteStore.open(store_path(settings.data), writer=writer, meters=meters)
    else:
        from vettance.db.postgres import PostgresStore  # The driver is loaded where it is used only.

        store = await PostgresStore.open(settings.database_url, tends=writer == "process", meters=meters)
    return WatchedStore(store, Outage("store")) if writer == "process" else store


def turns_of(settings: Settings, store: Store) -> Turns | None:
    """Return how the processes on a store take turns, or None where one process has it alone."""
    return cast(Turns, store) if settings.database_url is not None else None


async def connect_beside(settings: Settings, link: socket.socket, on_end: Callable[[], None]) -> Store:
    """Open the store in a child of a server. `on_end` is called when the parent has closed the `link`.

    The embedded store is written to by the parent alone, and the link is the way to it. A database that is
    away is waited for, as long as that takes.
    """
    outage = Outage("store")
    if settings.database_url is None:
        relayed = await RelayedStore.open(store_path(settings.data), link, on_end)
        return WatchedStore(relayed, outage)
    await watch(link, on_end)
    while True:
        try:
            return WatchedStore(await connect_store(settings, writer="thread"), outage)
        except StoreDown as error:
            outage.down(error.full)
            await asyncio.sleep(_CHILD_PAUSE_S)


class Shared(NamedTuple):
    """What the processes of a deployment share beside the store."""

    line: "RedisConnection"
    velocity: "RedisVelocity"
    limits: "SharedLimits"
    claims: "SharedClaims"

    async def check(self) -> str | None:
        """Say why Redis cannot serve; None when it can."""
        try:
            # One that is full, or follows another, answers and takes nothing.
            await self.line.call(b"SET", _READY_KEY, b"1", b"PX", b"1000")
        except StateDown:
            return "cannot be reached, or refuses"  # `vettance doctor` tells which.
        return None


def connect_shared(settings: Settings, secret: bytes) -> Shared | None:
    """Return what the processes share in Redis, or None where one process counts alone.

    The connection is opened when it is first needed. Raises `SettingsError`.
    """
    if settings.redis is None:
        return None
    from vettance.limits.redis_limits import SharedLimits
    from vettance.redis_link.redis_claims import (
        SharedClaims,  # redis-py is loaded only for those who ask for it.
    )
    from vettance.redis_link.redis_connection import RedisConnection
    from vettance.velocity.redis.redis_velocity import RedisVelocity

    try:
        line = RedisConnection(settings.redis)
    except ValueError as error:
        raise SettingsError(f"VETTANCE_REDIS_URL cannot be used: {error}") from None
    return Shared(line, RedisVelocity(line, secret), SharedLimits(line), SharedClaims(line, secret))


def membership_of(settings: Settings) -> "Membership | None":
    """Return what tells who delivers webhooks from a database; None where one process has the store alone."""
    if settings.database_url is None:
        return None
    from vettance.db.membership import Membership

    return Membership(settings.database_url)


async def keep_duty(settings: Settings, work: Callable[[], Awaitable[None]]) -> None:
    """Do, for ever, what exactly one process of a deployment does at a time, whenever that is this one."""
    while settings.database_url is None:
        try:
            await work()
        except Exception:  # noqa: BLE001  A duty that ended silently would be done by nobody.
            _log.exception("duty_failed")
        await asyncio.sleep(_DUTY_PAUSE_S)
    from vettance.db import leader

    await leader.keep_duty(settings.database_url, work)


@contextlib.asynccontextmanager
async def present(settings: Settings, tell: Tell) -> AsyncIterator[Callable[[], str | None]]:
    """Be present at a store while the block lasts; yields what tells why this process must not answer.

    Waits for others to stop, and tells so at once. Raises `StoreDown` when others are at a database that do
    not count together with this one, or another server is on the folder; there its writer sees to the rest.
    """
    if settings.database_url is None:
        path = store_path(settings.data)
        if path.exists():
            async with unserved(path, "another server is using this folder", tell=tell):
                pass
        yield lambda: None
        return
    from vettance.db.exclusive_database import ExclusiveUse

    presence = await ExclusiveUse.take(settings.database_url, alone=settings.redis is None, tell=tell)
    keeping = asyncio.create_task(presence.keep())
    try:
        yield lambda: presence.fault
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await presence.leave()


def connect_velocity(now_ms: Callable[[], int] | None = None) -> MemoryVelocity:
    """Return an empty memory of what happened before; one without a clock depends on the log alone."""
    return MemoryVelocity(now_ms=now_ms)


def connect_throttle(settings: Settings) -> Throttle:
    """Return the throttle of one process, with what it admitted in the minute before a restart.

    Where its file cannot be kept, for want of room say, it begins anew and says so in the log.
    """
    try:
        trail = ThrottleJournal(settings.data / "admitted")
    except OSError as error:
        _log.warning("throttle_not_kept", reason=str(error))
        return Throttle()
    throttle, now_s = Throttle(trail.note), time.monotonic()
    throttle.restore(trail.restore(now_s - THROTTLE_WINDOW_S, now_s), now_s)
    return throttle
