"""The change feed: keeps the mirrors of configuration equal to the store, whichever process changed it."""

import asyncio
import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from vettance.db.engine import Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.fairness.share_look import SharedLook
from vettance.redis_link.announcements import Announcements
from vettance.telemetry.logs import logger
from vettance.tenants import sql
from vettance.websdk import sql as websdk_sql

PAUSE_S: Final = 1.0
#: A look that takes longer has been stopped by something; what it reads takes milliseconds.
LOOK_S_MAX: Final = 10.0

#: What is read for all tenants together. A process that cannot do so must not answer: a key that was revoked
#: would go on opening doors.
OF_EVERYBODY: Final = frozenset({sql.AREA, sql.DELETED, websdk_sql.AREA})

#: Reads again what a change of (tenant, subject) touched.
Reload = Callable[[str, str], Awaitable[None]]
#: The same of (tenant, subjects): several of one tenant at once.
ReloadMany = Callable[[str, Sequence[str]], Awaitable[None]]
#: So many subjects are read again at once, and then it is the turn of another tenant.
BATCH_MAX: Final = 250

_log = logger()


class ChangeFeed:
    """Reads new rows of the change table once a second and has what they name read again.

    What cannot be read again is tried again at the next look, and keeps no other change from being
    seen. Of areas in `batches`, in which one tenant may change a thousand subjects a second, many are read at
    once, in turns by tenant.
    """

    def __init__(
        self,
        store: Store,
        reloads: Mapping[str, Reload],
        now_s: Callable[[], float] = time.monotonic,
        batches: Mapping[str, ReloadMany] = MappingProxyType({}),
        end: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
    ) -> None:
        """`end` ends a process that was stopped for so long that changes went before it read them."""
        self._store = store
        self._reloads = reloads
        self._batches = batches
        self._end = end
        self._seen = 0
        # (area, tenant, subject), in the order of the changes; a dict because there is no ordered set.
        self._due: dict[tuple[str, str, str], None] = {}
        self._isolation = Isolation("configuration", now_s)
        self._shared = SharedLook(self._look)
        self._fault: str | None = None
        self._looked_s: float | None = None

    @property
    def fault(self) -> str | None:
        """Why the newest look at the store failed, or that it does not end; None when it went well."""
        if self._looked_s is not None and time.monotonic() - self._looked_s > LOOK_S_MAX:
            return "changes have not been looked at for some time"
        return self._fault

    async def start(self) -> None:
        """Remember how far the changes go; call before the mirrors are first filled."""
        self._seen = (await self._store.read(sql.select_last_change()))[0][0]

    async def catch_up(self) -> None:
        """Apply every change that was noted before this call, as far as that can be done now.

        Calls that wait for each other share one look. Raises what `look` does.
        """
        await self._shared.ask()

    def freshener(self, changes: Announcements | None) -> Callable[[str], Awaitable[None]] | None:
        """Return what takes in what other processes announced for a tenant; None where there are none."""
        if changes is None:
            return None

        async def freshen(tenant: str) -> None:
            # What fails is tried again with the next request, and by `run`, which says so.
            with contextlib.suppress(Exception):
                await changes.follow(tenant, self.catch_up)

        return freshen

    async def look(self) -> None:
        """Apply every change noted since the last look; see `_look`."""
        async with self._shared.turn:
            await self._look()

    async def _look(self) -> None:
        """Apply every change noted since the last look; what was read once for many changes is read once.

        Keys come first: a revoked one must end at once, however much else has changed.

        What cannot be applied for one tenant is tried again later, and is no fault of the service. Raises the
        first of what went wrong with the keys of all, when everything else has been applied.
        """
        rows = await self._store.read(sql.select_changes(self._seen))
        if sql.has_missed(rows, self._seen):
            _log.error("changes_missed", after=self._seen)
            self._end()
        self._due.update(((area, tenant, subject), None) for _, area, tenant, subject in rows)
        for _, area, tenant, subject in rows:
            self._isolation.hurry(_key(area, tenant, subject))
        if rows:
            self._seen = rows[-1][0]
        failed: Exception | None = None
        for area, tenant, subject in sorted(self._due, key=lambda due: due[0] not in (sql.AREA, sql.DELETED)):
            if area in self._batches:
                continue
            if area not in OF_EVERYBODY:
                await self._apply_alone(area, tenant, subject)
                continue
            try:
                await self._apply(area, tenant, subject)
            except StoreDown:
                raise
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        await self._apply_batches()
        if failed is not None:
            raise failed

    async def _apply_batches(self) -> None:
        """Apply what is due in areas of many subjects. A batch that fails is applied one by one."""
        waiting: dict[tuple[str, str], list[str]] = {}
        for area, tenant, subject in self._due:
            if area in self._batches and self._isolation.is_due(_key(area, tenant, subject)):
                waiting.setdefault((area, tenant), []).append(subject)
        turns = deque((*key, subjects) for key, subjects in waiting.items())
        while turns:
            area, tenant, subjects = turns.popleft()
            batch, rest = subjects[:BATCH_MAX], subjects[BATCH_MAX:]
            if rest:
                turns.append((area, tenant, rest))
            try:
                await self._batches[area](tenant, batch)
            except StoreDown:
                raise
            except Exception:  # noqa: BLE001 - each of them is tried, counted and logged by itself
                for subject in batch:
                    await self._apply_alone(area, tenant, subject)
            else:
                for subject in batch:
                    self._isolation.forget(_key(area, tenant, subject))
                    del self._due[area, tenant, subject]

    async def _apply_alone(self, area: str, tenant: str, subject: str) -> None:
        key = _key(area, tenant, subject)
        if self._isolation.is_due(key):
            with self._isolation.of(key):
                await self._apply(area, tenant, subject)

    async def _apply(self, area: str, tenant: str, subject: str) -> None:
        if (reload_many := self._batches.get(area)) is not None:
            await reload_many(tenant, (subject,))
        elif (reload := self._reloads.get(area)) is not None:
            await reload(tenant, subject)
        del self._due[area, tenant, subject]

    async def run(self) -> None:
        """Look for ever; faults are logged, not fatal."""
        while True:
            self._looked_s = time.monotonic()
            await asyncio.sleep(PAUSE_S)
            try:
                await self.look()
            except StoreDown as error:
                self._fault = str(error) or "the store is away"
            except Exception as error:  # noqa: BLE001
                # A loop that died silently would freeze every mirror; this one says what happened.
                # Its text may repeat somebody's data, and anybody may ask whether we are ready.
                self._fault = type(error).__name__
                _log.exception("refresh_failed")
            else:
                self._fault = None


def _key(area: str, tenant: str, subject: str) -> str:
    return f"{tenant}:{area} {subject}"


async def report_broken_glass(tenant: str, subject: str) -> None:
    """Say loudly that rules or a model came into force past their approval; its note stays with them."""
    kind, version = subject.split()
    _log.error("rules_break_glass", tenant=tenant, kind=kind, version=int(version))
