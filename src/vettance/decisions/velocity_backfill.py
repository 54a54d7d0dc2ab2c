"""Recount: record the log of a tenant in the memory that is coming for it."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from vettance.clock import DAY_MS
from vettance.db.engine import Row, Statement, Store
from vettance.decisions.active_rulesets import ActiveRules, observation_of
from vettance.events import sql as events_sql
from vettance.events.event import AHEAD_MS_MAX
from vettance.fairness.skipped_rows import Skipped
from vettance.redis_link.down import StateDown
from vettance.telemetry.meters import Rows
from vettance.velocity.aggregates import WINDOW_MS_MAX
from vettance.velocity.port import SharedVelocity, Unready

#: How far back the log is read: the longest window, and two days, so that a caller who reports the day before
#: in one go is answered exactly after a start as well.
REPLAYED_MS: Final = WINDOW_MS_MAX + 2 * DAY_MS
#: Events are held back while a memory is exchanged, for as long at the most, and for the shorter time when
#: whoever exchanges it dies.
HOLD_S_MAX: Final = 6.0
HOLD_S: Final = 1.5
#: Events at the end of the log that are read twice: commits may become visible in another order than their
#: numbers say.
_OVERLAP: Final = 2_000
_CHUNK: Final = 200  # Events read at a time: some milliseconds of a process that decides.


async def find_lacking(store: Store, first: Statement, since_ms: int) -> int | None:
    """Return the moment before which a memory lacks events, when only those received since one are read.

    `first` asks for the first event behind what the memory holds, its receipt being the fourth column. None
    when nothing is left out.
    """
    rows = await store.read(first)
    if not rows or rows[0][3] >= since_ms:
        return None
    return since_ms + AHEAD_MS_MAX  # What was received before may have been dated so far ahead.


class Recount:
    """Fills a coming memory, under the lease of whoever fills it."""

    def __init__(
        self,
        store: Store,
        velocity: SharedVelocity,
        active: ActiveRules,
        tenant: str,
        holder: bytes,
        lease_s: float,
        skipped: Skipped,
    ) -> None:
        self._skipped = skipped
        self._store = store
        self._velocity = velocity
        self._active = active
        self._tenant = tenant
        self._holder = holder
        self._lease_s = lease_s
        self.coming = f"{tenant}#{holder.decode()}"

    async def exchange(self, since_ms: int, wait_for_pending: Callable[[], Awaitable[None]]) -> int:
        """Fill the coming memory, hold events back for the end of the log, and exchange the old one for it.

        Returns how many events were recorded. Raises as `go_on` does.
        """
        first = events_sql.select_tenant_log(self._tenant, 0, 0, 1)
        lacking_ms = await find_lacking(self._store, first, since_ms)
        await self._velocity.install(self.coming, self._active.compiled.plan, lacking_ms)
        tail: deque[tuple[int, str]] = deque(maxlen=_OVERLAP)
        count = await self.go_on(0, since_ms, tail)
        await self._velocity.hold(self._tenant, HOLD_S)
        holding = asyncio.create_task(self._hold_on())
        try:
            await wait_for_pending()
            known = {event_id for _, event_id in tail}
            after = tail[0][0] - 1 if tail else 0
            last: deque[tuple[int, str]] = deque(maxlen=1)
            count += await self.go_on(after, since_ms, last, known)
            await self._velocity.adopt(self._tenant, self.coming, held=True)
        except BaseException:
            await self._velocity.let_go(self._tenant)
            raise
        finally:
            holding.cancel()
        return count

    async def _hold_on(self) -> None:
        """Go on holding events back. Where some slipped through, there is nothing to adopt any more."""
        until_s = time.monotonic() + HOLD_S_MAX - HOLD_S
        is_held = True
        while is_held and time.monotonic() < until_s:
            await asyncio.sleep(HOLD_S / 4)
            with contextlib.suppress(StateDown):
                is_held = await self._velocity.hold(self._tenant, HOLD_S, again=True)

    async def go_on(
        self, after: int, since_ms: int, tail: deque[tuple[int, str]], known: set[str] | None = None
    ) -> int:
        """Record what stands behind a place of the log, but for the known; return how many events.

        `tail` takes the places and ids of the last of them. When it fails, Redis being full say, nothing of
        the memory is left. Raises `StateDown`, also when the lease is lost, and `Unready`.
        """
        try:
            return await self._read_on(after, since_ms, tail, known)
        except Exception:
            with contextlib.suppress(StateDown):
                await self._velocity.abandon(self.coming)
            raise

    async def _read_on(
        self, after: int, since_ms: int, tail: deque[tuple[int, str]], known: set[str] | None
    ) -> int:
        count = 0
        while rows := await self._store.read(
            events_sql.select_tenant_log(self._tenant, after, since_ms, _CHUNK)
        ):
            fresh = [row for row in rows if known is None or row[2] not in known]
            # All of them, so that none writes any more when it fails.
            ends = await asyncio.gather(*map(self._record, fresh), return_exceptions=True)
            for failed in filter(None, ends):
                raise failed
            tail.extend((row[0], row[2]) for row in rows)
            after = rows[-1][0]
            count += len(fresh)
            if not await self._velocity.keep(self._tenant, self._holder, self._lease_s):
                raise StateDown("another process has taken the lease over")
        return count

    async def _record(self, row: Row) -> None:
        try:
            at_ms, seen = observation_of(self._active, row)
            await self._velocity.record(self.coming, at_ms, seen, self._active.compiled.plan)
        except (StateDown, Unready):
            raise
        except Exception as error:  # noqa: BLE001  One row must not keep a memory from being filled.
            self._skipped.note(Rows.EVENT, row[1], row[2], error)
