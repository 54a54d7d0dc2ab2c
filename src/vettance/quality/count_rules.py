"""Counts what each rule did, behind the log of events and the log of what was true, each row exactly once."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from vettance import clock
from vettance.clock import HOUR_MS
from vettance.db.engine import Lost, Statement, Store, StoreDown
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.load_ruleset import find_version
from vettance.fairness.isolation import Isolation
from vettance.quality.rule_counts import DAY_S, Counts, Measures, add_up, last_hits
from vettance.quality.rule_timing import RuleInputRecord
from vettance.quality.sql import RuleCountTables
from vettance.rules.ruleset import Rule
from vettance.rules.sql import RuleSets

LOOK_S: Final = 1.0
#: The pause while a tenant has more than was counted in its turn: others write meanwhile.
_BUSY_S: Final = 0.05
#: Rows of a log in one commit: a few milliseconds.
_STEP: Final = 500
#: How many steps of one tenant are taken before the next one's turn.
_STEPS_MAX: Final = 20
_VERSIONS_MAX: Final = 1_000


class MeasuredRow(NamedTuple):
    """A row of the log of events: its place, when it happened (Unix milliseconds), what it measures."""

    seq: int
    at_ms: int
    measures: Measures


class _AlikeRows(NamedTuple):
    """Rows of one hour that measure the same, which hardly any do not: most events fire no rule."""

    measures: Measures
    times: int
    newest_ms: int


class LabelCounts(NamedTuple):
    """How far the log of what was true was read, and what it adds."""

    through: int
    counts: Counts


class CountedLogs(Protocol):
    """The logs of one kind of rules. Places in both grow in the order of the commits."""

    tables: RuleCountTables

    def select_ends(self) -> Statement:
        """Ask where both logs end: (decision, label), of all tenants."""

    def select_busy(self, decided: int, labelled: int) -> Statement:
        """Ask who has something new behind two places: (tenant, decision, label)."""

    def select_newest(self, tenant: str) -> Statement:
        """Ask for the place of a tenant's newest event: (place,), null without one."""

    async def decided(self, tenant: str, after: int, limit: int) -> list[MeasuredRow]:
        """Return what the next events measure."""

    async def labelled(self, tenant: str, after: int, decided: int, limit: int) -> LabelCounts:
        """Return what the next rows of the other log add; events are counted up to `decided`."""

    async def newest(self, tenant: str, limit: int) -> list[RuleInputRecord]:
        """Return what the newest events gave to rules."""


_Record = TypeVar("_Record")


def readable(stored: Iterable[bytes], read: Callable[[bytes], _Record]) -> list[_Record]:
    """Return the records that can be read; damaged ones are left out."""
    found: list[_Record] = []
    for one in stored:
        with contextlib.suppress(ValueError):
            found.append(read(one))
    return found


async def measures_of_row(measuring: Awaitable[Measures]) -> Measures:
    """Return what a row of a log measures: nothing where it is damaged, for the others have to be counted."""
    try:
        return await measuring
    except StoreDown:
        raise
    except Exception:  # noqa: BLE001  One damaged row must not keep the others from being counted.
        return {}


class RunningRules:
    """The rules that ran in each version of a tenant's rule set."""

    def __init__(self, store: Store, cache: RuleCache, sets: RuleSets) -> None:
        self._store = store
        self._cache = cache
        self._sets = sets
        self._versions: dict[tuple[str, int], tuple[Rule, ...]] = {}

    async def of(self, tenant: str, version: int) -> tuple[Rule, ...]:
        """Return the rules of a version. Raises `LookupError` without such a version."""
        known = self._versions.get((tenant, version))
        if known is None:
            found = await find_version(self._store, self._cache, tenant, version, self._sets)
            known = found.ruleset.running
            while len(self._versions) >= _VERSIONS_MAX:
                del self._versions[next(iter(self._versions))]
            self._versions[tenant, version] = known
        return known


class RuleCounter:
    """Follows the logs of all tenants; places in them move in the commit of what was counted.

    `tenants` are those that may have something which was not counted before `run`.
    """

    def __init__(
        self,
        store: Store,
        logs: CountedLogs,
        tenants: Iterable[str] = (),
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._logs = logs
        self._tables = logs.tables
        self._tenants = tuple(tenants)
        self._now_ms = now_ms
        self._isolation = Isolation("quality")

    async def run(self) -> None:
        """Count until cancelled."""
        waiting: set[str] = set()
        ends: tuple[int, int] | None = None
        while True:
            with contextlib.suppress(StoreDown):
                if ends is None:
                    ends = tuple((await self._store.read(self._logs.select_ends()))[0])
                    waiting.update(self._tenants)
                for tenant, decided, given in await self._store.read(self._logs.select_busy(*ends)):
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
        found = await self._store.read(self._tables.select_counted(tenant))
        if not found:
            newest = await self._store.read(self._logs.select_newest(tenant))
            if newest[0][0] is None:
                return False
            await self._store.write(self._tables.begin(tenant))
            found = [(0, 0, 0)]
        decision_seq, label_seq, swept_s = found[0]
        rows = await self._logs.decided(tenant, decision_seq, _STEP)
        if rows:
            await self._count(tenant, decision_seq, rows)
        elif not await self._count_labels(tenant, decision_seq, label_seq):
            return False
        now_s = self._now_ms() // 1000
        if now_s - swept_s > DAY_S:
            await self._store.write(*self._tables.sweep(tenant, now_s))
        return True

    async def _count(self, tenant: str, before: int, rows: list[MeasuredRow]) -> None:
        counts: Counts = {}
        alike = _alike(rows)
        for measures, times, newest_ms in alike:
            add_up(counts, measures, newest_ms, times)
        await self._store.write(
            self._tables.move_decisions(tenant, before, rows[-1].seq),
            *self._tables.add(tenant, counts),
            *self._tables.note_last_hits(tenant, last_hits((one.newest_ms, one.measures) for one in alike)),
        )

    async def _count_labels(self, tenant: str, decided: int, before: int) -> bool:
        through, counts = await self._logs.labelled(tenant, before, decided, _STEP)
        if through == before:
            return False
        await self._store.write(
            self._tables.move_labels(tenant, before, through), *self._tables.add(tenant, counts)
        )
        return True


def _alike(rows: Iterable[MeasuredRow]) -> list[_AlikeRows]:
    """Put rows of one hour together that have the very same measures."""
    found: dict[tuple[int, int], _AlikeRows] = {}
    for _, at_ms, measures in rows:
        key = (at_ms // HOUR_MS, id(measures))
        known = found.get(key)
        found[key] = (
            _AlikeRows(measures, 1, at_ms)
            if known is None
            else _AlikeRows(measures, known.times + 1, max(known.newest_ms, at_ms))
        )
    return list(found.values())
