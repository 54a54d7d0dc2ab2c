"""What differs between one process on a file of its own and several on PostgreSQL and Redis.

A deployment has two sides, each chosen by one setting: where the log is (`Stores`, VETTANCE_DATABASE_URL),
and where requests and events are counted (`Counters`, VETTANCE_REDIS_URL). `embedded` builds both for one
process, `shared` for several.
"""

import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from vettance.db.engine import Store, Turns
from vettance.db.exclusive_file import Tell
from vettance.db.sqlite import Seat
from vettance.db.write_positions import WritePositions
from vettance.limits.quota_usage import QuotaUsage
from vettance.limits.verdict import LimitCounters
from vettance.telemetry.meters import Meters
from vettance.velocity.port import WorkClaims

if TYPE_CHECKING:
    from vettance.db.membership import Membership
    from vettance.db.replica_store import ReplicaStore
    from vettance.redis_link.announcements import Announcements
    from vettance.velocity.redis.cluster_velocity import ClusterVelocity
    from vettance.velocity.redis.redis_velocity import RedisVelocity

#: Says why this process must not answer; None when it may.
Fault = Callable[[], str | None]


class Stores(Protocol):
    """Where the log of a deployment is, and how its processes divide the work on it."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to it as well."""

    def exists(self) -> bool:
        """Tell whether there is a store; a database counts as one until it is asked."""

    async def open(self, *, writer: Seat, meters: Meters | None = None) -> Store:
        """Open the store; its schema is left to `migrate`. `writer` is "process" for a server, else "thread".

        A server's outages are logged. Raises `StoreDown` with one line that says what is wrong.
        """

    async def open_in_child(self, link: socket.socket, on_end: Callable[[], None]) -> Store:
        """Open the store in a child of a server. `on_end` is called when the parent has closed the `link`."""

    def exclusive_use(self, tell: Tell) -> AbstractAsyncContextManager[Fault]:
        """Keep processes away, while the block lasts, that do not count together with this one.

        Waits for those that are there to stop, and reports that at once. Raises `StoreDown` when they do not.
        """

    def replica(
        self, store: Store, positions: WritePositions, meters: Meters | None = None
    ) -> "ReplicaStore | None":
        """Return what reads from the replica of a store; None where there is none. Its link is to be run."""

    def turns(self, store: Store) -> Turns | None:
        """Return how processes take turns on a store; None where one process has it alone."""

    def membership(self) -> "Membership | None":
        """Return what knows who delivers webhooks; None where one process has the store alone."""

    async def keep_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do, for ever, what one process of a deployment does at a time, whenever that is this one."""


class Counters(Protocol):
    """What is counted and remembered between requests, beside the store."""

    @property
    def claims(self) -> WorkClaims | None:
        """What knows which process is at work on a request; None where there is only one."""

    @property
    def shared_velocity(self) -> "RedisVelocity | ClusterVelocity | None":
        """The memory of events that processes share; None where each has its own."""

    @property
    def batches(self) -> "Announcements | None":
        """By which processes hear of new signals of browsers; None where there is only one."""

    @property
    def changes(self) -> "Announcements | None":
        """The same of changes of what decides: lists, rules, snoozes, settings."""

    @property
    def positions(self) -> WritePositions:
        """What knows which writes the reads of a tenant must see."""

    @property
    def check(self) -> Callable[[], Awaitable[str | None]] | None:
        """What says why the counters cannot serve, or None; None where they are in this process."""

    def limits(self) -> LimitCounters:
        """Return what counts throttle and quota; to be called once."""

    def quota_usage(self, store: Store) -> QuotaUsage:
        """Return what keeps in the store how much of the quotas is used."""

    async def forget(self, tenant: str) -> None:
        """Remove what is remembered of a tenant outside of processes. Raises `StateDown`."""

    async def close(self) -> None:
        """Write what is left to write, and end the connection; never raises for one that is down."""
