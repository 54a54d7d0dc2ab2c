"""Shared: several processes on one PostgreSQL database, and on one Redis by which they count together.

The drivers are loaded with what needs them, so that a process on a file of its own never loads this module.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

from vettance.db.engine import ANSWER_S_MAX, Store, StoreDown, Turns
from vettance.db.exclusive_file import Tell
from vettance.db.observed import WatchedStore
from vettance.db.sqlite import Seat
from vettance.db.write_positions import WritePositions
from vettance.db.write_relay import watch
from vettance.deployment.protocols import Fault
from vettance.limits.quota_usage import SharedQuotaUsage
from vettance.redis_link.down import StateDown
from vettance.settings.settings import SettingsError
from vettance.settings.urls import is_cluster
from vettance.telemetry.meters import Meters
from vettance.telemetry.outages import Outage

if TYPE_CHECKING:
    from vettance.db.membership import Membership
    from vettance.db.replica_store import ReplicaStore
    from vettance.limits.redis_limits import SharedLimits
    from vettance.redis_link.redis_connection import RedisLine
    from vettance.velocity.redis.cluster_velocity import ClusterVelocity
    from vettance.velocity.redis.redis_velocity import RedisVelocity

#: The pause between two tries of a child of a server to reach a database that is down.
_CHILD_PAUSE_S: Final = 0.5
_READY_KEY: Final = "vettance:ready"


class DatabaseStores:
    """Implements `Stores` on a PostgreSQL database. `counts_alone`: this process shares no counters.

    `read_url` names its replica, which is read while it is at most `read_lag_s` seconds behind.
    """

    is_shared = True

    def __init__(
        self, url: str, *, counts_alone: bool, read_url: str | None = None, read_lag_s: float = 0.0
    ) -> None:
        self._url = url
        self._read_url = read_url
        self._read_lag_s = read_lag_s
        self._counts_alone = counts_alone

    def exists(self) -> bool:
        """A database counts as a store until it is asked."""
        return True

    async def open(self, *, writer: Seat, meters: Meters | None = None) -> Store:
        """Connect to the database; a server also looks after its partitions."""
        from vettance.db.postgres import PostgresStore

        store: Store = await PostgresStore.open(self._url, tends=writer == "process", meters=meters)
        return WatchedStore(store, Outage("store")) if writer == "process" else store

    async def open_in_child(self, link: socket.socket, on_end: Callable[[], None]) -> Store:
        """Connect to the database, waiting for one that is down for as long as that takes."""
        outage = Outage("store")
        await watch(link, on_end)
        while True:
            try:
                return WatchedStore(await self.open(writer="thread"), outage)
            except StoreDown as error:
                outage.down(error.full)
                await asyncio.sleep(_CHILD_PAUSE_S)

    @contextlib.asynccontextmanager
    async def exclusive_use(self, tell: Tell) -> AsyncIterator[Fault]:
        """Hold a lock in the database: alone, or together with all that count together."""
        from vettance.db.exclusive_database import ExclusiveUse

        use = await ExclusiveUse.take(self._url, alone=self._counts_alone, tell=tell)
        keeping = asyncio.create_task(use.keep())
        try:
            yield lambda: use.fault
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await use.leave()

    def replica(
        self, store: Store, positions: WritePositions, meters: Meters | None = None
    ) -> "ReplicaStore | None":
        """Return what reads from the replica, where one is set. Only a server, which has meters, logs."""
        if self._read_url is None:
            return None
        from vettance.db.replica_link import ReplicaLink
        from vettance.db.replica_store import ReplicaStore

        link = ReplicaLink(
            self._read_url,
            store.read,
            lag_s_max=self._read_lag_s,
            read_s_max=ANSWER_S_MAX,
            outage=None if meters is None else Outage("replica"),
        )
        return ReplicaStore(store, link, positions, meters)

    def turns(self, store: Store) -> Turns:
        """Return the store itself, which gives turns."""
        return cast(Turns, store)

    def membership(self) -> "Membership":
        """Return a membership among the processes that deliver from this database."""
        from vettance.db.membership import Membership

        return Membership(self._url)

    async def keep_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work whenever this process holds the lock of the leader."""
        from vettance.db import leader

        await leader.keep_duty(self._url, work)


def count_in(
    url: str, secret: bytes, patience_s: float | None = None
) -> tuple["RedisLine", "RedisVelocity | ClusterVelocity"]:
    """Return the line to a Redis, or to a cluster, and the memory of events there. Raises `ValueError`."""
    from vettance.redis_link.cluster_connection import ClusterConnection
    from vettance.redis_link.redis_connection import PATIENCE_S, RedisConnection
    from vettance.velocity.redis.cluster_velocity import ClusterVelocity
    from vettance.velocity.redis.redis_velocity import RedisVelocity

    if not is_cluster(url):
        line = RedisConnection(url, patience_s or PATIENCE_S)
        return line, RedisVelocity(line, secret)
    cluster = ClusterConnection(url, patience_s or PATIENCE_S)
    return cluster, ClusterVelocity(cluster, secret)


class RedisCounters:
    """Implements `Counters` in Redis, or in a cluster. Connections are opened when they are first needed.

    Raises `SettingsError` for a URL that cannot be used.
    """

    def __init__(self, url: str, secret: bytes) -> None:
        from vettance.limits.redis_limits import SharedLimits
        from vettance.redis_link.redis_claims import SharedClaims
        from vettance.redis_link.redis_positions import RedisPositions

        try:
            self._connection, self.shared_velocity = count_in(url, secret)
        except ValueError as error:
            raise SettingsError(f"VETTANCE_REDIS_URL cannot be used: {error}") from None
        self.claims = SharedClaims(self._connection, secret)
        self._limits = SharedLimits(self._connection)
        self.batches, self.changes = self._limits.batches, self._limits.changes
        self.positions = RedisPositions(self._connection)

    def limits(self) -> "SharedLimits":
        """Return the limits that all processes count together."""
        return self._limits

    def quota_usage(self, store: Store) -> SharedQuotaUsage:
        """Return what keeps the counts in the store, and gives them back to a Redis that lost them."""
        return SharedQuotaUsage(store, self._limits)

    async def check(self) -> str | None:
        """Say why Redis cannot serve; None when it can."""
        try:
            # One that is full, or follows another, answers but takes nothing.
            for key in self._connection.spread(_READY_KEY):
                await self._connection.call(b"SET", key, b"1", b"PX", b"1000")
        except StateDown:
            return "cannot be reached, or refuses"  # `vettance doctor` says which.
        return None

    async def forget(self, tenant: str) -> None:
        """Remove the memory of a tenant's events from Redis."""
        await self.shared_velocity.forget(tenant)

    async def close(self) -> None:
        """Report what is settled and close the connection."""
        with contextlib.suppress(StateDown):
            await self.shared_velocity.settle_all()
        await self._connection.close()
