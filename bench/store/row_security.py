"""What row-level security costs: the same statements on the same data, with the walls and without.

    VETTANCE_DATABASE_URL=postgresql://postgres@127.0.0.1/empty python bench row_security [--decisions 100000]

The database must be empty and the user a superuser, to whom no policy applies: one connection works under
the role of the service (*walls*), one as the superuser (*none*), and one as the superuser who does not say
whose rows it wants either (*bare*). They take turns at every single
statement.
The least of many times counts, since other load only ever adds.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bench.fixtures.processes import machine
from bench.store.embedded_store import DECISION, DELIVERY, EVENT, TENANT, rows
from vettance.db.dialect import form_of
from vettance.db.engine import Statement, insert
from vettance.db.postgres import PostgresStore
from vettance.db.postgres_batch import BatchCommitter, CommitBatch
from vettance.db.postgres_link import connect
from vettance.db.postgres_read import ReadConnection
from vettance.history import sql

TENANTS = 10
DAY_S = 86_400
#: Repeats a decision for all tenants, as the superuser can at once.
FILL = """
INSERT INTO {table} ({columns}) SELECT {chosen} FROM {table} AS one
CROSS JOIN generate_series(1, {count}) AS number WHERE one.id = '{id}'"""
ROLLUP = """
INSERT INTO rollup
SELECT $1::TEXT || CASE tenant WHEN 0 THEN '' ELSE tenant::TEXT END, 3600, hour * 3600, code, 5, 1, 1, 100
FROM generate_series(0, 9) AS tenant, generate_series(0, 719) AS hour,
unnest(ARRAY['', 'A', 'B', 'C']) AS code"""

Act = Callable[[], Awaitable[Any]]


def decided(number: int) -> list[Statement]:
    """What one decided event writes."""
    return [
        insert(into, TENANT, args)
        for into, args in zip((EVENT, DECISION, DELIVERY), rows(number), strict=True)
    ]


async def fill(connection: Any, store: PostgresStore, count: int) -> None:
    """Give ten tenants so many decisions together, and thirty days of counts."""
    await store.write(*decided(0))
    (event_id,) = await connection.fetchrow("SELECT id FROM event")
    for table in ("event", "decision"):
        names = [
            name
            for (name,) in await connection.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = $1 "
                "AND column_name <> 'seq' ORDER BY ordinal_position",
                table,
            )
        ]
        whose = f"CASE number % {TENANTS} WHEN 0 THEN '' ELSE (number % {TENANTS})::TEXT END"
        given = {"id": "one.id || number", "tenant": f"one.tenant || {whose}"}
        chosen = ", ".join(given.get(name, f"one.{name}") for name in names)
        columns = ", ".join(names)
        text = FILL.format(table=table, columns=columns, chosen=chosen, count=count, id=event_id)
        await connection.execute(text, timeout=600)
    await connection.execute(ROLLUP, TENANT)
    await connection.execute("VACUUM ANALYZE", timeout=600)


async def measure(url: str, count: int, repeats: int) -> None:
    """Print one row of Markdown for each statement."""
    store = await PostgresStore.open(url)
    await store.migrate()
    walls = await connect(url, statement_s_max=60, writes=True)
    none = await connect(url, statement_s_max=600, writes=True, plain=True)
    reader = await connect(url, statement_s_max=60, writes=False)
    above = await connect(url, statement_s_max=60, writes=False, plain=True)
    await fill(none, store, count)
    for connection, bound in ((walls, True), (none, False), (reader, True), (above, False)):
        seen = await connection.fetchval("SELECT count(*) FROM event")
        assert (seen == 0) == bound, "the walls are not where they are to be"
    newest = await none.fetchval("SELECT MAX(seq) FROM decision WHERE tenant = $1", TENANT)
    batcher, number = BatchCommitter(), 0

    async def write(connection: Any) -> None:
        nonlocal number
        number += 1
        await batcher.begin(connection)
        (reply,) = await batcher.apply(connection, CommitBatch([decided(number)], {TENANT}))
        assert reply == [1, 1, 1]

    asked = {
        "a page of 50 decisions": sql.select_span(TENANT, newest - 50 * TENANTS, 50),
        "5,000 decisions counted": sql.count_after(TENANT, newest - 5_000 * TENANTS),
        "statistics of 30 days": sql.select_counts(TENANT, [(3600, 0, 30 * DAY_S)], DAY_S),
    }
    print("| statement | walls | none | bare | walls : none |\n|---|---:|---:|---:|---:|")
    for name, statement in asked.items():
        text, args = form_of(statement).text, statement.args

        def act(connection: Any, statement: Statement = statement) -> Act:
            reading = ReadConnection(connection)
            return lambda: reading.fetch(statement)

        acts: dict[str, Act] = {"walls": act(reader), "none": act(above)}
        acts["bare"] = partial(above.fetch, text, *args)
        assert sorted(await acts["walls"]()) == sorted(await acts["none"]()) != []
        report(name, await best_of(acts, repeats))
    # Last, since it changes what the others ask.
    acts = {"walls": lambda: write(walls), "none": lambda: write(none)}
    report("a decided event, durable", await best_of(acts, repeats))
    for connection in (walls, none, reader, above):
        await connection.close()
    await store.close()


async def best_of(acts: dict[str, Act], repeats: int) -> dict[str, float]:
    """Return the least milliseconds that each took, in turns."""
    best = dict.fromkeys(acts, float("inf"))
    for _ in range(repeats):
        for name, act in acts.items():
            began = time.perf_counter()
            await act()
            best[name] = min(best[name], (time.perf_counter() - began) * 1000)
    return best


def report(name: str, best: dict[str, float]) -> None:
    """Print a row."""
    bare = f"{best['bare']:.2f} ms" if "bare" in best else ""
    ratio = best["walls"] / best["none"]
    print(f"| {name} | {best['walls']:.2f} ms | {best['none']:.2f} ms | {bare} | {ratio:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=500)
    options = parser.parse_args()
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the start\n")
    url = os.environ["VETTANCE_DATABASE_URL"]
    asyncio.run(measure(url, options.decisions, options.repeats))
