"""Asks velocity that several processes share about events, by the rules in force."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from vettance import clock
from vettance.db.engine import Row, Store
from vettance.decisions.active_rulesets import (
    FRAUD_LOG,
    MEMORY,
    ActiveRules,
    RuleCache,
    RuleInputs,
    observation_of,
)
from vettance.decisions.label_memory import LABEL_LOG, label_observation, logged_label
from vettance.decisions.load_ruleset import RuleLoader
from vettance.errors import Unavailable
from vettance.events.event import Event
from vettance.fairness.skipped_rows import Skipped
from vettance.feedback import label_sql
from vettance.feedback.label_change import LabelChange
from vettance.redis_link.down import StateDown
from vettance.rules.sql import DECIDING
from vettance.rules.unknowns import failures_of, message_of
from vettance.telemetry.meter_table import Rows
from vettance.velocity.port import EVERYTHING, Observation, Plan, SharedVelocity, Unready, nothing_known
from vettance.velocity.sync.shared_sync import SharedVelocitySync

#: How long an event waits for its tenant's memory to be exchanged, before it is refused.
PATIENCE_S: Final = 5.0
_RETRY_S: Final = 0.02
_AWAY: Final = "The memory of past events cannot be reached at the moment. Try again."


class SharedMemory(SharedVelocitySync[ActiveRules]):
    """What `VelocityRebuilder` is for the velocity of one process, and what asks it about events."""

    def __init__(
        self,
        store: Store,
        velocity: SharedVelocity,
        cache: RuleCache,
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
    ) -> None:
        super().__init__(store, FRAUD_LOG, velocity, label_sql.select_present, now_ms, LABEL_LOG)
        self._skipped = skipped or Skipped()
        self._loader = RuleLoader(store, cache, DECIDING, self.impaired)

    async def observe(self, tenant: str, event_id: str, event: Event) -> RuleInputs:
        """Ask about an event and record it.

        Raises `Unavailable` (503) when the memory cannot be reached, or is being exchanged for too long.
        """
        until_s = time.monotonic() + PATIENCE_S
        while True:
            active = self.rules.get(tenant)
            if active is None:
                raise Unavailable("The rules of this tenant are not loaded yet.")
            compiled = active.asked
            facts = compiled.facts(event)
            seen = compiled.observe(facts)
            unknown = failures_of(facts, seen)
            try:
                answer = await self._velocity.observe(
                    tenant,
                    event_id,
                    event.occurred_at_ms,
                    seen,
                    compiled.plan,
                    received=event.occurred_at_ms == event.received_at_ms,
                )
            except Unready as unready:
                await self._make_ready(tenant, active, str(unready), until_s)
                continue
            except StateDown:
                # It may have been recorded all the same.
                self.follow_astray(tenant)
                raise Unavailable(_AWAY) from None
            except asyncio.CancelledError:
                self.follow_astray(tenant)
                raise
            except Exception as error:  # noqa: BLE001  A decision never fails because of one event.
                unknown.append((MEMORY, message_of(error)))
                return RuleInputs(active, facts, nothing_known(compiled.plan), unknown)
            if answer.inexact == EVERYTHING:
                self.degraded.add(tenant)
                self.follow(tenant)
            elif self.degraded:
                self.degraded.discard(tenant)
            return RuleInputs(active, facts, answer, unknown)

    async def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory. Raises `Unavailable` when it cannot be reached."""
        try:
            return await self._velocity.reached(tenant)
        except StateDown:
            raise Unavailable(_AWAY) from None

    async def observe_labels(self, tenant: str, event: Event, changes: Sequence[LabelChange]) -> list[str]:
        """Record labels of an event; returns the ids of those that the rules count. Raises as `observe`."""
        try:
            return [change.id for change in changes if await self._observe_label(tenant, event, change)]
        except BaseException:
            self.follow_astray(tenant)
            raise

    async def _observe_label(self, tenant: str, event: Event, change: LabelChange) -> bool:
        until_s = time.monotonic() + PATIENCE_S
        while True:
            active = self.rules.get(tenant)
            if active is None:
                raise Unavailable("The rules of this tenant are not loaded yet.")
            seen = label_observation(active, event, change)
            if seen is None:
                return False
            try:
                await self._velocity.observe(tenant, change.id, change.at_ms, seen, active.asked.plan)
            except Unready as unready:
                await self._make_ready(tenant, active, str(unready), until_s)
            except StateDown:
                raise Unavailable(_AWAY) from None
            else:
                return True

    async def _make_ready(self, tenant: str, active: ActiveRules, why: str, until_s: float) -> None:
        if time.monotonic() > until_s:
            raise Unavailable("The memory of this tenant is being exchanged. Try again.")
        if why == "lost":
            try:
                await self._velocity.found(tenant, active.asked.plan)
            except StateDown:
                raise Unavailable(_AWAY) from None
            self.follow(tenant)
            return
        if why == "stale":
            self.follow(tenant)
        await asyncio.sleep(_RETRY_S)

    async def reload(self, tenant: str) -> None:
        """Follow a change of a tenant's rules; they are in force once a memory has seen the log by them."""
        self.follow(tenant)

    async def _tenants(self) -> list[str]:
        return [row[0] for row in await self._store.read(DECIDING.select_active_of_all())]

    async def _load(self, tenant: str) -> ActiveRules | None:
        rows = await self._store.read(DECIDING.select_active(tenant))
        return await self._loader.load(tenant, rows[0][0], rows[0][1]) if rows else None

    def _plan_of(self, rules: ActiveRules) -> Plan:
        return rules.asked.plan

    def _read(self, rules: ActiveRules, row: Row) -> tuple[int, Observation]:
        return observation_of(rules, row)

    def _read_label(self, rules: ActiveRules, row: Row) -> tuple[int, Observation | None]:
        label = logged_label(row)
        return label.change.at_ms, label_observation(rules, label.event, label.change)

    def _skip(self, row: Row, error: Exception) -> None:
        self._skipped.note(Rows.EVENT, row[1], row[2], error)
