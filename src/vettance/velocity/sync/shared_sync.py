"""Keeps velocity that several processes share equal to the log, and fills it from the log when it is lost."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from vettance import clock
from vettance.db.engine import Row, Statement, Store, StoreDown
from vettance.redis_link.down import StateDown
from vettance.telemetry.logs import logger
from vettance.velocity.port import Condition, Observation, Plan, SharedVelocity, Unready
from vettance.velocity.sync.event_log import EventLog
from vettance.velocity.sync.unconfirmed import UnconfirmedEvents
from vettance.velocity.sync.velocity_backfill import LogPart, SharedBackfill

#: A lease outlives a pause of its holder, and is soon taken over from one that died.
LEASE_S: Final = 15.0
#: How long a memory whose filling failed is left alone, by every process: twice as long each time.
PAUSE_S: Final = 0.25
PAUSE_S_MAX: Final = 60.0
_LOOK_S: Final = 1.0
_SETTLE_S: Final = 0.05
#: More than any write takes: what two sweeps in a row find neither stored nor refused has lost its process.
_SWEEP_S: Final = 60.0
_DOUBT_LOOK_S: Final = 5.0
#: How long a start waits for memories that are being filled; then it answers without (and says so).
START_S: Final = 60.0
_RETRY_S: Final = 0.02
#: How long a tenant's events wait for those under way, some of which may be of a process that has died. One
#: that is stored later is found to be lacking when it is settled, and the memory is filled again.
_PENDING_S: Final = 1.0
_AT_ONCE: Final = 4  # tenants whose memory one process fills at a time
_DEAD_AT_ONCE: Final = 500  # looked for in the log; where there are more, the memory is filled anew

_log = logger()

Rules = TypeVar("Rules")


class SharedVelocitySync(ABC, Generic[Rules]):
    """What `LogReplay` is for the velocity of one process: it keeps shared velocity equal to the log.

    Any process may find that a tenant's memory is lost, for other rules, or ahead of the log because a write
    failed. One takes the lease and fills another from the log, while events are answered from the one there
    is; only for the last few of the log are the tenant's events held back, in every process. A lost memory
    begins empty at once, and none of its answers counts as exact until it is exchanged.
    """

    def __init__(
        self,
        store: Store,
        log: EventLog,
        velocity: SharedVelocity,
        select_present: Callable[[str, Sequence[str]], Statement],
        now_ms: Callable[[], int] = clock.now_ms,
        labels: EventLog | None = None,
    ) -> None:
        """`select_present` asks which of some ids of events or labels are in the logs of a tenant."""
        self._labels = labels
        self._store = store
        self._log = log
        self._velocity = velocity
        self._select_present = select_present
        self._now_ms = now_ms
        self.rules: dict[str, Rules] = {}
        #: Tenants who are decided by other rules than their newest, and the class of the error.
        self.impaired: dict[str, str] = {}
        #: Tenants whose memory is ahead of the log because a write of this process failed.
        self.astray: set[str] = set()
        #: Tenants whose memory was being filled when it was last asked.
        self.degraded: set[str] = set()
        #: By tenant: what its memory had observed and nobody had settled at the last sweep here.
        self._unsettled: dict[str, set[str]] = {}
        #: Of those what was so at the sweep before as well: it belongs to a process that died.
        self._dead: dict[str, set[str]] = {}
        #: Tenants whose memory may lack events that were stored after it had been lost and filled.
        self._lacking: set[str] = set()
        self._doubts = UnconfirmedEvents()
        #: How often in a row the filling of a tenant's memory failed here.
        self._failed: dict[str, int] = {}
        self._wanted: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._wake = asyncio.Event()

    @abstractmethod
    async def _tenants(self) -> list[str]:
        """Return the tenants that have rules."""

    @abstractmethod
    async def _load(self, tenant: str) -> Rules | None:
        """Return the newest rules of a tenant, None where it has none."""

    @abstractmethod
    def _plan_of(self, rules: Rules) -> Plan:
        """Return what the aggregates of some rules need remembered."""

    @abstractmethod
    def _read(self, rules: Rules, row: Row) -> tuple[int, Observation]:
        """Return the moment and the observation of a row of the log. Raises when it cannot be read."""

    def _read_label(self, _rules: Rules, _row: Row) -> tuple[int, Observation | None]:
        """Return the moment and the observation of a row of the log of labels. Raises as `_read`."""
        raise NotImplementedError

    @abstractmethod
    def _skip(self, row: Row, error: Exception) -> None:
        """Note a row of the log that cannot be read."""

    def settle(self, tenant: str, event_id: str) -> None:
        """Note that an event is in the log."""
        self._velocity.settle(tenant, event_id)

    def fail(self, tenant: str, event_id: str) -> None:
        """Note that the write of an event failed; should this process die, another finds it in Redis."""
        self._doubts.add(tenant, event_id, time.monotonic())
        self.astray.add(tenant)

    def follow(self, tenant: str) -> None:
        """Bring a tenant's rules and memory in line with the store soon."""
        self._wanted.add(tenant)
        self._wake.set()

    def follow_astray(self, tenant: str) -> None:
        """Have a tenant's memory, which may be ahead of the log, filled anew soon."""
        self.astray.add(tenant)
        self.follow(tenant)

    async def start(self, _progress: Callable[[int], object] | None = None) -> int:
        """Put all rules into force, and wait a while for the memories, though not for Redis; returns 0."""
        until_s = time.monotonic() + START_S
        waiting = await self._tenants()
        try:
            while waiting and time.monotonic() < until_s:
                waiting = [tenant for tenant in waiting if not await self._begin(tenant)]
                if waiting:
                    await asyncio.sleep(_SETTLE_S)
        except (StateDown, Unready) as error:
            _log.warning("memories_not_filled", reason=str(error))
        self._wanted.update(waiting)
        return 0

    async def _begin(self, tenant: str) -> bool:
        """Bring a tenant in line at the start; a failure for one tenant does not affect the others."""
        try:
            return await self._attend(tenant)
        except (StateDown, StoreDown, Unready):
            raise
        except Exception as error:  # noqa: BLE001  It is tried again behind the start.
            self._fail_attending(tenant, error)
            self._wanted.add(tenant)
            return True

    async def run(self) -> None:
        """Bring wanted tenants in line, settle events in Redis and sweep after exchanges, for ever."""
        settling = asyncio.create_task(self._settle_for_ever())
        try:
            swept_s = looked_s = time.monotonic()
            while True:
                await self._wait()
                wanted = [*(self._wanted | self.astray | self.degraded)]
                for first in range(0, len(wanted), _AT_ONCE):
                    await asyncio.gather(*map(self._attend_safely, wanted[first : first + _AT_ONCE]))
                if time.monotonic() - looked_s > _DOUBT_LOOK_S:
                    looked_s = time.monotonic()
                    await self.look_for_stored()
                if time.monotonic() - swept_s > _SWEEP_S:
                    await self.sweep()
                    swept_s = time.monotonic()
        finally:
            settling.cancel()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _settle_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_SETTLE_S)
            try:
                await self._settle()
            except StateDown:
                continue  # It is tried again.
            except Exception as error:  # noqa: BLE001  What comes after it must be settled too.
                _log.warning("events_not_settled", reason=repr(error))
                await asyncio.sleep(_LOOK_S)

    async def _settle(self) -> None:
        """Settle events in Redis; a memory that may lack some of them is filled anew."""
        for tenant in await self._velocity.settle_all():
            self._lacking.add(tenant)
            self.follow(tenant)

    async def look_for_stored(self) -> None:
        """Have the memories filled anew that lack events which were stored though their write had failed."""
        try:
            for tenant in self._doubts.tenants():
                if stored := await self._stored_of(tenant):
                    self._lacking.add(tenant)
                    self.follow(tenant)
                    self._doubts.clear(tenant, stored)
        except StoreDown:
            pass  # They are looked for again.
        except Exception as error:  # noqa: BLE001  The loop must go on.
            _log.warning("doubts_not_settled", reason=repr(error))

    async def _stored_of(self, tenant: str) -> list[str]:
        asked = self._doubts.batches(tenant, time.monotonic())
        return [
            row[0] for part in asked for row in await self._store.read(self._select_present(tenant, part))
        ]

    async def sweep(self) -> None:
        """Delete what exchanges left behind, and look for what processes that died left in memories."""
        for tenant in tuple(self.rules):
            try:
                await self._velocity.sweep(tenant)
                await self._look_for_dead(tenant)
            except StateDown:
                return
            except Exception:  # noqa: BLE001  The memories of the others must be swept, and `run` go on.
                _log.exception("state_not_swept", tenant=tenant)

    async def _attend_safely(self, tenant: str) -> None:
        try:
            if await self._attend(tenant):
                self._wanted.discard(tenant)
        except (StateDown, StoreDown):
            pass  # It is tried again as long as it is wanted.
        except Unready as error:
            _log.warning("memory_not_filled", tenant=tenant, reason=str(error))
        except Exception as error:  # noqa: BLE001  The memories of the others must go on.
            self._fail_attending(tenant, error)

    def _fail_attending(self, tenant: str, error: Exception) -> None:
        self.impaired[tenant] = type(error).__name__
        _log.error("memory_not_filled", tenant=tenant, exc_info=error)

    async def _attend(self, tenant: str) -> bool:
        """Bring a tenant's rules and memory in line; False when another process is at it."""
        async with self._turns.setdefault(tenant, asyncio.Lock()):
            rules = await self._load(tenant)
            if rules is None:
                return True
            plan = self._plan_of(rules)
            condition = await self._velocity.condition(tenant, plan)
            if condition is Condition.LOST:
                await self._velocity.found(tenant, plan)
            if condition is not Condition.STALE:
                self.rules[tenant] = rules
            if condition is Condition.READY:
                self.degraded.discard(tenant)
                if tenant not in self.astray | self._dead.keys() | self._lacking:
                    return True
            holder = await self._velocity.lease(tenant, LEASE_S)
            if holder is None:
                return False
            pause_s = 0.0
            try:
                condition = await self._velocity.condition(tenant, plan)
                # Another process may have filled it between the look and the lease.
                is_wrong = tenant in self.astray | self._lacking or await self._is_ahead(tenant)
                if condition is not Condition.READY or is_wrong:
                    pause_s = self._pause_s(tenant)
                    await self._fill(tenant, rules, holder)
                    pause_s = 0.0
                self.rules[tenant] = rules
                self._dead.pop(tenant, None)
            finally:
                # After a failure the lease is kept for the pause, so that no process tries meanwhile.
                await self._velocity.keep(tenant, holder, pause_s)
            return True

    def _pause_s(self, tenant: str) -> float:
        failed = self._failed[tenant] = self._failed.get(tenant, -1) + 1
        return min(PAUSE_S * 2.0 ** min(failed, 20), PAUSE_S_MAX)

    async def _fill(self, tenant: str, rules: Rules, holder: bytes) -> None:
        """Fill a memory from the log, hold events back for the end of it, exchange the old for it."""
        began_s = time.monotonic()
        counted = await self._stored_of(tenant)
        was_lacking = tenant in self._lacking
        # What is found to be lacking from here on may come after the end that is read.
        self._lacking.discard(tenant)
        try:
            backfill = SharedBackfill(
                self._store,
                self._log,
                self._velocity,
                self._plan_of(rules),
                lambda row: self._read(rules, row),
                self._skip,
                tenant,
                holder,
                LEASE_S,
                None
                if self._labels is None
                else LogPart(self._labels, lambda row: self._read_label(rules, row)),
            )
            since_ms = self._now_ms() - self._log.kept_ms
            count = await backfill.exchange(since_ms, lambda: self._wait_for_pending(tenant))
        except BaseException:
            if was_lacking:
                self._lacking.add(tenant)
            raise
        self._failed.pop(tenant, None)
        self.rules[tenant] = rules
        self._doubts.clear(tenant, counted)
        self.astray.discard(tenant)
        self.degraded.discard(tenant)
        _log.info("memory_filled", tenant=tenant, events=count, seconds=round(time.monotonic() - began_s, 3))

    async def _is_ahead(self, tenant: str) -> bool:
        """Tell whether a memory holds events of a process that died before it had stored them."""
        dead = [*self._dead.get(tenant, set()).intersection(await self._velocity.pending(tenant))]
        if not dead:
            return False
        stored = {
            row[0] for row in await self._store.read(self._select_present(tenant, dead[:_DEAD_AT_ONCE]))
        }
        for event_id in stored:
            self._velocity.settle(tenant, event_id)
        return not stored.issuperset(dead)

    async def _look_for_dead(self, tenant: str) -> None:
        """Compare with the sweep before; no clock is asked, since those of the hosts may differ."""
        before, now = self._unsettled.get(tenant, set()), set(await self._velocity.pending(tenant))
        self._unsettled[tenant] = now
        if dead := before & now:
            self._dead[tenant] = dead
            self.follow(tenant)

    async def _wait_for_pending(self, tenant: str) -> None:
        """Wait until what was observed before the pause is in the log, or refused."""
        until_s = time.monotonic() + _PENDING_S
        while time.monotonic() < until_s:
            await self._settle()
            dead, failed = self._dead.get(tenant, set()), self._doubts.of(tenant)
            pending = await self._velocity.pending(tenant)
            if all(event_id in dead or event_id in failed for event_id in pending):
                return
            await asyncio.sleep(_RETRY_S)
