"""Rules are tried by the records of decisions where these hold what they read, and come out the same."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.test_backfill import DAY, NOW, QUESTIONS, TENANT, House, house, some_stream
from vettance.db.sqlite import store_path
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, active_rules
from vettance.decisions.features import fraud_schema
from vettance.history import recorded_inputs as inputs
from vettance.history.backtest import Backtest
from vettance.history.recorded_inputs import recorded_inputs
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity

SCHEMA = fraud_schema()
EVER = (0, 2**62)


def rules_of(*conditions: str, top: str = "") -> ActiveRules:
    """Return rules with these conditions, each of 70 points."""
    rules = "".join(
        f"  - {{id: r-{number}, name: Rule, score: 70, reason: R, explanation: E, when: '{text}'}}\n"
        for number, text in enumerate(conditions)
    )
    return active_rules(9, "", *compile_document(f"name: other\n{top}rules:\n{rules}", SCHEMA))


def cache() -> RuleCache:
    return RuleCache(lambda text: compile_document(text, SCHEMA))


async def tried(one: House, rules: ActiveRules, *, by_records: bool, span: tuple[int, int] = EVER) -> Any:
    """Try rules on all events, and return everything that came of it."""
    changes: list[Any] = []
    looked: list[Any] = []
    run = Backtest(one.store, TENANT, rules, MemoryVelocity, look=looked.append, by_records=by_records)
    await run.run(span, changes.append, lambda _count: None)
    return run.counts, run.days, run.hits, run.skipped, changes, looked


@pytest.mark.parametrize(
    "conditions",
    [
        (QUESTIONS[1] + " >= 5", QUESTIONS[0] + " >= 1"),
        ('seen(ip, by=customer.external_id, within="60d")',),
        (QUESTIONS[3] + " > 20 and " + QUESTIONS[2] + " >= 2", QUESTIONS[1] + " >= 4"),
    ],
)
@pytest.mark.parametrize("top", ["", "explore: {percent: 5, below: 1000}\n"])
async def test_records_say_what_deciding_anew_says(
    conditions: tuple[str, ...], top: str, tmp_path: Path
) -> None:
    rules = rules_of(*conditions, top=top)
    async with house(tmp_path) as one:
        await one.live(some_stream(300))
        assert await recorded_inputs(one.store, cache(), TENANT, rules, EVER) is not None
        for span in (EVER, ((NOW - 30 * DAY) * 1000, NOW * 1000)):
            anew = await tried(one, rules, by_records=False, span=span)
            assert anew[0]
            assert await tried(one, rules, by_records=True, span=span) == anew


@pytest.mark.parametrize(
    "condition",
    ['count(by=ip, within="2h") > 1', 'country == "DE"', QUESTIONS[0] + ' > 1 or event_name == "x"'],
)
async def test_what_no_record_holds_is_decided_anew(condition: str, tmp_path: Path) -> None:
    rules = rules_of(condition)
    async with house(tmp_path) as one:
        await one.live(some_stream(60))
        assert await recorded_inputs(one.store, cache(), TENANT, rules, EVER) is None
        assert await tried(one, rules, by_records=True) == await tried(one, rules, by_records=False)


async def test_decisions_of_the_pack_a_service_came_with_are_decided_anew(tmp_path: Path) -> None:
    rules = rules_of(QUESTIONS[0] + " > 1")
    async with house(tmp_path) as one:
        await one.live(some_stream(20))
        with closing(sqlite3.connect(store_path(tmp_path))) as file, file:
            file.execute("UPDATE decision SET record = CAST('[0' || substr(record, 3) AS BLOB) WHERE seq = 5")
        assert await recorded_inputs(one.store, cache(), TENANT, rules, EVER) is None


async def test_every_version_of_a_long_log_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_STEP", 7)
    rules = rules_of(QUESTIONS[0] + " > 1")
    async with house(tmp_path) as one:
        await one.live(some_stream(60))
        assert await recorded_inputs(one.store, cache(), TENANT, rules, EVER) is not None
        with closing(sqlite3.connect(store_path(tmp_path))) as file, file:
            file.execute(
                "UPDATE decision SET record = CAST('[77' || substr(record, 3) AS BLOB) WHERE seq = 50"
            )
        assert await recorded_inputs(one.store, cache(), TENANT, rules, EVER) is None


async def test_a_damaged_record_is_skipped_and_the_others_count(tmp_path: Path) -> None:
    rules = rules_of(QUESTIONS[0] + " >= 1")
    async with house(tmp_path) as one:
        await one.live(some_stream(20))
        with closing(sqlite3.connect(store_path(tmp_path))) as file, file:
            file.execute("UPDATE decision SET record = x'00ff' WHERE seq = 5")
        counts, _, _, skipped, _, _ = await tried(one, rules, by_records=True)
        assert (sum(counts.values()), skipped) == (19, 1)
