"""What is read of the counts of rules: all of them, those of one rule, and what lists show."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.databases import absence, database, run_beside
from vettance import clock
from vettance.db import postgres_schema
from vettance.db.engine import Store
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.features import fraud_schema
from vettance.quality.quality_desk import QualityDesk
from vettance.quality.quality_parts import assemble_quality
from vettance.quality.rule_counts import DAY_S, EVERY, HOUR_S, CountKey, Counts, Measures, add_up
from vettance.quality.rule_quality import OVERLAPS_SHOWN, RuleQuality
from vettance.quality.sql import DECIDED_COUNTS, RuleCountTables
from vettance.rules.packs import load_pack_text
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document, read_ruleset

TENANT = "ten_1"
GONE = "no_longer_there"
IN_FORCE = [rule.id for rule in read_ruleset(load_pack_text("fraud")).rules]
RULES = [*IN_FORCE[:12], GONE]
COVERED = RULES[0]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        run_beside(lambda: postgres_schema.migrate(made))
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "postgres":
        async with await PostgresStore.open(request.getfixturevalue("url")) as opened:
            yield opened
        return
    migrate(store_path(tmp_path))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as embedded:
        yield embedded


def counts_of_a_month() -> Counts:
    """Counts of every rule with most others in a few hours of each day of a month and more."""
    rng, counts = random.Random(11), Counts()
    now_s = clock.now_ms() // 1000
    this_hour_s = now_s - now_s % HOUR_S
    for hours_ago in range(0, 33 * 24, 9):
        measures: Measures = {(EVERY, "hits"): 500, (EVERY, "fraud:hits"): 9}
        for rule in RULES:
            hits = rng.randrange(1, 60)
            measures[rule, "hits"] = hits
            measures[rule, "fraud:hits"] = rng.randrange(9)
            measures[rule, "legit:hits"] = rng.randrange(9)
            measures[rule, "amount:EUR"] = hits * 2.5
            if rule == COVERED:
                measures[rule, f"overlap:{GONE}"] = hits
                continue
            measures[rule, "alone"] = 1
            for other in rng.sample(RULES, 9):
                if other != rule:
                    measures[rule, f"overlap:{other}"] = rng.randrange(1, 4)
        add_up(counts, measures, (this_hour_s - hours_ago * HOUR_S) * 1000)
    return counts


@pytest.fixture
async def desk(store: Store) -> QualityDesk:
    """What answers, over a store with the counts of a month."""
    schema = fraud_schema()
    cache = RuleCache(lambda document: compile_document(document, schema))
    return assemble_quality(store, cache, ConditionReader(schema)).desk


def untimed(one: RuleQuality) -> RuleQuality:
    return one._replace(cost_us=None)


async def test_a_report_has_the_rules_that_each_met_most(store: Store, desk: QualityDesk) -> None:
    counts = counts_of_a_month()
    await store.write(*DECIDED_COUNTS.add(f"{TENANT}_a", counts))
    report = await desk.report(f"{TENANT}_a", None, None)
    begin_s = report.from_ms // 1000
    met: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    hits: Counter[str] = Counter()
    for key, amount in counts.items():
        if key.width_s != HOUR_S or key.start_s < begin_s:
            continue
        if key.measure.startswith("overlap:"):
            met[key.rule][key.measure.removeprefix("overlap:")] += int(amount)
        if key.measure == "hits" and key.rule != EVERY:
            hits[key.rule] += int(amount)
    found = {one.rule: one for one in report.quality.rules if one.hits}
    assert {rule: one.hits for rule, one in found.items()} == hits
    for rule, one in found.items():
        most = sorted(met[rule].items(), key=lambda item: (-item[1], item[0]))[:OVERLAPS_SHOWN]
        assert [(other.rule, other.hits) for other in one.overlaps] == most


async def test_a_report_asks_for_a_few_rules_at_a_time_what_they_met(
    store: Store, desk: QualityDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, counts = f"{TENANT}_e", counts_of_a_month()
    now_s = clock.now_ms() // 1000
    silent = CountKey(HOUR_S, now_s - now_s % HOUR_S, RULES[1], "hits")
    for key in [key for key in counts if key.rule == silent.rule]:
        del counts[key]
    await store.write(*DECIDED_COUNTS.add(tenant, counts))
    asked: list[Sequence[str]] = []
    select = RuleCountTables.select_overlaps

    def noted(self: RuleCountTables, of: str, parts: Any, rules: Sequence[str] = (), **more: Any) -> Any:
        asked.append(rules)
        return select(self, of, parts, rules, **more)

    monkeypatch.setattr(RuleCountTables, "select_overlaps", noted)
    of_month = await desk.report(tenant, None, None)
    assert sorted(rule for rules in asked for rule in rules) == sorted({*RULES} - {silent.rule})
    assert max(map(len, asked)) <= 8
    # Of a span with more days than are named one by one the answer has the same pairs.
    since_long_ago = await desk.report(tenant, 0, None)
    first = {one.rule: one for one in of_month.quality.rules}[COVERED].overlaps
    always = {one.rule: one for one in since_long_ago.quality.rules}[COVERED].overlaps
    assert [one.rule for one in first] == [one.rule for one in always] == [GONE]
    assert always[0].share == 1


async def test_one_rule_is_reported_as_among_all(store: Store, desk: QualityDesk) -> None:
    await store.write(*DECIDED_COUNTS.add(f"{TENANT}_b", counts_of_a_month()))
    whole = {one.rule: one for one in (await desk.report(f"{TENANT}_b", None, None)).quality.rules}
    for rule in (*RULES, "never_heard_of"):
        alone = (await desk.report_rule(f"{TENANT}_b", rule)).quality.rules
        assert [untimed(one) for one in alone] == ([untimed(whole[rule])] if rule in whole else [])
    assert whole[GONE].mode == "gone"


async def test_an_outline_says_of_all_rules_what_a_report_does(store: Store, desk: QualityDesk) -> None:
    await store.write(*DECIDED_COUNTS.add(f"{TENANT}_c", counts_of_a_month()))
    whole, outlined = await desk.report(f"{TENANT}_c", None, None), await desk.outline(f"{TENANT}_c")
    assert outlined[:3] == whole[:3]
    for one, brief in zip(whole.quality.rules, outlined.quality.rules, strict=True):
        assert (brief.rule, brief.hits, brief.share, brief.alone) == (
            one.rule,
            one.hits,
            one.share,
            one.alone,
        )
        assert (brief.labelled, brief.shadow_hits) == (one.labelled, one.shadow_hits)
        assert brief.remarks == one.remarks
    assert "covered_by_others" in next(one for one in outlined.quality.rules if one.rule == COVERED).remarks


async def test_days_of_one_rule_are_those_among_all(store: Store, desk: QualityDesk) -> None:
    await store.write(*DECIDED_COUNTS.add(f"{TENANT}_d", counts_of_a_month()))
    span = clock.now_ms() - 20 * DAY_S * 1000, clock.now_ms()
    whole = await desk.days(f"{TENANT}_d", ("hits", "shadow"), *span)
    assert set(whole) == {EVERY, *RULES}
    for rule in RULES:
        assert await desk.days(f"{TENANT}_d", ("hits", "shadow"), *span, rule) == {rule: whole[rule]}
