"""Measures the embedded store: durable writes per second, their latency, and what they cost the event loop.

Each write is what one decided event stores: an event row (1 KB sent), its decision row (1.2 KB record) and a
delivery row.

    python bench embedded_store [--rows 100000] [--seconds 5] [--callers 1 32 128] [--writer process] [--json]
"""

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from vettance import clock
from vettance.db import tables
from vettance.db.engine import insert
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.tables import Insert
from vettance.ids import IdSource

EVENT = Insert(
    tables.EVENT,
    "id, tenant, source, received_at_ms, occurred_at_ms, sent",
)
DECISION = Insert(
    tables.DECISION,
    "id, tenant, evaluated_at_ms, occurred_at_ms, event_name, event_category, decision, score, "
    "level, customer_id, email, device_id, fingerprint, ip, country, session_id, record",
)
DELIVERY = Insert(
    tables.DELIVERY,
    "id, tenant, subscription, type, subject, created_at_ms, state, due_at_ms, body",
)
TENANT = "ten_" + "0" * 32
SENT, RECORD, TOLD = os.urandom(1000), os.urandom(1200), os.urandom(500)
ids = IdSource()


def rows(number: int) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Make the three rows of one event."""
    now_ms = clock.now_ms()
    event_id = ids.make("evt", now_ms)
    customer = number % 100_000
    return (
        (event_id, TENANT, "evaluate", now_ms, now_ms, SENT),
        (
            *(event_id, TENANT, now_ms, now_ms, "user.login", "AUTHENTICATION", "ALLOW", 12, "low"),
            *(
                f"customer-{customer}",
                f"c{customer}@example.com",
                f"device-{customer}",
                "f" * 32,
                "192.0.2.7",
            ),
            *("DE", f"session-{number}", RECORD),
        ),
        (
            "dlv" + event_id[3:],
            TENANT,
            "whs_a",
            "EVENT_RISK_EVALUATED",
            event_id,
            now_ms,
            "pending",
            now_ms,
            TOLD,
        ),
    )


def preload(path: Path, count: int) -> None:
    """Fill a migrated store with events, without durability, to measure with a grown file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    for start in range(0, count, 10_000):
        made = [rows(number) for number in range(start, min(start + 10_000, count))]
        connection.execute("BEGIN")
        for into, place in ((EVENT, 0), (DECISION, 1), (DELIVERY, 2)):
            connection.executemany(into.text, [one[place] for one in made])
        connection.execute("COMMIT")
    connection.close()


def cpu_seconds(pid: int | None) -> float:
    """Tell how much processor time the writer process has used; 0 when the writer is a thread."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(path: Path, seat: Any, callers: int, seconds: float, warm_s: float) -> dict[str, Any]:
    """Let `callers` write one event after the other for some seconds, after some that do not count.

    While the log of a fresh server still grows, each commit also waits for the file system's own journal, so
    the first seconds are slower than all that follow.
    """
    latencies_ms: list[float] = []
    async with await SqliteStore.open(path, writer=seat) as store:
        await store.migrate()
        end = time.perf_counter() + warm_s

        async def call(caller: int) -> None:
            number = caller
            while (start := time.perf_counter()) < end:
                event, decision, delivery = rows(number)
                await store.write(
                    insert(EVENT, TENANT, event),
                    insert(DECISION, TENANT, decision),
                    insert(DELIVERY, TENANT, delivery),
                )
                latencies_ms.append((time.perf_counter() - start) * 1000)
                number += callers

        await asyncio.gather(*(call(caller) for caller in range(callers)))
        latencies_ms.clear()
        end = time.perf_counter() + seconds
        writer_cpu = cpu_seconds(store.writer_pid)
        wall, cpu, loop_cpu = time.perf_counter(), time.process_time(), time.thread_time()
        await asyncio.gather(*(call(caller) for caller in range(callers)))
        wall, cpu, loop_cpu = (
            time.perf_counter() - wall,
            time.process_time() - cpu,
            time.thread_time() - loop_cpu,
        )
        writer_cpu = cpu_seconds(store.writer_pid) - writer_cpu
        log_mib = os.stat(f"{path}-wal").st_size / 2**20  # noqa: PTH116 - measured after the run
    # What making the rows and the statements costs is the caller's, not the store's.
    start = time.perf_counter()
    for number in range(5000):
        event, decision, delivery = rows(number)
        (insert(EVENT, TENANT, event), insert(DECISION, TENANT, decision), insert(DELIVERY, TENANT, delivery))
    making_us = (time.perf_counter() - start) / 5000 * 1e6
    cuts = statistics.quantiles(latencies_ms, n=1000)
    written = len(latencies_ms)
    return {
        "writer": seat,
        "callers": callers,
        "writes_per_s": round(written / wall),
        "loop_us_per_write": round(loop_cpu / written * 1e6 - making_us, 1),
        "process_us_per_write": round(cpu / written * 1e6 - making_us, 1),
        "writer_us_per_write": round(writer_cpu / written * 1e6, 1),
        "p50_ms": round(cuts[499], 2),
        "p99_ms": round(cuts[989], 2),
        "p999_ms": round(cuts[998], 2),
        "max_ms": round(max(latencies_ms), 1),
        "log_mib": round(log_mib),
    }


def main() -> None:
    """Measure both seats of the writer and print a table, or JSON lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=0, help="events stored before measuring")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warm", type=float, default=3.0, help="seconds before measuring")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--writer", choices=["process", "thread"], nargs="+", default=["process", "thread"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-bench-") as folder:
        path = store_path(Path(folder) / "data")
        uvloop.run(_migrate(path))
        preload(path, options.rows)
        for seat in options.writer:
            for callers in options.callers:
                found = uvloop.run(measure(path, seat, callers, options.seconds, options.warm))
                found["rows_before"] = options.rows
                print(json.dumps(found) if options.json else "  ".join(f"{k} {v}" for k, v in found.items()))


async def _migrate(path: Path) -> None:
    async with await SqliteStore.open(path, writer="thread") as store:
        await store.migrate()
