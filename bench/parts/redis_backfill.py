"""How fast a lost memory in Redis is filled from the log: payments of 1 KB, the default pack.

    python bench redis_backfill [--events 20000] [--postgres postgresql://…/empty] [--json]

The log is in a fresh SQLite file, or in an empty PostgreSQL database; Redis is a private one.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.fixtures.payments import payment_bodies
from bench.fixtures.private_stores import Redis
from bench.fixtures.processes import machine
from vettance import clock
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.features import fraud_schema
from vettance.decisions.shared_velocity import SharedMemory
from vettance.deployment.connect import connect_store
from vettance.events import sql as events_sql
from vettance.events.event import EventSource, read_taken_event
from vettance.ids import IdSource
from vettance.redis_link.redis_connection import RedisConnection
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.rules.sql import DECIDING
from vettance.settings.settings import Settings
from vettance.velocity.redis.redis_velocity import RedisVelocity
from vettance.wire.payload import parse_object

TENANT = "ten_fill"
AT_ONCE = 500


async def fill(count: int, database: str | None, redis: Redis) -> dict[str, Any]:
    """Write a log, and measure one filling."""
    with tempfile.TemporaryDirectory(prefix="vettance-fill-") as folder:
        settings = Settings(data=Path(folder), database_url=database)
        store = await connect_store(settings, writer="thread")
        line = RedisConnection(f"redis://127.0.0.1:{redis.port}/0")
        try:
            await store.migrate()
            ids, now_ms = IdSource(), clock.now_ms()
            await store.write(DECIDING.insert(TENANT, 1, load_pack_text("fraud"), "", now_ms))
            bodies = payment_bodies(count)
            for first in range(0, count, AT_ONCE):
                statements = []
                for place, body in enumerate(bodies[first : first + AT_ONCE], first):
                    at_ms = now_ms - (count - place) * 10
                    event = read_taken_event(parse_object(body), at_ms)
                    event_id = ids.make("evt", at_ms)
                    statements.append(
                        events_sql.insert_event(TENANT, event_id, EventSource.EVENTS, event, body)
                    )
                await store.write(*statements)
            schema = fraud_schema()
            cache = RuleCache(lambda text: compile_document(text, schema))
            memory = SharedMemory(store, RedisVelocity(line, b"a secret of benchmarks".ljust(32)), cache)
            began_s, cpu_s = time.perf_counter(), time.process_time()
            await memory.start()
            took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        finally:
            await line.close()
            await store.close()
    return {
        "events": count,
        "seconds": round(took_s, 2),
        "per_second": round(count / took_s),
        "cpu_us_per_event": round(cpu_s / count * 1e6),
        **machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--postgres", help="the URL of an empty database for the log")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    redis = Redis()
    redis.start()
    try:
        found = uvloop.run(fill(options.events, options.postgres, redis))
    finally:
        redis.kill()
    if options.json:
        print(json.dumps(found))
    else:
        print(
            f"{found['events']:,} events in {found['seconds']} s: {found['per_second']:,} a second, "
            f"{found['cpu_us_per_event']} µs of CPU each (load {found['load']})"
        )
