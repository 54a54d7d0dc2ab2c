"""Embedded: one process with a file of its own, which counts and remembers by itself."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from vettance.db.engine import Store
from vettance.db.exclusive_file import Tell, unserved
from vettance.db.observed import WatchedStore
from vettance.db.sqlite import Seat, SqliteStore, store_path
from vettance.db.write_positions import OwnPositions, WritePositions
from vettance.db.write_relay import RelayedStore
from vettance.deployment.protocols import Fault
from vettance.limits.own_limits import OwnLimits
from vettance.limits.quota import Quota
from vettance.limits.quota_journal import QuotaJournal
from vettance.limits.quota_usage import OwnQuotaUsage
from vettance.limits.throttle import THROTTLE_WINDOW_S, Throttle
from vettance.limits.throttle_journal import ThrottleJournal
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.telemetry.outages import Outage

#: The pause after work that failed, before it is begun again.
_FAILED_PAUSE_S: Final = 1.0

_log = logger()


class EmbeddedStores:
    """Implements `Stores` on a SQLite file in the data folder."""

    is_shared = False

    def __init__(self, data: Path) -> None:
        self._path = store_path(data)

    def exists(self) -> bool:
        """Tell whether the file is there and not empty, as a copy that failed leaves it."""
        return self._path.exists() and self._path.stat().st_size > 0

    async def open(self, *, writer: Seat, meters: Meters | None = None) -> Store:
        """Open the file; a server has its own process write to it."""
        store: Store = await SqliteStore.open(self._path, writer=writer, meters=meters)
        return WatchedStore(store, Outage("store")) if writer == "process" else store

    async def open_in_child(self, link: socket.socket, on_end: Callable[[], None]) -> Store:
        """Open the file for reading; writes go through the parent, by the link."""
        return WatchedStore(await RelayedStore.open(self._path, link, on_end), Outage("store"))

    @contextlib.asynccontextmanager
    async def exclusive_use(self, tell: Tell) -> AsyncIterator[Fault]:
        """Wait for another server of the folder to stop; the writer's lock keeps others away from then on."""
        if self._path.exists():
            async with unserved(self._path, "another server is using this folder", tell=tell):
                pass
        yield lambda: None

    def replica(self, _store: Store, _positions: WritePositions, _meters: Meters | None = None) -> None:
        """A file has no replica."""

    def turns(self, _store: Store) -> None:
        """One process needs no turns."""

    def membership(self) -> None:
        """One process delivers alone."""

    async def keep_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work for ever: there is no other process."""
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001  Work that ended silently would be done by nobody.
                _log.exception("duty_failed")
            await asyncio.sleep(_FAILED_PAUSE_S)


class OwnCounters:
    """Implements `Counters` in this process; two files in the data folder outlive it."""

    claims = None
    shared_velocity = None
    batches = None
    changes = None
    check = None

    def __init__(self, data: Path) -> None:
        self._data = data
        self._quota = self._make_quota()
        self.positions = OwnPositions()

    def limits(self) -> OwnLimits:
        """Return the limits, with what the throttle admitted in the minute before a restart."""
        return OwnLimits(self._throttle(), self._quota)

    def quota_usage(self, store: Store) -> OwnQuotaUsage:
        """Return what writes the quota's counts to the store."""
        return OwnQuotaUsage(store, self._quota)

    async def forget(self, tenant: str) -> None:
        """Nothing of a tenant is outside of processes."""

    async def close(self) -> None:
        """There is no connection."""

    def _make_quota(self) -> Quota:
        """Where its file cannot be kept, a crash gives back what was used since the last save."""
        try:
            return Quota(QuotaJournal(self._data / "used"))
        except OSError as error:
            _log.warning("quota_not_kept", reason=str(error))
            return Quota()

    def _throttle(self) -> Throttle:
        """Where its file cannot be kept, for lack of room say, the throttle begins anew and logs that."""
        try:
            journal = ThrottleJournal(self._data / "admitted")
        except OSError as error:
            _log.warning("throttle_not_kept", reason=str(error))
            return Throttle()
        throttle, now_s = Throttle(journal.note), time.monotonic()
        throttle.restore(journal.restore(now_s - THROTTLE_WINDOW_S, now_s), now_s)
        return throttle
