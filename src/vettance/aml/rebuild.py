"""Rebuild: put a tenant's AML rules into force, with a memory that has seen the whole log."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from vettance.aml import sql
from vettance.aml.event import read_aml_event
from vettance.aml.judge import rule_weight
from vettance.aml.memory import KEPT_MS, AmlMemory
from vettance.aml.monitor import Monitor
from vettance.db.engine import Clash, Row, Store
from vettance.decisions.active import ActiveRules, RuleCache
from vettance.errors import Refusal
from vettance.rules.packs import load_pack_text
from vettance.wire import decode

CHUNK: Final = (
    500  # Events read at a time; replaying them takes some milliseconds of the thread that decides.
)
_NEXT: Final = "#next"  # The coming memory is filled under this name beside the one in use.
PACK: Final = "aml"


class AmlRebuilder:
    """Keeps the memory of AML equal to what its log says. A tenant is made ready at its first event."""

    def __init__(
        self,
        store: Store,
        memory: AmlMemory,
        monitor: Monitor,
        cache: RuleCache,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._monitor = monitor
        self._cache = cache
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._turns: dict[str, asyncio.Lock] = {}
        monitor.prepare = self.prepare

    async def start(self) -> int:
        """Make every tenant with AML rules ready; returns how many events were replayed."""
        replayed = 0
        for (tenant,) in await self._store.read(sql.select_rulesets()):
            replayed += await self._load(tenant)
        return replayed

    async def prepare(self, tenant: str) -> None:
        """Make a tenant ready that is not yet: it starts with the default pack when it has no rules."""
        async with self._turns.setdefault(tenant, asyncio.Lock()):
            if tenant in self._monitor.rules:
                return
            if not await self._store.read(sql.select_ruleset(tenant)):
                # Of two processes one is first; what it stored is read below.
                with contextlib.suppress(Clash):
                    await self._store.write(
                        sql.insert_ruleset(
                            tenant, 1, load_pack_text(PACK), "The default pack.", self._now_ms()
                        )
                    )
            await self._load(tenant)

    async def reload(self, tenant: str, _subject: str = "") -> None:
        """Follow a change: the newest rules, the settings, and the weights that closed alerts leave."""
        if tenant in self._monitor.rules:
            async with self._turns.setdefault(tenant, asyncio.Lock()):
                await self._load(tenant)

    async def mend(self) -> None:
        """Bring back in line the memory of every tenant for whom a write has failed."""
        for tenant in tuple(self._monitor.astray):
            await self.reload(tenant)

    async def _load(self, tenant: str) -> int:
        await self._load_settings(tenant)
        rows = await self._store.read(sql.select_ruleset(tenant))
        active = self._cache.active(rows[0][0], rows[0][1])
        current = self._monitor.rules.get(tenant)
        if current is not None and current.version == active.version and tenant not in self._monitor.astray:
            return 0
        coming = tenant + _NEXT
        self._memory.install(coming, active.compiled.plan)
        replayed, after = await self._catch_up(tenant, coming, active, 0)
        await self._monitor.pause(tenant)
        try:
            more, _ = await self._catch_up(tenant, coming, active, after)
            self._memory.adopt(tenant, coming)
            self._monitor.rules[tenant] = active
            self._monitor.astray.discard(tenant)
        finally:
            self._monitor.resume(tenant)
        return replayed + more

    async def _load_settings(self, tenant: str) -> None:
        self._monitor.settings[tenant] = sql.settings_of(await self._store.read(sql.select_settings(tenant)))
        closed: dict[str, dict[str, int]] = {}
        for rule_id, resolution, count in await self._store.read(sql.select_outcomes(tenant)):
            closed.setdefault(rule_id, {})[resolution] = count
        self._monitor.weights[tenant] = {
            rule_id: rule_weight(counts.get("TRUE_MATCH", 0), counts.get("FALSE_POSITIVE", 0))
            for rule_id, counts in closed.items()
        }

    async def _catch_up(self, tenant: str, coming: str, active: ActiveRules, after: int) -> tuple[int, int]:
        since_ms = self._now_ms() - KEPT_MS
        replayed = 0
        while rows := await self._store.read(sql.select_log(tenant, after, since_ms, CHUNK)):
            for row in rows:
                self._replay(coming, active, row)
            after = rows[-1][0]
            replayed += len(rows)
        return replayed, after

    def _replay(self, coming: str, active: ActiveRules, row: Row) -> None:
        _, event_id, received_at_ms, sent = row
        try:
            event = read_aml_event(decode(sent), len(sent), received_at_ms)
        except Refusal:
            return  # The bounds were narrowed since this event was taken; it stays in the log only.
        compiled = active.compiled
        followed = self._memory.follow(coming, event)
        seen = compiled.observe(compiled.facts(followed))
        self._memory.observe(coming, event_id, event.occurred_at_ms, seen)
