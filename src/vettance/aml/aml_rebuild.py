"""Rebuild: puts a tenant's AML rules into force, with a memory that has seen the whole log of AML."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from vettance import clock
from vettance.aml import sql
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.findings import rule_weight
from vettance.aml.log_position import LogPosition
from vettance.aml.monitor import Monitor
from vettance.aml.parties import OWN_MS
from vettance.aml.used_ids import UsedIds
from vettance.db.engine import Clash, Row, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.load_ruleset import RuleLoader
from vettance.errors import Unavailable
from vettance.rules.packs import load_pack_text
from vettance.telemetry.logs import logger
from vettance.tenants.sql import select_last_change
from vettance.velocity.port import Plan
from vettance.velocity.sync.event_log import EventLog
from vettance.velocity.sync.log_replay import LogReplay, Progress, Restore

IDS_CHUNK: Final = 20_000
#: The log of events that AML rules count.
AML_LOG: Final = EventLog(
    sql.select_log_of_all,
    sql.select_log,
    tenant_column=5,
    id_column=1,
    kept_ms=OWN_MS,
    chunk=2_000,
    live_chunk=50,
)

_log = logger()


class AmlRebuilder:
    """Keeps the memory of AML equal to what its log says. A tenant is made ready at its first event."""

    def __init__(
        self,
        store: Store,
        memory: AmlMemory,
        monitor: Monitor,
        cache: RuleCache,
        restore: Restore,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        """`restore` gives a tenant the memory of a snapshot, see `VelocitySnapshots.restore`."""
        self._store = store
        self._memory = memory
        self._restore = restore
        self._monitor = monitor
        self._loader = RuleLoader(store, cache, sql.RULE_SETS, monitor.impaired)
        self._now_ms = now_ms
        self._log_replay = LogReplay(
            store, AML_LOG, memory, monitor, self._restore_with_ids, self._replay, now_ms
        )
        self._turns: dict[str, asyncio.Lock] = {}
        #: Takes up what other processes have added to the log.
        self.follow: Callable[[], Awaitable[None]] = _follow_nobody
        monitor.prepare = self.prepare

    async def start(self, progress: Progress | None = None) -> int:
        """Make every tenant with AML rules ready, and replay the log beyond its snapshot.

        Returns how many events were read.
        """
        changed, number_max = await self._read_ends()
        found = {}
        for tenant, version, document in await self._store.read(sql.RULE_SETS.select_active_of_all()):
            active = await self._loader.load(tenant, version, document)
            await self._load_settings(tenant)
            found[tenant] = active, active.compiled.plan
        count, reached = await self._log_replay.fill(found, progress)
        for tenant, (active, _) in found.items():
            self._monitor.rules[tenant] = active
            self._monitor.places[tenant] = LogPosition(max(reached[tenant], number_max), changed)
        return count

    async def prepare(self, tenant: str) -> None:
        """Make a tenant ready that is not yet: it starts with the default pack when it has no rules."""
        async with self._turns.setdefault(tenant, asyncio.Lock()):
            if tenant in self._monitor.rules:
                return
            if not await self._store.read(sql.RULE_SETS.select_active(tenant)):
                # Of two processes one is first; what it stored is read below.
                with contextlib.suppress(Clash):
                    await self._store.write(
                        sql.RULE_SETS.insert(
                            tenant, 1, load_pack_text(sql.RULE_SETS.pack), "The default pack.", self._now_ms()
                        )
                    )
            try:
                await self._load(tenant)
            except StoreDown:
                raise
            except Exception as error:  # noqa: BLE001  The caller learns that it is nobody's fault but ours.
                self._monitor.impaired[tenant] = type(error).__name__
                _log.exception("aml_memory_not_filled", tenant=tenant)
                raise Unavailable("The past of this tenant cannot be read at the moment.") from None

    async def reload(self, tenant: str, _subject: str = "") -> None:
        """Follow a change: the newest rules, the settings, and the weights that closed alerts leave."""
        if tenant in self._monitor.rules:
            async with self._turns.setdefault(tenant, asyncio.Lock()):
                try:
                    await self._load(tenant)
                except StoreDown:
                    raise
                except Exception as error:
                    self._monitor.impaired[tenant] = type(error).__name__
                    raise

    async def _load(self, tenant: str) -> None:
        changed, number_max = await self._read_ends()
        await self._load_settings(tenant)
        rows = await self._store.read(sql.RULE_SETS.select_active(tenant))
        active = await self._loader.load(tenant, rows[0][0], rows[0][1])
        current = self._monitor.rules.get(tenant)
        if current is not None and current.version == active.version and tenant not in self._monitor.astray:
            self._monitor.places[tenant].changed = changed
            return

        def put_into_force(reached: int) -> None:
            self._monitor.rules[tenant] = active
            self._monitor.places[tenant] = LogPosition(max(reached, number_max), changed)

        await self._log_replay.exchange(tenant, active, active.compiled.plan, put_into_force)

    async def _read_ends(self) -> tuple[int, int]:
        """Return the numbers of the last change of configuration and of the last event.

        They are read first: a later change is seen by the next look at the changes, and an event up to the
        last one that the replay leaves out is too old to matter, and is not to be read again.
        """
        changed = (await self._store.read(select_last_change()))[0][0]
        newest = await self._store.read(sql.select_last_event())
        return changed, newest[0][0] if newest else 0

    async def _restore_with_ids(self, tenant: str, plan: Plan, memory: str) -> int:
        """Restore a memory, and learn which ids the tenant has used, unless a snapshot says it."""
        reached = await self._restore(tenant, plan, memory)
        self._memory.share_known(tenant, memory)
        if tenant in self._memory.known:
            return reached
        known, after = UsedIds(), ("", 0)
        while rows := await self._store.read(sql.select_external_ids(tenant, after, IDS_CHUNK)):
            for name, _ in rows:
                known.add(name)
            after = rows[-1][0], rows[-1][1]
        self._memory.known[tenant] = known
        return reached

    async def _load_settings(self, tenant: str) -> None:
        self._monitor.settings[tenant] = sql.settings_of(await self._store.read(sql.select_settings(tenant)))
        closed: dict[str, dict[str, int]] = {}
        for rule_id, resolution, count in await self._store.read(sql.select_outcomes(tenant)):
            closed.setdefault(rule_id, {})[resolution] = count
        self._monitor.weights[tenant] = {
            rule_id: rule_weight(counts.get("TRUE_MATCH", 0), counts.get("FALSE_POSITIVE", 0))
            for rule_id, counts in closed.items()
        }

    def _replay(self, memory: str, active: ActiveRules, row: Row) -> None:
        _, event_id, external_id, received_at_ms, sent, tenant = row
        self._memory.replay(memory, active.compiled, event_id, received_at_ms, sent)
        # Another process may have added it since the ids were read.
        known = self._memory.known[tenant]
        if not known.may_hold(external_id):
            known.add(external_id)


async def _follow_nobody() -> None:
    """One process alone has nobody to follow."""
