"""Counts what each rule did, behind the log of decisions and the log of labels, each row exactly once."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from vettance import clock
from vettance.db.engine import Lost, Row, Store, StoreDown, still_asked
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.load_ruleset import find_version
from vettance.decisions.sql import record_of
from vettance.fairness.isolation import Isolation
from vettance.quality import sql
from vettance.quality.rule_counts import DAY_S, Counts, Measures, add_up, labelled, last_hits, measures_of
from vettance.rules.ruleset import Rule
from vettance.wire.payload import decode

LOOK_S: Final = 1.0
#: The pause while a tenant has more than was counted in its turn: others write meanwhile.
_BUSY_S: Final = 0.05
#: Rows of a log in one commit: a few milliseconds.
_STEP: Final = 500
#: How many steps of one tenant are taken before the next one's turn.
_STEPS_MAX: Final = 20
_VERSIONS_MAX: Final = 1_000


class RuleCounter:
    """Follows the logs of all tenants; places in them move in the commit of what was counted."""

    def __init__(
        self,
        store: Store,
        cache: RuleCache,
        tenants: Callable[[], Iterable[str]],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._cache = cache
        self._tenants = tenants
        self._now_ms = now_ms
        self._isolation = Isolation("quality")
        self._versions: dict[tuple[str, int], tuple[Rule, ...]] = {}

    async def run(self) -> None:
        """Count until cancelled."""
        waiting: set[str] = set()
        ends: tuple[int, int] | None = None
        while True:
            with contextlib.suppress(StoreDown):
                if ends is None:
                    ends = tuple((await self._store.read(sql.select_ends()))[0])
                    waiting.update(self._tenants())
                for tenant, decided, given in await self._store.read(sql.select_busy(*ends)):
                    waiting.add(tenant)
                    ends = max(ends[0], decided), max(ends[1], given)
                for tenant in self._isolation.due(sorted(waiting)):
                    with self._isolation.of(tenant):
                        if await self.catch_up(tenant):
                            waiting.discard(tenant)
            await asyncio.sleep(_BUSY_S if waiting else LOOK_S)

    async def catch_up(self, tenant: str, steps_max: int = _STEPS_MAX) -> bool:
        """Count what is new, in so many steps at most; tells whether everything is counted.

        Any process may do so at any time: of two that count the same, one finds that it is done.
        """
        for _ in range(steps_max):
            try:
                if not await self._step(tenant):
                    return True
            except Lost:
                continue  # Another process has counted it.
            await asyncio.sleep(0)
        return False

    async def _step(self, tenant: str) -> bool:
        """Count the next rows of either log; tells whether there were any."""
        found = await self._store.read(sql.select_counted(tenant))
        if not found:
            newest = await self._store.read(sql.select_newest_decision(tenant))
            if newest[0][0] is None:
                return False
            await self._store.write(sql.begin(tenant))
            found = [(0, 0, 0)]
        decision_seq, label_seq, swept_s = found[0]
        rows = await self._store.read(sql.select_decided(tenant, decision_seq, _STEP))
        if rows:
            await self._count(tenant, decision_seq, rows)
        elif not await self._count_labels(tenant, decision_seq, label_seq):
            return False
        now_s = self._now_ms() // 1000
        if now_s - swept_s > DAY_S:
            await self._store.write(*sql.sweep(tenant, now_s))
        return True

    async def _count(self, tenant: str, before: int, rows: list[Row]) -> None:
        counts: Counts = {}
        decided = []
        for row in rows:
            measures = await self._measures(tenant, row)
            add_up(counts, measures, row[2])
            decided.append((row[2], measures))
        await self._store.write(
            sql.move_decisions(tenant, before, rows[-1][0]),
            *sql.add(tenant, counts),
            *sql.note_last_hits(tenant, last_hits(decided)),
        )

    async def _count_labels(self, tenant: str, decided: int, before: int) -> bool:
        labels = await self._store.read(sql.select_labels(tenant, before, _STEP))
        asked: Any = list({event for _, event, _, _ in labels})
        found: dict[str, Row] = {}
        while asked:
            rows = await self._store.read(sql.select_labelled(tenant, asked))
            found.update((row[1], row) for row in rows)
            asked = still_asked(asked, [(row[1], *row[2:]) for row in rows])
        counts: Counts = {}
        through = before
        for seq, event, fraud, weight in labels:
            row = found.get(event)
            if row is not None:
                if row[0] > decided:
                    break  # Its decision is counted first.
                measures = await self._measures(tenant, row)
                add_up(counts, labelled(measures, weight, fraud=bool(fraud)), row[2])
            through = seq
        if through == before:
            return False
        await self._store.write(sql.move_labels(tenant, before, through), *sql.add(tenant, counts))
        return True

    async def _measures(self, tenant: str, row: Row) -> Measures:
        """Return what one decision measures; of a damaged record nothing."""
        _, _, _, stored, sent = row
        try:
            record = record_of(stored)
            rules = await self._rules(tenant, record.ruleset_version)
            return measures_of(rules, record, None if sent is None else decode(sent))
        except StoreDown:
            raise
        except Exception:  # noqa: BLE001  One damaged row must not keep the others from being counted.
            return {}

    async def _rules(self, tenant: str, version: int) -> tuple[Rule, ...]:
        known = self._versions.get((tenant, version))
        if known is None:
            known = (await find_version(self._store, self._cache, tenant, version)).ruleset.running
            while len(self._versions) >= _VERSIONS_MAX:
                del self._versions[next(iter(self._versions))]
            self._versions[tenant, version] = known
        return known
