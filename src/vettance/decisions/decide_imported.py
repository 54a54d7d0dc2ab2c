"""Backfill: decides imported history as of its own time, by a memory filled from the log in that order."""

from typing import Final

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules, RuleInputs, consider, legible_event
from vettance.decisions.label_memory import TIMED_LABELS, logged_label, record_label
from vettance.events import sql as events_sql
from vettance.events.event import Event
from vettance.velocity.aggregates import WINDOW_MS_MAX
from vettance.velocity.port import Velocity
from vettance.velocity.sync.log_by_time import LogByTime, TimedLog

EVENTS: Final = TimedLog(events_sql.select_moments, events_sql.select_rows)
#: Events of the import itself read at a time: some milliseconds of the thread that decides.
_CHUNK: Final = 128


class Backfill:
    """The memory by which one import is decided: it sees the log as of the time of each event.

    Of other events it holds those that were in the log when the import began, from any source,
    and of its own those that come before. It is a function of the log alone, so that an import which was
    interrupted continues with the same answers, and a backtest repeats them.
    """

    def __init__(
        self,
        store: Store,
        tenant: str,
        active: ActiveRules,
        velocity: Velocity,
        run: events_sql.ImportRun,
        since_ms: int | None = None,
    ) -> None:
        """`velocity` is empty; `since_ms` is the first moment that is asked about, if not all are."""
        self.run = run
        self.active = active
        self._store = store
        self._tenant = tenant
        self._velocity = velocity
        velocity.install(tenant, active.asked.plan)
        first_ms = max(run.first_ms, since_ms or run.first_ms) - WINDOW_MS_MAX
        span = first_ms, run.last_ms
        self._past = LogByTime(store, EVENTS, tenant, run.base, span)
        counts_labels = any(active.asked.labels.masks)
        self._labels = LogByTime(store, TIMED_LABELS, tenant, run.base, span) if counts_labels else None

    async def resume(self) -> None:
        """Take up what this import has decided so far."""
        after = self.run.base
        while rows := await self._store.read(events_sql.select_imported_log(self._tenant, after, _CHUNK)):
            for row in rows:
                event = legible_event(row)
                if event is not None:
                    await self.ask(row[2], event)
            after = rows[-1][0]

    async def ask(self, event_id: str, event: Event) -> RuleInputs:
        """Return what was known at the time of the next event of the import, and record it.

        Events are asked about in the order of their time.
        """
        async for row in self._past.until(event.occurred_at_ms):
            earlier = legible_event(row)
            if earlier is not None:
                consider(self._velocity, self.active, self._tenant, row[2], earlier)
        if self._labels is not None:
            await self._take_labels(self._labels, event.occurred_at_ms)
        return consider(self._velocity, self.active, self._tenant, event_id, event)

    async def _take_labels(self, labels: LogByTime, until_ms: int) -> None:
        async for row in labels.until(until_ms):
            try:
                label = logged_label(row)
            except Exception:  # noqa: BLE001, S112  The live memory, which leaves it out as well, logged it.
                continue
            record_label(self._velocity, self.active, self._tenant, label.event, label.change)
