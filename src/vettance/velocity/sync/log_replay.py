"""Fills velocity from a log: for all tenants at the start, for one when rules change or a write failed."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from vettance import clock
from vettance.db.engine import Row, Statement, Store
from vettance.events.event import AHEAD_MS_MAX
from vettance.velocity.port import Plan, Velocity
from vettance.velocity.sync.event_log import EventLog
from vettance.velocity.sync.velocity_snapshots import SnapshotSource

#: The next memory of a tenant is filled under this name while the one in use goes on answering.
NEXT: Final = "#next"

Rules = TypeVar("Rules")
Progress = Callable[[int], Any]
#: Gives a tenant the memory of its snapshot under a name; returns the number of the last event in it.
Restore = Callable[[str, Plan, str], Awaitable[int]]
#: Records in the memory of a name, by some rules, the labels of a tenant given since a moment.
LabelReplay = Callable[[str, str, Rules, int], Awaitable[None]]


class LogReplay(Generic[Rules]):
    """Fills the memories of tenants from their snapshots and the log, by the rules of each tenant."""

    def __init__(
        self,
        store: Store,
        log: EventLog,
        velocity: Velocity,
        source: SnapshotSource,
        restore: Restore,
        replay: Callable[[str, Rules, Row], None],
        now_ms: Callable[[], int] = clock.now_ms,
        replay_labels: LabelReplay[Rules] | None = None,
    ) -> None:
        """`replay` observes a row of the log by some rules in the memory of a name; it must not raise.

        `replay_labels` records the labels of a tenant that a memory does not have yet.
        """
        self._replay_labels = replay_labels
        self._store = store
        self._log = log
        self._velocity = velocity
        self._source = source
        self._restore = restore
        self._replay = replay
        self._now_ms = now_ms

    async def fill(
        self, found: Mapping[str, tuple[Rules, Plan]], progress: Progress | None = None
    ) -> tuple[int, dict[str, int]]:
        """Fill the memory of every tenant, before any event is answered.

        Returns how many events were read, and the number up to which each tenant's memory has seen the log.
        """
        since_ms = self._now_ms() - self._log.kept_ms
        reached = {
            tenant: await self._begin(tenant, tenant, plan, since_ms) for tenant, (_, plan) in found.items()
        }
        after, count, tenant_column = min(reached.values(), default=0), 0, self._log.tenant_column
        while rows := await self._store.read(self._log.select_all(after, since_ms, self._log.chunk)):
            for row in rows:
                tenant = row[tenant_column]
                if tenant in found and row[0] > reached[tenant]:
                    self._replay(tenant, found[tenant][0], row)
            after = rows[-1][0]
            count += len(rows)
            if progress is not None:
                progress(count)
        if self._replay_labels is not None:
            for tenant, (rules, _) in found.items():
                await self._replay_labels(tenant, tenant, rules, since_ms)
        return count, {tenant: max(after, number) for tenant, number in reached.items()}

    async def exchange(
        self, tenant: str, rules: Rules, plan: Plan, put_into_force: Callable[[int], None]
    ) -> None:
        """Fill another memory of a tenant and exchange the one in use for it.

        Most of the log is read while events are answered by the memory in use; only for the last few events
        are new ones held back. `put_into_force` then gets the number up to which the memory has seen the log.
        """
        coming = tenant + NEXT
        since_ms = self._now_ms() - self._log.kept_ms
        # Also for a memory that is ahead of the log: its snapshots were written while it was equal to it.
        after = await self._begin(tenant, coming, plan, since_ms)
        after = await self._catch_up(tenant, coming, rules, after, since_ms)
        await self._source.pause(tenant)
        try:
            after = await self._catch_up(tenant, coming, rules, after, since_ms)
            self._velocity.adopt(tenant, coming)
            put_into_force(after)
            self._source.astray.discard(tenant)
        finally:
            self._source.resume(tenant)

    async def _begin(self, tenant: str, memory: str, plan: Plan, since_ms: int) -> int:
        """Restore a memory, and note in it what it lacks because that is too old to be read."""
        reached = await self._restore(tenant, plan, memory)
        lacking_ms = await find_lacking(self._store, self._log.select_tenant(tenant, reached, 0, 1), since_ms)
        if lacking_ms is not None:
            self._velocity.forget_before(memory, lacking_ms)
        return reached

    async def _catch_up(self, tenant: str, memory: str, rules: Rules, after: int, since_ms: int) -> int:
        chunk = self._log.live_chunk
        while rows := await self._store.read(self._log.select_tenant(tenant, after, since_ms, chunk)):
            for row in rows:
                self._replay(memory, rules, row)
            after = rows[-1][0]
        if self._replay_labels is not None:
            await self._replay_labels(memory, tenant, rules, since_ms)
        return after


async def find_lacking(store: Store, first: Statement, since_ms: int) -> int | None:
    """Return the moment before which a memory lacks events, when only those received since one are read.

    `first` asks for the first event of the log that the memory has not seen. None when nothing is left out.
    """
    rows = await store.read(first)
    if not rows or rows[0][3] >= since_ms:
        return None
    return since_ms + AHEAD_MS_MAX  # An event received before may have been dated so far ahead.
