"""Kills the store in the middle of load, again and again, and proves that nothing acknowledged is lost.

Each round starts a child that writes events with many concurrent callers and reports every acknowledged id
through a pipe, kills it with SIGKILL at a random moment (with its writer process, without it, or the writer
first), and then holds the file against the report: every acknowledged event is there, every event has exactly
one decision and one message, and the file is sound. Rounds share one file, so each also tests the recovery of
the one before.

    python bench crash --rounds 25
    python bench crash --check DATA < acknowledged-ids     (for a service that was killed by other means)
"""

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from bench import BENCH
from vettance.db import tables
from vettance.db.engine import StoreDown, insert
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path
from vettance.db.tables import Insert
from vettance.ids import IdSource

CALLERS = 32
EVENT = Insert(
    tables.EVENT,
    "id, tenant, source, received_at_ms, occurred_at_ms, sent",
)
DECISION = Insert(
    tables.DECISION,
    "id, tenant, evaluated_at_ms, occurred_at_ms, event_name, event_category, decision, score, level, record",
)
DELIVERY = Insert(
    tables.DELIVERY,
    "id, tenant, subscription, type, subject, created_at_ms, state, due_at_ms, body",
)

SOUND = "PRAGMA integrity_check"
HALVES = {
    "events without exactly one decision": "SELECT count(*) FROM event e WHERE"
    " (SELECT count(*) FROM decision d WHERE d.id = e.id) <> 1",
    "decisions without an event": "SELECT count(*) FROM decision WHERE id NOT IN (SELECT id FROM event)",
    "messages without an event": "SELECT count(*) FROM delivery WHERE type = 'EVENT_RISK_EVALUATED'"
    " AND subject NOT IN (SELECT id FROM event)",
}
MESSAGES = (
    "SELECT count(*) FROM event e LEFT JOIN (SELECT subject, count(*) AS n FROM delivery"
    " WHERE type = 'EVENT_RISK_EVALUATED' GROUP BY subject) m ON m.subject = e.id WHERE coalesce(m.n, 0) <> 1"
)


async def load(path: Path, writer: str) -> None:
    """Write events until killed; print the writer's process id, then every id as it is acknowledged."""
    ids = IdSource()
    store = await SqliteStore.open(path, writer="process" if writer == "process" else "thread")
    await store.migrate()
    os.write(1, f"{store.writer_pid or 0}\n".encode())

    async def call() -> None:
        while True:
            event_id = ids.make("evt")
            blob = os.urandom(random.randrange(50, 800))
            with suppress(StoreDown):
                await store.write(
                    insert(EVENT, "ten_a", (event_id, "ten_a", "evaluate", 1, 1, blob)),
                    insert(
                        DECISION,
                        "ten_a",
                        (event_id, "ten_a", 1, 1, "login", "OTHER", "ALLOW", 3, "low", blob),
                    ),
                    insert(
                        DELIVERY,
                        "ten_a",
                        (
                            *("dlv" + event_id[3:], "ten_a", "whs_a", "EVENT_RISK_EVALUATED", event_id),
                            *(1, "pending", 1, b"{}"),
                        ),
                    ),
                )
                os.write(1, f"{event_id}\n".encode())

    await asyncio.gather(*(call() for _ in range(CALLERS)))


def faults(path: Path, acknowledged: set[str], *, with_messages: bool = True) -> list[str]:
    """Hold a store file against the ids that were acknowledged; an empty list says that all is well."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        stored = {row[0] for row in connection.execute("SELECT id FROM event")}
        if acknowledged - stored:
            found.append(f"{len(acknowledged - stored)} acknowledged events are lost")
        checks = {**HALVES, "events without exactly one message": MESSAGES} if with_messages else HALVES
        for name, sql in checks.items():
            (count,) = connection.execute(sql).fetchone()
            if count:
                found.append(f"{count} {name}")
        sound = connection.execute(SOUND).fetchone()[0]
        if sound != "ok":
            found.append(f"the file is not sound: {sound}")
    return found


def crash(path: Path, writer: str, rng: random.Random) -> tuple[str, set[str]]:
    """Run one round and return (what was killed, the ids acknowledged before)."""
    child = subprocess.Popen(
        [sys.executable, str(BENCH), "crash", "--load", str(path), "--writer", writer],
        stdout=subprocess.PIPE,
        bufsize=0,  # Nothing is read ahead, so that no line is torn between this read and those below.
        start_new_session=True,
    )
    assert child.stdout is not None
    writer_pid = int(child.stdout.readline())
    way = rng.choice(["all", "parent", "writer"]) if writer_pid else "all"
    os.set_blocking(child.stdout.fileno(), False)
    report = b""
    kill_at = time.monotonic() + rng.uniform(0.02, 0.9)
    writer_dies_at = kill_at - rng.uniform(0, 0.5) if way == "writer" else float("inf")
    while (now := time.monotonic()) < kill_at:
        if now > writer_dies_at:
            os.kill(writer_pid, signal.SIGKILL)
            writer_dies_at = float("inf")
        with suppress(BlockingIOError):
            report += os.read(child.stdout.fileno(), 1 << 20)
        time.sleep(0.001)
    if way == "parent":
        child.kill()
    else:
        os.killpg(child.pid, signal.SIGKILL)
    os.set_blocking(child.stdout.fileno(), True)
    with child.stdout:
        report += child.stdout.read()
    child.wait()
    # The child's log goes to the same pipe when its writer has ended.
    return way, {line for line in report.decode().split("\n")[:-1] if line.startswith("evt_")}


def main() -> int:
    """Run the rounds; 0 when nothing was lost in any of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--writer", choices=["process", "thread"], default="process")
    parser.add_argument(
        "--check", type=Path, metavar="DATA", help="hold a data folder against ids from stdin"
    )
    parser.add_argument("--no-messages", action="store_true", help="with --check: events need no message")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        asyncio.run(load(options.load, options.writer))
    if options.check:
        found = faults(
            store_path(options.check), set(sys.stdin.read().split()), with_messages=not options.no_messages
        )
        print("\n".join(found) or "sound, nothing lost")
        return bool(found)
    rng = random.Random(options.seed)
    acknowledged: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="vettance-crash-") as folder:
        path = store_path(Path(folder) / "data")
        migrate(path)
        for number in range(1, options.rounds + 1):
            way, ids = crash(path, options.writer, rng)
            acknowledged |= ids
            found = faults(path, acknowledged)
            print(
                f"round {number}: killed {way}, {len(ids)} acknowledged, {', '.join(found) or 'nothing lost'}"
            )
            if found:
                return 1
    print(f"{options.rounds} rounds, {len(acknowledged)} acknowledged events, 0 lost")
    return 0
