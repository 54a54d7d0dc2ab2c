"""Keeps snapshots of velocity, so that a start replays only the newest part of the log."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Final, Protocol

from vettance.db.engine import Statement, Store, StoreDown
from vettance.events import sql as events_sql
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.velocity.memory.snapshot_format import SnapshotRefused
from vettance.velocity.port import Plan
from vettance.velocity.sync.snapshot_store import Snapshot, SnapshotStore, pieces

#: Events of a tenant after which its memory is worth a new snapshot: some seconds of replay at a start.
WORTH_EVENTS: Final = 200_000
LOOK_S: Final = 20.0
_REST_S: Final = 0.004  # Between two pieces; each takes a millisecond or two of the thread that decides.

_log = logger()


class SavableVelocity(Protocol):
    """A memory engine that can be written down and read back."""

    def install(self, tenant: str, plan: Plan) -> None:
        """Give a tenant an empty memory."""

    def dump(self, tenant: str) -> Iterator[bytes]:
        """Return a snapshot of a tenant's memory as it is at the moment of the call."""

    def load(self, tenant: str, plan: Plan, chunks: Iterable[bytes]) -> None:
        """Give a tenant the memory of a snapshot. Raises `SnapshotRefused`."""


class SnapshotSource(Protocol):
    """The flow whose events the memory observes.

    `astray` are tenants whose memory is ahead of the log, `decided` counts events since the snapshot.
    """

    astray: set[str]
    decided: dict[str, int]

    @property
    def rules(self) -> Collection[str]:
        """The tenants."""

    async def pause(self, tenant: str) -> None:
        """Hold back new events of a tenant, and wait until those under way are stored."""

    def resume(self, tenant: str) -> None:
        """Let the events of a tenant through again."""


class VelocitySnapshots:
    """Writes snapshots while the service runs and when it stops, and reads them when it starts.

    `newest` asks for (seq, id) of the last event of the log that the memory is made of, `event_at` for the
    (id,) of the one with a seq; a tenant's memory is written down again after `worth_events` more. Where
    other processes write to the log as well, `reach` brings a tenant's memory to its end, and tells the seq
    of that. `note_labels` has the memory note which labels are in it, so that the snapshot says so.
    """

    def __init__(
        self,
        store: Store,
        velocity: SavableVelocity,
        evaluator: SnapshotSource,
        shelf: SnapshotStore,
        newest: Callable[[], Statement] = events_sql.select_last_event,
        event_at: Callable[[int], Statement] = events_sql.select_event_at,
        worth_events: int = WORTH_EVENTS,
        reach: Callable[[str], Awaitable[int]] | None = None,
        note_labels: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._note_labels = note_labels
        self._store = store
        self._velocity = velocity
        self._evaluator = evaluator
        self._shelf = shelf
        self._newest = newest
        self._event_at = event_at
        self._worth_events = worth_events
        self._reach = reach or self._read_newest
        self._kept: dict[str, int] = {}
        self._isolation = Isolation("snapshot")

    async def restore(self, tenant: str, plan: Plan, name: str | None = None) -> int:
        """Give a tenant the memory of its snapshot, and return how far in the log that reaches.

        Without a snapshot that fits the plan and the log the memory is empty, and the answer 0. With `name`
        the memory gets that one, and the memory in use is not touched.
        """
        name = name or tenant
        found = await asyncio.to_thread(self._shelf.newest, tenant)
        if found is not None:
            try:
                await self._insist_on_log(found)
                # In a thread of its own, since there may be others to answer.
                await asyncio.to_thread(self._velocity.load, name, plan, pieces(found.path))
            except (SnapshotRefused, OSError) as error:
                _log.info("snapshot_not_used", tenant=tenant, reason=str(error))
            except StoreDown:
                raise
            except Exception:  # noqa: BLE001  A memory can always be made of the log.
                _log.exception("snapshot_not_used", tenant=tenant)
            else:
                self._kept[tenant] = found.seq
                return found.seq
        self._velocity.install(name, plan)
        return 0

    async def _insist_on_log(self, found: Snapshot) -> None:
        """Refuse a snapshot of another log, of a database that was restored to a moment before it, say.

        It is taken away: as long as it reached further than this log, it would be the newest.
        """
        rows = await self._store.read(self._event_at(found.seq))
        if not rows or rows[0][0] != found.event:
            await asyncio.to_thread(found.path.unlink, missing_ok=True)
            raise SnapshotRefused("The snapshot is of another log.")

    async def save(self, tenant: str, *, rest_s: float = _REST_S) -> None:
        """Write a snapshot of a tenant's memory as it is between two events."""
        await self._evaluator.pause(tenant)
        try:
            seq = await self._reach(tenant)
            if tenant in self._evaluator.astray:
                return
            if seq <= self._kept.get(tenant, 0):
                return
            # Only where this process alone takes events and labels, so that nothing comes between.
            if self._note_labels is not None:
                await self._note_labels(tenant)
            # Before anything else is awaited: the events of other processes are taken up at any time.
            snapshot = self._velocity.dump(tenant)
        finally:
            self._evaluator.resume(tenant)
        rows = await self._store.read(self._event_at(seq))
        if not rows:
            return
        draft = await asyncio.to_thread(self._shelf.draft, tenant, seq, rows[0][0])
        try:
            for piece in snapshot:
                await asyncio.to_thread(draft.write, piece)
                await asyncio.sleep(rest_s)
            await asyncio.to_thread(draft.finish)
        except BaseException:
            draft.abandon()
            raise
        self._kept[tenant] = seq

    async def _read_newest(self, _tenant: str) -> int:
        # The newest event of all will do: while this tenant is held back, nothing of it comes later.
        newest = await self._store.read(self._newest())
        return newest[0][0] if newest else 0

    def forget(self, tenant: str) -> None:
        """Remove a tenant's snapshots: they hold names that are to be forgotten."""
        self._shelf.remove(tenant)
        self._kept.pop(tenant, None)

    async def save_all(self) -> None:
        """Write a snapshot of every tenant's memory, without pauses; for the moment of stopping."""
        for tenant in tuple(self._evaluator.rules):
            with self._isolation.of(tenant):
                await self.save(tenant, rest_s=0)

    async def run(self) -> None:
        """Write a snapshot whenever enough has happened, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            for tenant in self._isolation.due(self._evaluator.rules):
                if self._evaluator.decided.get(tenant, 0) < self._worth_events:
                    continue
                self._evaluator.decided[tenant] = 0
                with contextlib.suppress(StoreDown), self._isolation.of(tenant):
                    await self._save_or_complain(tenant)

    async def _save_or_complain(self, tenant: str) -> None:
        try:
            await self.save(tenant)
        except OSError as error:
            _log.warning("snapshot_not_written", tenant=tenant, reason=str(error))
