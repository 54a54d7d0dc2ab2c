"""What a console shows besides decisions, made up in bulk: reviews, labels, what rules did, cases, alerts.

Put past the service into the store that `history_reading.py` fills; a store that has them is left alone.
"""

import asyncio
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.fixtures.made_history import DONE, SPAN_MS, fill
from bench.fixtures.processes import say
from bench.store.grown_rows import rows_of
from bench.store.grown_services import settings_of
from vettance import clock
from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Statement
from vettance.db.sqlite import SqliteStore, store_path
from vettance.demo.launch import QUOTA, THROTTLE, command
from vettance.quality.rule_counts import (
    DAY_S,
    EVERY,
    HOUR_S,
    HOURS_KEPT_S,
    WIDTHS_S,
    CountKey,
    Counts,
    Measures,
)
from vettance.reviews import sql as reviews_sql
from vettance.reviews.review import Review, ReviewState, rank_of
from vettance.tenants.key_scope import KeyScope

EMAIL: Final = "crowd@example.com"
PASSWORD: Final = "correct horse battery staple"
ROLES: Final = ("analyst", "lead", "editor", "admin", "auditor")
_SHOWN: Final = "console-rows"
#: As many reviews as a queue is to bear.
OPEN_REVIEWS: Final = 100_000
LABELS: Final = 50_000
_ROWS_OF_EACH: Final = 20_000
_DECISIONS_AN_HOUR: Final = 3_472
#: Of so many pairs of rules some event may have both.
_MEETING: Final = 0.17
_TABLES: Final = (
    *("delivery", "attempt", "aml_event", "aml_case", "aml_alert", "aml_alert_entity", "aml_alert_event"),
    *("aml_case_entry", "aml_screening", "aml_subject"),
)


def prepare(folder: Path, decisions: int) -> tuple[str, str]:
    """Make the store, unless it is there; returns its tenant and a key of its own."""
    fill(folder, decisions)
    tenant = (folder / f"{DONE}-{decisions}").read_text()
    marker = folder / _SHOWN
    if not marker.exists():
        _fill_rest(folder, tenant)
        marker.touch()
    scopes = [part for scope in KeyScope for part in ("--scope", scope.value)]
    return tenant, command(folder, "key", "create", "--tenant", tenant, *scopes)["apiKey"]


def _fill_rest(folder: Path, tenant: str) -> None:
    command(
        folder, "tenant", "set", tenant, "--throttle", str(THROTTLE), "--quota", str(QUOTA), "--aml", "on"
    )
    command(folder, "watchlist", "import", "--source", "sample")
    setting = asyncio.run(settings_of(folder, [tenant], "http://127.0.0.1:9/hook"))[0]
    rules = asyncio.run(_rules(folder, tenant))
    with closing(sqlite3.connect(store_path(folder))) as file:
        for table in _TABLES:
            _insert(file, table, rows_of(table, [setting], _ROWS_OF_EACH))
        held = file.execute(
            "SELECT id, score, occurred_at_ms, customer_id FROM decision "
            "WHERE tenant = ? AND seq > ? AND decision <> 'ALLOW' ORDER BY seq DESC LIMIT ?",
            (tenant, 0, OPEN_REVIEWS + LABELS),
        ).fetchall()
        for row in held[:OPEN_REVIEWS]:
            one = reviews_sql.insert_review(_review(tenant, *row))
            file.execute(_unless_there(one.sql), one.args)
        _insert(file, "feedback", _feedback(tenant, held))
        say("counting what rules did")
        _insert(file, "rule_count", _counts(tenant, rules, clock.now_ms()))
        (last,) = file.execute("SELECT MAX(seq) FROM decision").fetchone()
        file.execute(
            "INSERT OR REPLACE INTO rule_counted VALUES (?, ?, 0, ?)", (tenant, last, clock.now_ms() // 1000)
        )
        file.execute("PRAGMA analysis_limit = 1000")
        file.execute("ANALYZE")
        file.commit()
    _make_user(folder, tenant)


def _insert(file: sqlite3.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    first = next(rows)
    text = f"INSERT INTO {table} ({', '.join(first)}) VALUES ({', '.join('?' * len(first))})"
    text = _unless_there(text)
    file.execute(text, list(first.values()))
    file.executemany(text, (list(row.values()) for row in rows))
    file.commit()


def _unless_there(text: str) -> str:
    """A filling that was broken off is gone through again."""
    return text.replace("INSERT INTO", "INSERT OR IGNORE INTO", 1)


async def _rules(folder: Path, tenant: str) -> list[str]:
    """Name the rules in force."""
    from vettance.decisions.active_rulesets import RuleCache
    from vettance.decisions.features import fraud_schema
    from vettance.decisions.load_ruleset import load_active
    from vettance.rules.ruleset import compile_document

    schema = fraud_schema()
    async with await SqliteStore.open(store_path(folder), writer="thread") as store:
        await store.read(Statement("SELECT 1"))
        active = await load_active(store, RuleCache(lambda text: compile_document(text, schema)), tenant)
    return [rule.id for rule in active.ruleset.rules]


def _make_user(folder: Path, tenant: str) -> None:
    """Make somebody who may see every page."""
    roles = [part for role in ROLES for part in ("--role", role)]
    subprocess.run(
        [
            *(sys.executable, "-m", "vettance.cli", "user", "create", EMAIL, "--tenant", tenant, *roles),
            *("--password-stdin", "--data", str(folder)),
        ],
        input=PASSWORD.encode(),
        check=True,
        capture_output=True,
    )


def _review(tenant: str, decision: str, score: int, at_ms: int, customer: str) -> Review:
    """An open review of a decision; it is due in a month, so that none expires while pages are looked at."""
    due_at_ms = at_ms + 30 * DAY_MS
    return Review(
        tenant=tenant,
        decision=decision,
        state=ReviewState.OPEN,
        score=score,
        amount_points=0,
        rank=rank_of(score, due_at_ms),
        opened_at_ms=at_ms,
        due_at_ms=due_at_ms,
        expires_at_ms=due_at_ms + 365 * DAY_MS,
        customer=customer,
    )


def _feedback(tenant: str, held: Sequence[tuple[str, int, int, str]]) -> Iterator[dict[str, Any]]:
    """Labels of what was held longest ago."""
    for number, (decision, _, at_ms, _) in enumerate(held[-LABELS:]):
        at = {"created_at_ms": at_ms + HOUR_MS, "updated_at_ms": at_ms + HOUR_MS}
        label = "FRAUD" if number % 3 else "LEGIT"
        one = {"id": "fbk_" + decision[4:], "tenant": tenant, "target": decision, "type": "DECISION"}
        yield {**one, "label": label, **at}


def _counts(tenant: str, rules: Sequence[str], now_ms: int, seed: int = 3) -> Iterator[dict[str, Any]]:
    """Counts of sixty days: of the last by hour, all by day and by week.

    Every rule has labels, and the others it met. Most pairs never meet, some in every hour: of 200,000
    generated events in 30 days an hour has 157 pairs, a day 506, a week 885 and the month 1,154.
    """
    rng = random.Random(seed)
    now_s = now_ms // 1000
    often = {
        (rule, other): rng.random() ** 4
        for rule in rules
        for other in rules
        if other != rule and rng.random() < _MEETING
    }
    counts: Counts = {}
    # Before the hours that are kept there are days.
    hours_s = (now_s - HOURS_KEPT_S) // DAY_S * DAY_S
    for first_s, end_s, width_s in ((now_s - SPAN_MS // 1000, hours_s, DAY_S), (hours_s, now_s, HOUR_S)):
        for start_s in range(first_s - first_s % width_s, end_s, width_s):
            measures = _measures(rules, often, width_s, rng)
            for wide_s in WIDTHS_S[WIDTHS_S.index(width_s) :]:
                for (rule, measure), amount in measures.items():
                    key = CountKey(wide_s, start_s - start_s % wide_s, rule, measure)
                    counts[key] = counts.get(key, 0) + amount
    for key, amount in counts.items():
        yield {"tenant": tenant, **key._asdict(), "amount": amount}


def _measures(
    rules: Sequence[str], often: Mapping[tuple[str, str], float], width_s: int, rng: random.Random
) -> Measures:
    """Make up what rules did in an hour or a day."""
    hours = width_s // HOUR_S
    decisions = _DECISIONS_AN_HOUR * hours
    found: Measures = {
        (EVERY, "hits"): decisions,
        (EVERY, "held"): decisions // 14,
        (EVERY, "fraud:hits"): 3 * hours,
        (EVERY, "legit:hits"): hours,
    }
    for place, rule in enumerate(rules):
        hits = max(1, int(decisions * 0.02 / (1 + place % 12) * rng.uniform(0.5, 1.5)))
        measures = {"hits": hits, "alone": hits // 3, "held": hits // 2, "amount:EUR": hits * 40.0}
        for label in ("fraud", "legit"):
            measures |= {f"{label}:hits": hits // 9 + 1, f"{label}:held": hits // 9 + 1}
        found |= {(rule, measure): amount for measure, amount in measures.items()}
    for (rule, other), chance in often.items():
        if rng.random() > (1 - chance) ** hours:
            found[rule, f"overlap:{other}"] = 1 + found[rule, "hits"] // 20
    return found
