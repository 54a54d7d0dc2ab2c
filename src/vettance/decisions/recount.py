"""Recount: record the log of a tenant in the memory that is coming for it."""

import asyncio
import contextlib
from collections import deque
from typing import Final

from vettance.db.engine import Row, Store
from vettance.decisions import sql
from vettance.decisions.active import ActiveRules, observation_of
from vettance.state.port import SharedVelocity, StateDown

_CHUNK: Final = 200  # Events read at a time: some milliseconds of a process that decides.


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
    ) -> None:
        self._store = store
        self._velocity = velocity
        self._active = active
        self._tenant = tenant
        self._holder = holder
        self._lease_s = lease_s
        self.coming = f"{tenant}#{holder.decode()}"

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
        while rows := await self._store.read(sql.select_tenant_log(self._tenant, after, since_ms, _CHUNK)):
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
        found = observation_of(self._active, row)
        if found is not None:
            await self._velocity.record(self.coming, *found, self._active.compiled.plan)
