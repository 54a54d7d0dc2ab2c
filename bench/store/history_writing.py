"""What the history costs each write: decisions with their counts, index and segments, and without.

The same decisions go into two stores by turns: as the service writes them (two rows, counts, an index by
tenant, and chunks behind them until none are left to make), and as the two rows alone. Best of the rounds.
CPU is that of this process and of the writer process together.

    python bench history_writing [--decisions 40000] [--rounds 3] [--json]
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.fixtures.made_history import rows_of
from bench.fixtures.processes import cpu_s, machine
from vettance import clock
from vettance.db.engine import Statement
from vettance.db.sqlite import SqliteStore
from vettance.decisions import sql
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, Reason
from vettance.decisions.searchable_fields import SEARCHABLE_FIELDS
from vettance.decisions.sql import count_decision
from vettance.events import sql as events_sql
from vettance.events.event import Category, Event, EventSource
from vettance.history.compaction import Compactor
from vettance.history.segment import DecisionRow

TENANT = "ten_" + "0" * 32
WRITERS = 64
SENT = b'{"eventName":"payment.attempt","metadata":{"note":"' + b"x" * 940 + b'"}}'  # About 1 KB.


def statements_of(row: DecisionRow, *, counted: bool) -> list[Statement]:
    """Write a decision as an evaluation does, with its counts or without."""
    texts: dict[str, Any] = {field.attribute: row.text(field.column) for field in SEARCHABLE_FIELDS}
    event = Event(
        **texts,
        category=Category(row.event_category),
        received_at_ms=row.received_at_ms,
        occurred_at_ms=row.occurred_at_ms,
    )
    decision = Decision(
        outcome=Outcome(row.decision),
        score=row.score,
        level=row.level,
        reasons=tuple(Reason(code=code, explanation="") for code in row.reasons.split()),
        actions=(),
        ruleset_version=1,
        rules_evaluated=50,
    )
    record = DecisionRecordData(
        ruleset_version=1,
        outcome=decision.outcome,
        score=row.score,
        level=row.level,
        facts=tuple(f"fact {number}" for number in range(30)),
        answers=tuple(range(10)),
        inexact=0,
        fired=[],
        failed=[],
        lists=[],
        request_id="req_" + row.id[4:],
        processing_ms=0.2,
    )
    found = [
        events_sql.insert_event(TENANT, row.id, EventSource.EVENTS, event, SENT),
        sql.insert_decision(TENANT, row.id, event, decision, record, row.evaluated_at_ms),
    ]
    return [*found, count_decision(TENANT, row.occurred_at_ms, decision)] if counted else found


def children_cpu_s() -> float:
    """Return the processor time of the processes that this one has started, so far."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    children = [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    return sum(cpu_s(int(child)) for child in children)


async def write(folder: Path, rows: list[DecisionRow], *, counted: bool) -> dict[str, float]:
    """Write all rows, 64 at a time; with chunks when they are counted."""
    store = await SqliteStore.open(folder / "vettance.db", writer="process")
    await store.migrate()
    if not counted:
        await store.write(Statement("DROP INDEX decision_tenant"))
    compactor = Compactor(store)
    waiting = iter(rows)

    async def work() -> None:
        for row in waiting:
            await store.write(*statements_of(row, counted=counted))

    began, before = time.monotonic(), time.process_time() + children_cpu_s()
    background = asyncio.create_task(compactor.run([TENANT])) if counted else None
    await asyncio.gather(*(work() for _ in range(WRITERS)))
    took_s = time.monotonic() - began
    written_s = time.process_time() + children_cpu_s() - before
    if background is not None:
        background.cancel()
        while await compactor.compact(TENANT, 4_096):
            pass
    spent_s = time.process_time() + children_cpu_s() - before
    await store.close()
    each = 1e6 / len(rows)
    return {"per_second": len(rows) / took_s, "cpu_us": written_s * each, "cpu_all_us": spent_s * each}


def main() -> None:
    """Write by turns, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    report: dict[str, Any] = {}
    for _ in range(asked.rounds):
        rows = list(rows_of(asked.decisions, clock.now_ms()))
        for name in ("without", "with"):
            with tempfile.TemporaryDirectory(prefix="vettance-writing-") as folder:
                found = asyncio.run(write(Path(folder), rows, counted=name == "with"))
            best = report.setdefault(name, found)
            report[name] = {
                "per_second": round(max(best["per_second"], found["per_second"])),
                "cpu_us": round(min(best["cpu_us"], found["cpu_us"]), 1),
                "cpu_all_us": round(min(best["cpu_all_us"], found["cpu_all_us"]), 1),
            }
    report["cpu_ratio"] = round(report["with"]["cpu_us"] / report["without"]["cpu_us"], 2)
    report["time_ratio"] = round(report["without"]["per_second"] / report["with"]["per_second"], 2)
    print(json.dumps({"machine": machine(), **report}, indent=None if asked.json else 2))
