"""Reads the counts of a span and says what each rule did in it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from vettance import clock
from vettance.clock import DAY_MS, MINUTE_MS
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.quality.count_rules import CountedLogs, RuleCounter
from vettance.quality.counted_spans import CountedPart, parts_of, whole_hours
from vettance.quality.rule_counts import ALONE, EVERY, HITS
from vettance.quality.rule_quality import (
    OUTLINED,
    OVERLAPS_SHOWN,
    HeldAmount,
    SpanQuality,
    by_rule,
    held_amounts,
    maybe_covered,
    quality_of,
)
from vettance.quality.rule_timing import time_rules
from vettance.rules.rule_reads import ConditionReader

#: The span of a report when none is given.
SPAN_MS: Final = 30 * DAY_MS
#: Decisions by which conditions are timed.
_TIMED: Final = 40
#: So many rules are asked at a time what they met: a hundred that all meet each other have some 60,000 counts
#: of a month, which take a tenth of a second.
_OVERLAPPING: Final = 8
#: How long these times count. A condition is as fast in ten minutes as now, and timing a hundred takes 50 ms.
_TIMED_MS: Final = 10 * MINUTE_MS
_TIMED_TENANTS_MAX: Final = 1_000
#: Steps of counting that a question waits for: what was decided a moment ago is in its answer.
_CATCH_UP_STEPS: Final = 10


class SpanReport(NamedTuple):
    """The quality of rules in a span (Unix milliseconds, from and before), rounded to whole hours or days.

    `complete` is False while older decisions are still being counted.
    """

    from_ms: int
    to_ms: int
    complete: bool
    quality: SpanQuality


class QualityDesk:
    """Answers what rules are worth; `rules_of` finds those in force for a tenant."""

    def __init__(
        self,
        store: Store,
        logs: CountedLogs,
        counter: RuleCounter,
        rules_of: Callable[[str], Awaitable[ActiveRules]],
        conditions: ConditionReader,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._logs = logs
        self._tables = logs.tables
        self._counter = counter
        self._rules_of = rules_of
        self._conditions = conditions
        self._now_ms = now_ms
        #: By tenant: the digest of the timed rules, until when that counts (Unix ms), and the costs.
        self._timed: dict[str, tuple[str, int, dict[str, float]]] = {}

    async def report(self, tenant: str, from_ms: int | None, to_ms: int | None) -> SpanReport:
        """Return the quality of the rules over a span of event time; the last 30 days where none is given."""
        return await self._report(tenant, self._span(from_ms, to_ms, self._now_ms()))

    async def amounts(self, tenant: str, from_ms: int, to_ms: int) -> list[HeldAmount]:
        """Return the amounts of what was held in a span, and what labels say of it, by currency."""
        await self._counter.catch_up(tenant, _CATCH_UP_STEPS)
        now_ms = self._now_ms()
        parts = parts_of(*self._span(from_ms, to_ms, now_ms), now_ms // 1000)
        rows = await self._store.read(self._tables.select_counts(tenant, parts, rules=(EVERY,)))
        return held_amounts(by_rule(rows).get(EVERY, {}))

    @staticmethod
    def _span(from_ms: int | None, to_ms: int | None, now_ms: int) -> tuple[int, int]:
        """Return a span in whole hours or days, in seconds; the last 30 days where none is given."""
        to_ms = now_ms if to_ms is None else to_ms
        return whole_hours(to_ms - SPAN_MS if from_ms is None else from_ms, to_ms, now_ms)

    async def report_rule(self, tenant: str, rule: str) -> SpanReport:
        """Return the quality of one rule over the last 30 days."""
        now_ms = self._now_ms()
        return await self._report(tenant, whole_hours(now_ms - SPAN_MS, now_ms, now_ms), (rule,))

    async def outline(
        self,
        tenant: str,
        from_ms: int | None = None,
        to_ms: int | None = None,
        measures: Sequence[str] = OUTLINED,
    ) -> SpanReport:
        """Return some measures of the rules, over the span of a report, and what can be remarked by them.

        They are what lists show, where no others are given. The rest of a report is left at nothing: it is
        most of what is counted.
        """
        now_ms = self._now_ms()
        complete = await self._counter.catch_up(tenant, _CATCH_UP_STEPS)
        span = self._span(from_ms, to_ms, now_ms)
        active, parts = await self._rules_of(tenant), parts_of(*span, now_ms // 1000)
        now = by_rule(await self._store.read(self._tables.select_counts(tenant, parts, measures)))
        if ALONE in measures and (covered := maybe_covered(now)):
            await self._add_overlaps(tenant, parts, covered, now)
        quality = quality_of(active.ruleset.rules, now, {}, {}, {})
        return SpanReport(span[0] * 1000, span[1] * 1000, complete, quality)

    async def _report(self, tenant: str, span: tuple[int, int], only: Sequence[str] = ()) -> SpanReport:
        """Return the quality of the rules, or of some of them, over whole hours or days (in seconds)."""
        complete = await self._counter.catch_up(tenant, _CATCH_UP_STEPS)
        begin_s, end_s = span
        active = await self._rules_of(tenant)
        now_s = self._now_ms() // 1000
        parts, asked = parts_of(begin_s, end_s, now_s), (EVERY, *only) if only else ()
        earlier_s = begin_s - (end_s - begin_s)
        earlier = parts_of(*whole_hours(earlier_s * 1000, begin_s * 1000, now_s * 1000), now_s)
        counted, before, hits = await asyncio.gather(
            self._store.read(self._tables.select_counts(tenant, parts, rules=asked)),
            self._store.read(self._tables.select_counts(tenant, earlier, [HITS], asked)),
            self._store.read(self._tables.select_last_hits(tenant)),
        )
        now = by_rule(counted)
        last: dict[str, int] = dict(hits)
        await self._add_overlaps(tenant, parts, only, now)
        rules = [one for one in active.ruleset.rules if not only or one.id in only]
        quality = quality_of(rules, now, by_rule(before), last, await self._costs(tenant, active))
        return SpanReport(begin_s * 1000, end_s * 1000, complete, quality)

    async def _add_overlaps(
        self,
        tenant: str,
        parts: Sequence[CountedPart],
        rules: Sequence[str],
        counts: dict[str, dict[str, float]],
    ) -> None:
        """Add how often some rules, or all, met those that they met most.

        A few rules at a time are asked for: every pair of rules may have met in every hour, which is millions
        of counts. A rule that did not act met none.
        """
        acted = [rule for rule in (rules or counts) if rule != EVERY and counts.get(rule, {}).get(HITS)]
        for first in range(0, len(acted), _OVERLAPPING):
            some = acted[first : first + _OVERLAPPING]
            asked = self._tables.select_overlaps(tenant, parts, some, limit=OVERLAPS_SHOWN)
            for rule, measure, amount in await self._store.read(asked):
                counts[rule][measure] = amount

    async def days(
        self, tenant: str, measures: Sequence[str], from_ms: int, to_ms: int, rule: str | None = None
    ) -> dict[str, dict[int, int]]:
        """Return how often each rule did any of some things on each day: rule → start (s) → times.

        With `rule` of that one only.
        """
        asked = (from_ms // 1000, to_ms // 1000, () if rule is None else (rule,))
        found: dict[str, dict[int, int]] = {}
        for one, day, amount in await self._store.read(self._tables.select_days(tenant, measures, *asked)):
            days = found.setdefault(one, {})
            days[day] = days.get(day, 0) + int(amount)
        return found

    async def _costs(self, tenant: str, active: ActiveRules) -> dict[str, float]:
        """Return what the conditions of the rules cost, timed now or a while ago; decisions go between."""
        known, now_ms = self._timed.get(tenant), self._now_ms()
        if known is not None and known[0] == active.digest and known[1] > now_ms:
            return known[2]
        costs: dict[str, float] = {}
        for rule, cost_us in time_rules(active, await self._logs.newest(tenant, _TIMED), self._conditions):
            costs[rule] = cost_us
            await asyncio.sleep(0)
        if costs:
            while len(self._timed) >= _TIMED_TENANTS_MAX:
                del self._timed[next(iter(self._timed))]
            self._timed[tenant] = active.digest, now_ms + _TIMED_MS, costs
        return costs
