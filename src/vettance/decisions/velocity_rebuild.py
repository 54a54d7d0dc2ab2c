"""Rebuild: fill the memory between events from the log, at start and whenever a tenant's rules change."""

from collections.abc import Awaitable, Callable
from typing import Any

from vettance import clock
from vettance.db.engine import Row, Statement, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, observation_of
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.load_ruleset import RuleLoader
from vettance.decisions.velocity_backfill import REPLAYED_MS, find_lacking
from vettance.events import sql as events_sql
from vettance.fairness.skipped_rows import Skipped
from vettance.rules.sql import DECIDING
from vettance.telemetry.meters import Rows
from vettance.velocity.port import Plan, Velocity

CHUNK = 5_000  # Events read at a time at the start, when nobody waits.
LIVE_CHUNK = 200  # The same while events are being decided: some milliseconds of the thread that decides.
_NEXT = "#next"  # A tenant's coming memory is filled under this name beside the one in use.

Progress = Callable[[int], Any]


class VelocityRebuilder:
    """Puts rule sets into force and keeps the memory equal to what the log says."""

    def __init__(
        self,
        store: Store,
        velocity: Velocity,
        evaluator: Evaluator,
        cache: RuleCache,
        restore: Callable[[str, Plan, str], Awaitable[int]],
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
    ) -> None:
        self._skipped = skipped or Skipped()
        self._loader = RuleLoader(store, cache, DECIDING, evaluator.impaired)
        self._store = store
        self._velocity = velocity
        self._evaluator = evaluator
        self._restore = restore
        self._now_ms = now_ms

    async def start(self, progress: Progress | None = None) -> int:
        """Load every tenant's rules and memory, and replay the log beyond; returns how many events."""
        since_ms = self._now_ms() - REPLAYED_MS
        reached: dict[str, int] = {}
        for tenant, version, document in await self._store.read(DECIDING.select_newest_of_all()):
            active = await self._loader.load(tenant, version, document)
            reached[tenant] = await self._restore(tenant, active.compiled.plan, tenant)
            await self._note_lacking(tenant, tenant, reached[tenant], since_ms)
            self._evaluator.rules[tenant] = active
        rules = self._evaluator.rules
        after = min(reached.values(), default=0)
        replayed = 0
        while rows := await self._store.read(events_sql.select_log(after, since_ms, CHUNK)):
            for row in rows:
                tenant = row[1]
                if tenant in rules and row[0] > reached[tenant]:
                    self._replay(tenant, rules[tenant], row)
            after = rows[-1][0]
            replayed += len(rows)
            if progress is not None:
                progress(replayed)
        return replayed

    async def reload(self, tenant: str) -> None:
        """Put the newest rules of a tenant into force, with a memory that has seen the whole log.

        Where that fails, the tenant's answers say that they are degraded, until it succeeds.

        The bulk of the log is read while the old rules go on deciding; only the last few events are replayed
        with the tenant's new events held back.
        """
        try:
            await self._reload(tenant)
        except StoreDown:
            raise
        except Exception as error:
            self._evaluator.impaired[tenant] = type(error).__name__
            raise

    async def _reload(self, tenant: str) -> None:
        rows = await self._store.read(DECIDING.select_newest(tenant))
        if not rows:
            return
        active = await self._loader.load(tenant, rows[0][0], rows[0][1])
        current = self._evaluator.rules.get(tenant)
        if current is not None and current.version == active.version and tenant not in self._evaluator.astray:
            return
        coming = tenant + _NEXT
        # Also for a memory that is astray: its snapshots were written while it was equal to the log.
        reached = await self._restore(tenant, active.compiled.plan, coming)
        since_ms = self._now_ms() - REPLAYED_MS
        await self._note_lacking(tenant, coming, reached, since_ms)
        after = await self._catch_up(tenant, coming, active, reached, since_ms)
        await self._evaluator.pause(tenant)
        try:
            await self._catch_up(tenant, coming, active, after, since_ms)
            self._velocity.adopt(tenant, coming)
            self._evaluator.rules[tenant] = active
            self._evaluator.astray.discard(tenant)
        finally:
            self._evaluator.resume(tenant)

    async def _note_lacking(self, tenant: str, memory: str, after: int, since_ms: int) -> None:
        """Have a memory know what it lacks of the log behind a place, if that is too old to be read."""
        lacking_ms = await find_lacking(self._store, self._select(tenant, after, 0, 1), since_ms)
        if lacking_ms is not None:
            self._velocity.forget_before(memory, lacking_ms)

    async def _catch_up(
        self, tenant: str, coming: str, active: ActiveRules, after: int, since_ms: int
    ) -> int:
        while rows := await self._store.read(self._select(tenant, after, since_ms)):
            for row in rows:
                self._replay(coming, active, row)
            after = rows[-1][0]
        return after

    def _select(self, tenant: str, after: int, since_ms: int, limit: int = LIVE_CHUNK) -> Statement:
        return events_sql.select_tenant_log(tenant, after, since_ms, limit)

    def _replay(self, memory: str, active: ActiveRules, row: Row) -> None:
        """Observe an event of the log; one that cannot be read again is left out."""
        try:
            self._velocity.observe(memory, row[2], *observation_of(active, row))
        except Exception as error:  # noqa: BLE001  One row must not keep a process from its start.
            self._skipped.note(Rows.EVENT, row[1], row[2], error)
