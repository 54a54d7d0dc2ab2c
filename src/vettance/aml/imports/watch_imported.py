"""Backfill: watch imported history as of its own time, by a memory filled from the log in that order."""

from typing import Final

from vettance.aml.aml_event import AmlEvent
from vettance.aml.aml_memory import AmlMemory, WatchedEvent
from vettance.aml.imports import sql
from vettance.aml.parties import OWN_MS
from vettance.aml.sql import logged_aml_event
from vettance.db.engine import Row, Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.errors import Refusal
from vettance.events.sql import ImportRun
from vettance.velocity.sync.log_by_time import LogByTime, TimedLog

EVENTS: Final = TimedLog(sql.select_moments, sql.select_rows)
_CHUNK: Final = 128


class AmlBackfill:
    """What `decisions.backfill.Backfill` is for fraud: the memory by which one import is watched.

    It begins as far back as a customer is remembered, since the graph and the habits of customers have no
    windows.
    """

    def __init__(
        self, store: Store, tenant: str, active: ActiveRules, memory: AmlMemory, run: ImportRun
    ) -> None:
        """`memory` is empty."""
        self.run = run
        self.active = active
        self._store = store
        self._tenant = tenant
        self._memory = memory
        memory.install(tenant, active.compiled.plan)
        self._past = LogByTime(store, EVENTS, tenant, run.base, (run.first_ms - OWN_MS, run.last_ms))
        self._last: tuple[str, WatchedEvent] | None = None

    async def resume(self) -> None:
        """Take up what this import has brought into the log so far."""
        after = self.run.base
        while rows := await self._store.read(
            sql.select_imported_log(self._tenant, self.run.id, after, _CHUNK)
        ):
            for row in rows:
                event = _event_of(row)
                if event is not None:
                    await self.reach(event.occurred_at_ms)
                    self.take(row[1], event)
            after = rows[-1][0]

    async def reach(self, at_ms: int) -> None:
        """Take up what others had reported up to a moment; before the next event of the import is taken."""
        async for row in self._past.until(at_ms):
            event = _event_of(row)
            if event is not None:
                self._memory.take(self._tenant, self.active.compiled, row[1], event)

    def take(self, event_id: str, event: AmlEvent) -> WatchedEvent:
        """Return what was known at the time of the next event, and record it.

        Asked about the same event again, because it met with no turn say, it answers the same.
        """
        if self._last is None or self._last[0] != event.external_id:
            taken = self._memory.take(self._tenant, self.active.compiled, event_id, event)
            self._last = event.external_id, taken
        return self._last[1]


def _event_of(row: Row) -> AmlEvent | None:
    """Read the event of a row of the log; None when the bounds were narrowed since it was taken."""
    try:
        return logged_aml_event(row)
    except Refusal:
        return None
