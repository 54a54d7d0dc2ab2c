"""Rebuild: put a tenant's AML rules into force, with a memory that has seen the whole log."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from vettance import clock
from vettance.aml import sql
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.findings import rule_weight
from vettance.aml.log_position import LogPosition
from vettance.aml.monitor import Monitor
from vettance.aml.parties import OWN_MS
from vettance.aml.used_ids import Known
from vettance.db.engine import Clash, Store, StoreDown
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.load_ruleset import RuleLoader
from vettance.decisions.velocity_backfill import find_lacking
from vettance.errors import Unavailable
from vettance.rules.packs import load_pack_text
from vettance.telemetry.logs import logger
from vettance.tenants.sql import select_last_change
from vettance.velocity.port import Plan

CHUNK: Final = 2_000  # Events read at a time at the start, when nobody waits.
LIVE_CHUNK: Final = 50  # The same while events are watched: some milliseconds of the thread that decides.
IDS_CHUNK: Final = 20_000
_NEXT: Final = "#next"  # The coming memory is filled under this name beside the one in use.

Progress = Callable[[int], Any]

_log = logger()


class AmlRebuilder:
    """Keeps the memory of AML equal to what its log says. A tenant is made ready at its first event."""

    def __init__(
        self,
        store: Store,
        memory: AmlMemory,
        monitor: Monitor,
        cache: RuleCache,
        restore: Callable[[str, Plan, str], Awaitable[int]],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        """`restore` gives a tenant the memory of a snapshot, see `decisions.preserve.Preserver.restore`."""
        self._store = store
        self._memory = memory
        self._restore = restore
        self._monitor = monitor
        self._loader = RuleLoader(store, cache, sql.RULE_SETS, monitor.impaired)
        self._now_ms = now_ms
        self._turns: dict[str, asyncio.Lock] = {}
        #: Takes up what other processes have added to the log.
        self.follow: Callable[[], Awaitable[None]] = _follow_nobody
        monitor.prepare = self.prepare

    async def start(self, progress: Progress | None = None) -> int:
        """Make every tenant with AML rules ready, and replay the log beyond its snapshot.

        Returns how many events were looked at.
        """
        changed = (await self._store.read(select_last_change()))[0][0]
        # What stands up to here and is not read below is too old to matter; nobody must read it again.
        newest = await self._store.read(sql.select_last_event())
        seq_max = newest[0][0] if newest else 0
        since_ms, looked = self._now_ms() - OWN_MS, 0
        found: dict[str, tuple[ActiveRules, int]] = {}
        for tenant, version, document in await self._store.read(sql.RULE_SETS.select_newest_of_all()):
            active = await self._loader.load(tenant, version, document)
            reached = await self._restore(tenant, active.compiled.plan, tenant)
            found[tenant] = active, reached
            await self._note_lacking(tenant, tenant, reached, since_ms)
            await self._load_settings(tenant)
            await self._load_known(tenant)
        after = min((reached for _, reached in found.values()), default=0)
        while rows := await self._store.read(sql.select_log_of_all(after, since_ms, CHUNK)):
            for seq, tenant, *row in rows:
                if tenant in found and seq > found[tenant][1]:
                    self._replay(tenant, found[tenant][0], row)
                    self._memory.known[tenant].add(row[1])
            after = rows[-1][0]
            looked += len(rows)
            if progress is not None:
                progress(looked)
        for tenant, (active, reached) in found.items():
            self._monitor.rules[tenant] = active
            self._monitor.places[tenant] = LogPosition(max(after, reached, seq_max), changed)
        return looked

    async def prepare(self, tenant: str) -> None:
        """Make a tenant ready that is not yet: it starts with the default pack when it has no rules."""
        async with self._turns.setdefault(tenant, asyncio.Lock()):
            if tenant in self._monitor.rules:
                return
            if not await self._store.read(sql.RULE_SETS.select_newest(tenant)):
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

    async def _load(self, tenant: str) -> int:
        # First of all: what changes from here on is seen by the next look.
        changed = (await self._store.read(select_last_change()))[0][0]
        newest = await self._store.read(sql.select_last_event())
        seq_max = newest[0][0] if newest else 0
        await self._load_settings(tenant)
        rows = await self._store.read(sql.RULE_SETS.select_newest(tenant))
        active = await self._loader.load(tenant, rows[0][0], rows[0][1])
        current = self._monitor.rules.get(tenant)
        if current is not None and current.version == active.version and tenant not in self._monitor.astray:
            self._monitor.places[tenant].changed = changed
            return 0
        coming = tenant + _NEXT
        # Also for a memory that is astray: its snapshots were written while it was equal to the log.
        reached = await self._restore(tenant, active.compiled.plan, coming)
        self._memory.share_known(tenant, coming)
        await self._load_known(tenant)
        since_ms = self._now_ms() - OWN_MS
        await self._note_lacking(tenant, coming, reached, since_ms)
        replayed, after = await self._catch_up(tenant, coming, active, reached, since_ms)
        await self._monitor.pause(tenant)
        try:
            more, after = await self._catch_up(tenant, coming, active, after, since_ms)
            self._memory.adopt(tenant, coming)
            self._monitor.rules[tenant] = active
            self._monitor.places[tenant] = LogPosition(max(after, seq_max), changed)
            self._monitor.astray.discard(tenant)
        finally:
            self._monitor.resume(tenant)
        return replayed + more

    async def _load_known(self, tenant: str) -> None:
        """Learn which ids a tenant has used, unless a snapshot told it."""
        if tenant in self._memory.known:
            return
        known, after = Known(), ("", 0)
        while rows := await self._store.read(sql.select_external_ids(tenant, after, IDS_CHUNK)):
            for name, _ in rows:
                known.add(name)
            after = rows[-1][0], rows[-1][1]
        self._memory.known[tenant] = known

    async def _load_settings(self, tenant: str) -> None:
        self._monitor.settings[tenant] = sql.settings_of(await self._store.read(sql.select_settings(tenant)))
        closed: dict[str, dict[str, int]] = {}
        for rule_id, resolution, count in await self._store.read(sql.select_outcomes(tenant)):
            closed.setdefault(rule_id, {})[resolution] = count
        self._monitor.weights[tenant] = {
            rule_id: rule_weight(counts.get("TRUE_MATCH", 0), counts.get("FALSE_POSITIVE", 0))
            for rule_id, counts in closed.items()
        }

    async def _note_lacking(self, tenant: str, memory: str, after: int, since_ms: int) -> None:
        """Have a memory know what it lacks of the log behind a place, if that is too old to be read."""
        lacking_ms = await find_lacking(self._store, sql.select_log(tenant, after, 0, 1), since_ms)
        if lacking_ms is not None:
            self._memory.forget_before(memory, lacking_ms)

    async def _catch_up(
        self, tenant: str, coming: str, active: ActiveRules, after: int, since_ms: int
    ) -> tuple[int, int]:
        replayed, known = 0, self._memory.known[tenant]
        while rows := await self._store.read(sql.select_log(tenant, after, since_ms, LIVE_CHUNK)):
            for row in rows:
                self._replay(coming, active, row[1:])
                # Another process may have added it since the ids were learnt.
                if not known.may_hold(row[2]):
                    known.add(row[2])
            after = rows[-1][0]
            replayed += len(rows)
        return replayed, after

    def _replay(self, coming: str, active: ActiveRules, row: Sequence[Any]) -> None:
        event_id, _, received_at_ms, sent = row
        self._memory.replay(coming, active.compiled, event_id, received_at_ms, sent)


async def _follow_nobody() -> None:
    """One process alone has nobody to follow."""
