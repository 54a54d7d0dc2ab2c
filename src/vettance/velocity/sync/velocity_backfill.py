"""Backfill: records the log of a tenant in the next memory of it that processes share."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from vettance.db.engine import Row, Store
from vettance.redis_link.down import StateDown
from vettance.velocity.port import Observation, Plan, SharedVelocity, Unready
from vettance.velocity.sync.event_log import EventLog
from vettance.velocity.sync.log_replay import find_lacking

#: Events are held back while a memory is exchanged: at most so long, and for the shorter time when the
#: process that exchanges it dies.
HOLD_S_MAX: Final = 6.0
HOLD_S: Final = 1.5
#: Events at the end of the log that are read twice: commits may become visible in another order than their
#: numbers say.
_OVERLAP: Final = 2_000


class LogPart(NamedTuple):
    """A log, and how its rows are read: the moment of each, and what it means to the memory."""

    log: EventLog
    read: Callable[[Row], tuple[int, Observation | None]]


class SharedBackfill:
    """Fills the next memory of a tenant from the log, under a lease."""

    def __init__(
        self,
        store: Store,
        log: EventLog,
        velocity: SharedVelocity,
        plan: Plan,
        read: Callable[[Row], tuple[int, Observation]],
        skip: Callable[[Row, Exception], None],
        tenant: str,
        holder: bytes,
        lease_s: float,
        labels: LogPart | None = None,
    ) -> None:
        """`read` returns the moment and the observation of a row of the log; `skip` notes one it cannot.

        `labels` are recorded behind the events.
        """
        self._parts = (LogPart(log, read), *(() if labels is None else (labels,)))
        self._store = store
        self._log = log
        self._velocity = velocity
        self._plan = plan
        self._skip = skip
        self._tenant = tenant
        self._holder = holder
        self._lease_s = lease_s
        self.coming = f"{tenant}#{holder.decode()}"

    async def exchange(self, since_ms: int, wait_for_pending: Callable[[], Awaitable[None]]) -> int:
        """Fill the coming memory, hold events back for the end of the log, and exchange the old one for it.

        Returns how many events were recorded. Raises as `go_on` does.
        """
        first = self._log.select_tenant(self._tenant, 0, 0, 1)
        lacking_ms = await find_lacking(self._store, first, since_ms)
        await self._velocity.install(self.coming, self._plan, lacking_ms)
        tails: list[deque[tuple[int, str]]] = [deque(maxlen=_OVERLAP) for _ in self._parts]
        count = 0
        for part, tail in zip(self._parts, tails, strict=True):
            count += await self.go_on(0, since_ms, tail, part=part)
        await self._velocity.hold(self._tenant, HOLD_S)
        holding = asyncio.create_task(self._hold_on())
        try:
            await wait_for_pending()
            for part, tail in zip(self._parts, tails, strict=True):
                known = {event_id for _, event_id in tail}
                after = tail[0][0] - 1 if tail else 0
                last: deque[tuple[int, str]] = deque(maxlen=1)
                count += await self.go_on(after, since_ms, last, known, part)
            await self._velocity.adopt(self._tenant, self.coming, held=True)
        except BaseException:
            await self._velocity.let_go(self._tenant)
            raise
        finally:
            holding.cancel()
        return count

    async def _hold_on(self) -> None:
        """Go on holding events back. Once an event has passed, the coming memory can no longer be adopted."""
        until_s = time.monotonic() + HOLD_S_MAX - HOLD_S
        is_held = True
        while is_held and time.monotonic() < until_s:
            await asyncio.sleep(HOLD_S / 4)
            with contextlib.suppress(StateDown):
                is_held = await self._velocity.hold(self._tenant, HOLD_S, again=True)

    async def go_on(
        self,
        after: int,
        since_ms: int,
        tail: deque[tuple[int, str]],
        known: set[str] | None = None,
        part: LogPart | None = None,
    ) -> int:
        """Record the events of the log behind a number, except the known ones; return how many.

        `tail` takes the numbers and ids of the last of them. When it fails, for instance because Redis is
        full, nothing of the memory is left. Raises `StateDown`, also when the lease is lost, and `Unready`.
        """
        try:
            return await self._read_on(part or self._parts[0], after, since_ms, tail, known)
        except Exception:
            with contextlib.suppress(StateDown):
                await self._velocity.abandon(self.coming)
            raise

    async def _read_on(
        self, part: LogPart, after: int, since_ms: int, tail: deque[tuple[int, str]], known: set[str] | None
    ) -> int:
        count, log = 0, part.log
        name = log.id_column
        while rows := await self._store.read(
            log.select_tenant(self._tenant, after, since_ms, log.live_chunk)
        ):
            fresh = [row for row in rows if known is None or row[name] not in known]
            # All of them, so that none writes any more when it fails.
            ends = await asyncio.gather(*(self._record(part, row) for row in fresh), return_exceptions=True)
            for failed in filter(None, ends):
                raise failed
            tail.extend((row[0], row[name]) for row in rows)
            after = rows[-1][0]
            count += len(fresh)
            if not await self._velocity.keep(self._tenant, self._holder, self._lease_s):
                raise StateDown("another process has taken the lease over")
        return count

    async def _record(self, part: LogPart, row: Row) -> None:
        try:
            at_ms, seen = part.read(row)
            if seen is None:
                return
            await self._velocity.record(self.coming, at_ms, seen, self._plan)
        except (StateDown, Unready):
            raise
        except Exception as error:  # noqa: BLE001  One row must not keep a memory from being filled.
            self._skip(row, error)
