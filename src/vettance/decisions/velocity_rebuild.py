"""Rebuild: puts rule sets into force, with velocity that has seen the whole log of events."""

from collections.abc import Callable

from vettance import clock
from vettance.db.engine import Row, Store, StoreDown
from vettance.decisions.active_rulesets import FRAUD_LOG, ActiveRules, RuleCache, observation_of
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.label_memory import LabelReplayer
from vettance.decisions.load_ruleset import RuleLoader
from vettance.fairness.skipped_rows import Skipped
from vettance.rules.sql import DECIDING
from vettance.telemetry.meter_table import Rows
from vettance.velocity.port import LabelledVelocity
from vettance.velocity.sync.log_replay import LogReplay, Progress, Restore


class VelocityRebuilder:
    """Puts rule sets into force and keeps the memory equal to the log."""

    def __init__(
        self,
        store: Store,
        velocity: LabelledVelocity,
        evaluator: Evaluator,
        cache: RuleCache,
        restore: Restore,
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
    ) -> None:
        self._skipped = skipped or Skipped()
        self._loader = RuleLoader(store, cache, DECIDING, evaluator.impaired)
        self._store = store
        self._velocity = velocity
        self._evaluator = evaluator
        labels = LabelReplayer(store, velocity, self._skipped)
        self._log_replay = LogReplay(
            store, FRAUD_LOG, velocity, evaluator, restore, self._replay, now_ms, labels.replay
        )

    async def start(self, progress: Progress | None = None) -> int:
        """Load every tenant's rules and memory, and replay the log beyond; returns how many events."""
        found = {}
        for tenant, version, document in await self._store.read(DECIDING.select_active_of_all()):
            active = await self._loader.load(tenant, version, document)
            found[tenant] = active, active.asked.plan
        count, _ = await self._log_replay.fill(found, progress)
        self._evaluator.rules.update({tenant: active for tenant, (active, _) in found.items()})
        return count

    async def reload(self, tenant: str) -> None:
        """Put the newest rules of a tenant into force, with a memory that has seen the whole log.

        While that fails, the tenant's answers say that they are degraded.
        """
        try:
            await self._reload(tenant)
        except StoreDown:
            raise
        except Exception as error:
            self._evaluator.impaired[tenant] = type(error).__name__
            raise

    async def _reload(self, tenant: str) -> None:
        rows = await self._store.read(DECIDING.select_active(tenant))
        if not rows:
            return
        active = await self._loader.load(tenant, rows[0][0], rows[0][1])
        rules = self._evaluator.rules
        current = rules.get(tenant)
        is_same = current is not None and (
            (current.version, current.feature_set) == (active.version, active.feature_set)
        )
        if is_same and tenant not in self._evaluator.astray:
            return
        await self._log_replay.exchange(
            tenant, active, active.asked.plan, lambda _: rules.update({tenant: active})
        )

    def _replay(self, memory: str, active: ActiveRules, row: Row) -> None:
        """Observe an event of the log; one that cannot be read again is left out."""
        try:
            self._velocity.observe(memory, row[2], *observation_of(active, row))
        except Exception as error:  # noqa: BLE001  One row must not keep a process from its start.
            self._skipped.note(Rows.EVENT, row[1], row[2], error)
