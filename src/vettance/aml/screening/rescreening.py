"""Rescreening: screens earlier subjects again when a list changes, against only what changed.

Every subject is stored with the set of list versions that it was last screened against. A subject
under another set than the current one is still to be screened again, and moves to the current set in the
very commit that keeps what was found. So the work goes on after a restart where it stood, and no subject is
screened twice against one set, however many processes do this.
"""

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from vettance import clock
from vettance.aml.screening import sql
from vettance.aml.screening.screen import RESCREENING, Screener, SearchResult, saving
from vettance.aml.screening.screening_request import read_screen_request
from vettance.db.engine import Clash, Lost, Statement, Store, StoreDown
from vettance.errors import Unprocessable
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.tenants.sql import select_tenants, tenant_of
from vettance.watchlists.match import EntityMatch
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.search_processes import SearchProcess, searching_changes
from vettance.watchlists.sources.source_table import OWN
from vettance.watchlists.subject_screening import SHOWN_MIN
from vettance.watchlists.tenant_index import Reach, list_set_id
from vettance.wire.payload import decode

#: Subjects read, searched and noted at a time: tens of milliseconds of another process, one commit.
CHUNK: Final = 200
#: Another process may still have screened with the lists of before; such subjects are found by the next look.
LOOK_S: Final = 60.0
#: Searching for this must not slow down what somebody waits for.
NICENESS: Final = 10
#: How long subjects of one tenant are screened while those of others wait; what is left comes behind them.
TURN_S: Final = 10.0
_TRIES: Final = 8
#: What the look at all tenants is known by among them.
_LOOK: Final = ""

_log = logger()


class Rescreener:
    """Screens known subjects again, in the background, with a process of its own for the searching."""

    def __init__(
        self,
        store: Store,
        screener: Screener,
        keeper: IndexKeeper,
        data: Path,
        now_ms: Callable[[], int] = clock.now_ms,
        turn_s: float = TURN_S,
    ) -> None:
        self._turn_s = turn_s
        self._store = store
        self._screener = screener
        self._keeper = keeper
        self._data = data
        self._now_ms = now_ms
        self._process: SearchProcess | None = None
        self._searched: tuple[str, ...] = ()
        self._isolation = Isolation("rescreening")

    async def run(self) -> None:
        """Screen again for ever: at once, whenever a list changes, and now and then."""
        try:
            while True:
                # While the store is unreachable, this waits and continues when it answers again.
                with contextlib.suppress(StoreDown), self._isolation.of(_LOOK):
                    await self.catch_up()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._keeper.changed()
        finally:
            await self._close()

    async def catch_up(self) -> None:
        """Screen again every subject of every tenant that has another set than the current one, in turns."""
        try:
            tenants = map(tenant_of, await self._store.read(select_tenants()))
            waiting = deque(tenant.id for tenant in tenants if tenant.aml)
            while waiting:
                tenant_id = waiting.popleft()
                if not self._isolation.is_due(tenant_id):
                    continue
                with self._isolation.of(tenant_id):
                    if not await self._tenant(tenant_id):
                        waiting.append(tenant_id)
                if not self._isolation.is_due(tenant_id):
                    await self._close()  # Its process may have failed, and not its tenant.
        finally:
            await self._close()

    async def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _tenant(self, tenant: str) -> bool:
        """Screen subjects of a tenant for a turn; tell whether that was all that can be done."""
        until_s = time.monotonic() + self._turn_s
        moved = 1
        while moved:
            # Taken anew for every chunk: the lists may change in the middle.
            reach = await self._keeper.reach(tenant)
            if reach is None:
                return True
            target = list_set_id(reach.versions)
            rows = await self._store.read(sql.select_behind(tenant, target, CHUNK))
            if not rows:
                await self._store.write(sql.finish_rescreening(tenant, target, self._now_ms()))
                return True
            subjects = sorted((sql.StoredSubject._make(row) for row in rows), key=_list_set)
            moved = 0
            for old, group in itertools.groupby(subjects, key=_list_set):
                moved += await self._group(tenant, old, target, reach, list(group))
            if moved and time.monotonic() >= until_s:
                return False
        return True

    async def _group(
        self, tenant: str, old: str, target: str, reach: Reach, subjects: Sequence[sql.StoredSubject]
    ) -> int:
        """Screen subjects that all have one set; returns how many are done."""
        rows = await self._store.read(sql.select_list_set(old))
        before: Mapping[str, str] = msgspec.json.decode(rows[0][0], type=dict[str, str]) if rows else {}
        known = sql.insert_list_set(target, reach.versions)
        process = await self._process_of(tenant, (old, target), before, reach)
        if process is None:
            done = (await self._store.write(sql.move_unchanged(tenant, old, target, CHUNK), known))[0]
            await self._store.write(sql.count_rescreened(tenant, target, done, 0, self._now_ms()))
            return done
        found = await self._search(process, tenant, subjects)
        quiet = [sql.move_subject(tenant, subject, target) for subject, matches in found if not matches]
        counted = sql.count_rescreened(tenant, target, len(quiet), 0, self._now_ms())
        done = sum((await self._store.write(*quiet, counted, known))[: len(quiet)])
        for subject, matches in found:
            key = f"{tenant}:{subject.screening_id}"
            if matches and self._isolation.is_due(key):
                with self._isolation.of(key):
                    done += await self._hit(tenant, subject, target, reach, matches)
        return done

    async def _process_of(
        self, tenant: str, step: tuple[str, str], before: Mapping[str, str], reach: Reach
    ) -> SearchProcess | None:
        """Return a process that searches what changed since `before`; None when nothing did."""
        versions = dict(reach.versions)
        if all(before.get(source) == version for source, version in versions.items()):
            return None
        # What changed for everybody is found once, and once more for each tenant with a list of its own.
        searched = (tenant if OWN in versions else "", *step)
        if self._process is None or self._searched != searched:
            await self._close()
            self._process = searching_changes(
                self._data, tenant, (before, versions), SHOWN_MIN, reach.folders[0], NICENESS
            )
            self._searched = searched
        return self._process if await self._process.entities() else None

    async def _search(
        self, process: SearchProcess, tenant: str, subjects: Sequence[sql.StoredSubject]
    ) -> list[tuple[sql.StoredSubject, list[EntityMatch]]]:
        readable, asked = [], []
        found: list[tuple[sql.StoredSubject, list[EntityMatch]]] = []
        for subject in subjects:
            try:
                asked.append(read_screen_request(decode(subject.sent)).subject)
                readable.append(subject)
            except (Unprocessable, msgspec.DecodeError):
                _log.error("subject_unreadable", tenant=tenant, screening=subject.screening_id)
                found.append((subject, []))
        for subject, matches in zip(readable, await process.search(asked), strict=True):
            if matches is None:
                _log.error("subject_unsearchable", tenant=tenant, screening=subject.screening_id)
            found.append((subject, matches or []))
        return found

    async def _hit(
        self,
        tenant: str,
        subject: sql.StoredSubject,
        target: str,
        reach: Reach,
        matches: list[EntityMatch],
    ) -> int:
        """Keep what was found of one subject, with its alert, and move it, in one commit."""
        request = msgspec.structs.replace(
            read_screen_request(decode(subject.sent)), role=subject.role, trigger=RESCREENING
        )
        found = SearchResult(reach.versions, reach.id, matches)
        moved = sql.move_subject(tenant, subject, target, must=True)
        async with self._screener.turn(tenant, request.external_id):
            for _ in range(_TRIES):
                now_ms = self._now_ms()
                weighed, before = await self._screener.weigh_with_case(tenant, request, found)
                statements: list[Statement] = []
                alerts = 0
                if weighed.alerts:
                    placed = self._screener.place(tenant, weighed, before, now_ms)
                    alerts = 1 if placed.alert is not None else 0
                    statements = [*placed.statements, *saving(tenant, before, placed)]
                statements.append(sql.count_rescreened(tenant, target, 1, alerts, now_ms))
                try:
                    await self._store.write(moved, *statements)
                except (Clash, Lost):
                    if await self._is_gone(tenant, subject):
                        return 1  # Somebody has screened the subject in between; what they know is newer.
                    continue
                return 1
        _log.warning("subject_busy", tenant=tenant, screening=subject.screening_id)
        return 0

    async def _is_gone(self, tenant: str, subject: sql.StoredSubject) -> bool:
        rows = await self._store.read(sql.select_subject(tenant, subject.external_id, subject.role))
        return not rows or sql.StoredSubject._make(rows[0]) != subject


def _list_set(subject: sql.StoredSubject) -> str:
    return subject.list_set
