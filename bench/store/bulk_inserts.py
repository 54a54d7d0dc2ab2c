"""What the rows of a decision cost on their way into PostgreSQL, by how they are sent.

Inserts made-up events and decisions, so many of each in a statement, in four ways that take turns: as lists
of values for `unnest`, as one row after the other (`VALUES`, filled up to a size that is prepared), by COPY,
and row by row. The least of several rounds counts: processor time of this process, and of PostgreSQL's. COPY
is for comparison: PostgreSQL refuses it where rows of tenants are walled off.

    VETTANCE_DATABASE_URL=… python bench bulk_inserts [--rows 16] [--rounds 4] [--json]
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, Final

import asyncpg

from bench.fixtures.processes import cpu_s, machine
from vettance.db.dialect import bulk_size, bulk_text
from vettance.db.tables import Insert, Table

_TIMES: Final = 150
_TEXT, _NUMBER, _BYTES = "text", "int8", "bytea"
#: As many columns of each kind as the two tables of the log have.
_TYPES: Final = {
    "bench_event": (_TEXT, _TEXT, _TEXT, _NUMBER, _NUMBER, _BYTES),
    "bench_decision": (
        *(_TEXT, _TEXT, _NUMBER, _NUMBER, _TEXT, _TEXT, _NUMBER, _TEXT, _BYTES, _NUMBER),
        *((_TEXT,) * 9),
    ),
}
_VALUES: Final[dict[str, Callable[[int], Any]]] = {
    _TEXT: lambda number: f"customer.{number}@mail.example",
    _NUMBER: lambda number: 1_700_000_000_000 + number,
    _BYTES: lambda number: b"%d" % number + b"x" * 600,
}
#: As the service keeps them.
_TEXTS: Final[dict[tuple[str, int], str]] = {}

Rows = Sequence[Sequence[Any]]
Send = Callable[[Any, Insert, Sequence[str], Rows], Awaitable[Any]]


def _columns(types: Sequence[str]) -> list[str]:
    return [f"c{place}" for place in range(len(types))]


async def as_lists(connection: Any, into: Insert, types: Sequence[str], rows: Rows) -> None:
    """Send one list for each column."""
    names = ", ".join(_columns(types))
    lists = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types, 1))
    given = f"unnest({lists}) WITH ORDINALITY AS given ({names}, place)"
    text = f"{into.head} SELECT {names} FROM {given} ORDER BY place"
    await connection.execute(text, *[list(column) for column in zip(*rows, strict=True)])


async def as_values(connection: Any, into: Insert, types: Sequence[str], rows: Rows) -> None:
    """Send one row after the other, as the service does."""
    size = bulk_size(len(rows))
    empty = [None] * (into.width * (size - len(rows)))
    text = _TEXTS.get((into.table, size))
    if text is None:
        text = _TEXTS[into.table, size] = bulk_text(into, types, size)
    await connection.execute(text, *chain.from_iterable(rows), *empty, len(rows))


async def by_copy(connection: Any, into: Insert, types: Sequence[str], rows: Rows) -> None:
    """Send rows by COPY."""
    await connection.copy_records_to_table(into.table, records=rows, columns=_columns(types))


async def row_by_row(connection: Any, into: Insert, types: Sequence[str], rows: Rows) -> None:
    """Have the driver send each row by itself, all in one go."""
    places = ", ".join(f"${place}" for place in range(1, len(types) + 1))
    await connection.executemany(f"{into.head} VALUES ({places})", rows)


WAYS: Final[dict[str, Send]] = {
    "lists (unnest)": as_lists,
    "rows (VALUES)": as_values,
    "COPY": by_copy,
    "row by row": row_by_row,
}


async def measure(url: str, count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return, for each way, the least microseconds of a decision in this process and in PostgreSQL."""
    connection = await asyncpg.connect(url)
    try:
        return await _measure(connection, count, rounds)
    finally:
        await connection.close()


async def _measure(connection: Any, count: int, rounds: int) -> dict[str, dict[str, float]]:
    given = []
    for table, types in _TYPES.items():
        names = _columns(types)
        kinds = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        await connection.execute(f"CREATE TEMP TABLE {table} ({kinds})")
        rows = [tuple(_VALUES[kind](number) for kind in types) for number in range(count)]
        given.append((Insert(Table(table), ", ".join(names)), types, rows))
    server = await connection.fetchval("SELECT pg_backend_pid()")
    least: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for way, send in WAYS.items():
            async with connection.transaction():
                began, began_server = time.thread_time(), cpu_s(server)
                for _ in range(_TIMES):
                    for into, types, rows in given:
                        await send(connection, into, types, rows)
                took = {"process": time.thread_time() - began, "postgresql": cpu_s(server) - began_server}
            for table in _TYPES:
                await connection.execute(f"TRUNCATE {table}")
            for part, seconds in took.items():
                us = seconds / _TIMES / count * 1e6
                known = least.setdefault(way, {}).get(part, us)
                least[way][part] = round(min(us, known), 1)
    return least


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=16, help="rows of each statement")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    url = os.environ.get("VETTANCE_DATABASE_URL")
    if not url:
        raise SystemExit("VETTANCE_DATABASE_URL must name a PostgreSQL database")
    found = asyncio.run(measure(url, asked.rows, asked.rounds))
    if asked.json:
        print(json.dumps({"machine": machine(), "rows": asked.rows, "us": found}))
        return
    print(f"{machine()}\n{asked.rows} rows in a statement, microseconds of the processor for a decision")
    for way, parts in found.items():
        print(f"{way:<16} process {parts['process']:6.1f}   PostgreSQL {parts['postgresql']:6.1f}")


if __name__ == "__main__":
    main()
