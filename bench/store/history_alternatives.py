# ruff: noqa: E501
"""The history of our own against plain indexes on SQLite and PostgreSQL, and against DuckDB.

Fills the same made-up decisions into four stores: the service's own on SQLite (`history_reading` fills it), a table of
SQLite with an index for each filter, the same in PostgreSQL (VETTANCE_DATABASE_URL, an empty database; left out without
it), and DuckDB (left out when it is not installed: pip install duckdb). Then asks each what the API offers: a page of
fifty with its total for every filter and order, a search, statistics with unique customers and devices, and the links
of one decision; and adds decisions in commits of 64. Each run fills them anew.

Every figure is wall time, and processor time where this process does the work, of the best of several passes. Those of
the service's own are of its endpoints: they read fifty records as well and write the answer, which takes 1 to 2 ms of
each list; those of the others end with the rows. What adding costs the service's own includes the event, its counts and
the layout behind the log.

    python bench history_alternatives [--decisions 5000000] [--folder bench-data/alternatives] [--passes 5] [--json]
"""

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from bench.fixtures.made_history import DONE, Filler, fill, rows_of
from bench.fixtures.processes import machine
from bench.store.history_reading import measure
from vettance import clock
from vettance.db.connection import open_writer
from vettance.history.segment import CHUNK, ROW_COLUMNS, DecisionRow

NUMBERS: Final = {"seq", "evaluated_at_ms", "received_at_ms", "occurred_at_ms", "score"}
#: What lists filter and sort by; each index begins with the tenant and ends with the place in the log.
INDEXED: Final = (
    "decision", "level", "score", "customer_id", "email", "device_id", "fingerprint", "ip", "country", "session_id",
    "event_name", "event_category", "evaluated_at_ms", "occurred_at_ms",
)  # fmt: skip
TENANT: Final = "ten_" + "0" * 32
ADDED: Final = 12_800
COMMIT_ROWS: Final = 64
TABLE: Final = f"""CREATE TABLE decision (tenant TEXT NOT NULL, {
    ", ".join(f"{name} {'BIGINT' if name in NUMBERS else 'TEXT'}" for name in ROW_COLUMNS)
}, PRIMARY KEY (tenant, seq))"""


class Question(NamedTuple):
    """One question: its name, the name of the same in `history_reading`, and how a table of rows is asked it."""

    name: str
    ours: str
    texts: tuple[str, ...]
    args: tuple[Any, ...] = ()


class Table(Protocol):
    """A store with one table of decisions."""

    name: str

    def fill(self, rows: Iterator[DecisionRow]) -> None:
        """Store the rows, then index them."""

    def ask(self, text: str, args: Sequence[Any]) -> list[Any]:
        """Return the rows of a query with `?` as placeholders."""

    def add(self, rows: Sequence[DecisionRow]) -> None:
        """Store rows in one durable commit."""

    def size(self) -> int:
        """Return the bytes on disk."""


class SqliteTable:
    """A table of SQLite with indexes."""

    name = "SQLite, indexes"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "plain.db"
        self._file = sqlite3.connect(self._path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA cache_size=-400000")

    def fill(self, rows: Iterator[DecisionRow]) -> None:
        self._file.execute("PRAGMA synchronous=OFF")
        self._file.execute(TABLE + " WITHOUT ROWID")
        for some in batched(rows, 50_000):
            self.add(some)
        for text in indexes():
            self._file.execute(text)
        self._file.execute("ANALYZE")
        self._file.execute("PRAGMA synchronous=FULL")

    def ask(self, text: str, args: Sequence[Any]) -> list[Any]:
        return self._file.execute(text, args).fetchall()

    def add(self, rows: Sequence[DecisionRow]) -> None:
        self._file.execute("BEGIN")
        self._file.executemany(INSERT, list(map(values_of, rows)))
        self._file.execute("COMMIT")

    def size(self) -> int:
        self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._path.stat().st_size


class PostgresTable:
    """A table of PostgreSQL with indexes."""

    name = "PostgreSQL, indexes"

    def __init__(self, url: str) -> None:
        import asyncpg

        self._loop = asyncio.new_event_loop()
        self._connection = self._loop.run_until_complete(asyncpg.connect(url))

    def _run(self, text: str, *args: Any) -> Any:
        return self._loop.run_until_complete(self._connection.fetch(text, *args))

    def fill(self, rows: Iterator[DecisionRow]) -> None:
        self._run("DROP TABLE IF EXISTS decision")
        self._run(TABLE)
        for some in batched(rows, 50_000):
            self.add(some)
        for text in indexes():
            self._run(text)
        self._run("VACUUM ANALYZE decision")

    def ask(self, text: str, args: Sequence[Any]) -> list[Any]:
        first, *others = text.split("?")
        return list(self._run(first + "".join(f"${n}{part}" for n, part in enumerate(others, 1)), *args))

    def add(self, rows: Sequence[DecisionRow]) -> None:
        records = list(map(values_of, rows))
        names = ["tenant", *ROW_COLUMNS]
        self._loop.run_until_complete(
            self._connection.copy_records_to_table("decision", records=records, columns=names)
        )

    def size(self) -> int:
        return int(self._run("SELECT pg_total_relation_size('decision')")[0][0])


class DuckTable:
    """A table of DuckDB, which has columns and zone maps instead of indexes."""

    name = "DuckDB"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "history.duckdb"
        self._file: Any = importlib.import_module("duckdb").connect(str(self._path))

    def fill(self, rows: Iterator[DecisionRow]) -> None:
        self._file.execute(TABLE.replace(", PRIMARY KEY (tenant, seq)", ""))
        for some in batched(rows, 50_000):
            self.add(some)

    def ask(self, text: str, args: Sequence[Any]) -> list[Any]:
        return list(self._file.execute(text, list(args)).fetchall())

    def add(self, rows: Sequence[DecisionRow]) -> None:
        import pyarrow

        columns = zip(*list(map(values_of, rows)), strict=True)
        given = pyarrow.table([list(column) for column in columns], names=["tenant", *ROW_COLUMNS])
        self._file.register("given", given)
        self._file.execute("INSERT INTO decision SELECT * FROM given")
        self._file.unregister("given")

    def size(self) -> int:
        self._file.execute("CHECKPOINT")
        return self._path.stat().st_size


def values_of(row: DecisionRow) -> tuple[Any, ...]:
    """Return the values of a row of the table."""
    return (TENANT, *row[:-1], *row.texts)


def batched(rows: Iterable[DecisionRow], size: int) -> Iterator[list[DecisionRow]]:
    """Cut rows into lists of a size; the last one may be shorter."""
    left = iter(rows)
    while some := list(islice(left, size)):
        yield some


INSERT: Final = (
    f"INSERT INTO decision (tenant, {', '.join(ROW_COLUMNS)}) VALUES (?{', ?' * len(ROW_COLUMNS)})"
)


def indexes() -> list[str]:
    """Return the statements that make the indexes."""
    return [f"CREATE INDEX decision_{name} ON decision (tenant, {name}, seq)" for name in INDEXED]


def questions(now_ms: int) -> list[Question]:
    """List the questions; the names of the second column are those of `history_reading`."""
    found = []
    day = (now_ms - 20 * 86_400_000, now_ms - 19 * 86_400_000)
    month = (now_ms - 30 * 86_400_000, now_ms)
    for name, where, args, order in (
        ("no filter", "", (), "seq"),
        ("decision=deny", "AND decision = 'BLOCK'", (), "seq"),
        ("riskLevel=high", "AND level = 'high'", (), "seq"),
        ("minScore=90", "AND score >= 90", (), "seq"),
        ("customer (rare)", "AND (customer_id = ? OR email = ?)", ("cus_00012345",) * 2, "seq"),
        ("customer (hot)", "AND (customer_id = ? OR email = ?)", ("cus_00000001",) * 2, "seq"),
        ("device", "AND (fingerprint = ? OR device_id = ?)", ("dev_00001234",) * 2, "seq"),
        ("country=NG", "AND country = 'NG'", (), "seq"),
        ("from, to (a day)", "AND evaluated_at_ms >= ? AND evaluated_at_ms < ?", day, "seq"),
        ("sortBy=riskScore", "", (), "score"),
        ("three filters", "AND decision = 'REVIEW' AND country = 'DE' AND score >= 60", (), "seq"),
        ("search=cus_000123", f"AND ({SEARCH})", ("%cus_000123%",) * 6, "seq"),
        ("search=4711", f"AND ({SEARCH})", ("%4711%",) * 6, "seq"),
    ):
        rows = f"SELECT {', '.join(ROW_COLUMNS)} FROM decision WHERE tenant = ? {where} ORDER BY {order} DESC, seq DESC LIMIT 50"
        total = f"SELECT COUNT(*) FROM decision WHERE tenant = ? {where}"
        found.append(Question(name, f"GET /decisions {name}", (total, rows), (TENANT, *args)))
    counts = (
        "SELECT occurred_at_ms / 86400000, decision, COUNT(*), SUM(score) FROM decision WHERE tenant = ? "
        "AND occurred_at_ms >= ? AND occurred_at_ms < ? GROUP BY 1, 2"
    )
    unique = (
        "SELECT COUNT(DISTINCT COALESCE(customer_id, email)), COUNT(DISTINCT COALESCE(fingerprint, device_id)) "
        "FROM decision WHERE tenant = ? AND occurred_at_ms >= ? AND occurred_at_ms < ?"
    )
    found.append(Question("statistics, 30 days", "GET /decisions/stats 30 days", (counts,), (TENANT, *month)))
    found.append(
        Question(
            "statistics with uniques, 30 days",
            "GET /events/stats 30 days",
            (counts, unique),
            (TENANT, *month),
        )
    )
    links = tuple(
        "SELECT COUNT(*), COUNT(DISTINCT customer_id), COUNT(DISTINCT fingerprint), MIN(occurred_at_ms), "
        f"MAX(occurred_at_ms) FROM decision WHERE tenant = ? AND {column} = "
        f"(SELECT {column} FROM decision WHERE tenant = ? ORDER BY seq DESC LIMIT 1)"
        for column in ("customer_id", "fingerprint", "ip", "email")
    )
    found.append(Question("entity links", "linkedEntities of GET /decisions/{id}", links, (TENANT, TENANT)))
    return found


SEARCH: Final = " OR ".join(
    f"LOWER({name}) LIKE ?" for name in ("id", "event_name", "customer_id", "email", "device_id", "ip")
)


def best(act: Callable[[], object], passes: int) -> dict[str, float]:
    """Return the shortest of several runs in milliseconds, by the clock and by the processor."""
    walls, cpus = [], []
    for _ in range(passes):
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"wall_ms": round(min(walls) * 1000, 2), "cpu_ms": round(min(cpus) * 1000, 2)}


def adding(act: Callable[[Sequence[DecisionRow]], object], count: int) -> dict[str, float]:
    """Return what a decision costs that is added, in microseconds, in commits of a batch each."""
    rows = [row._replace(seq=count + row.seq) for row in rows_of(ADDED, clock.now_ms(), seed=count)]
    wall, cpu = time.perf_counter(), time.process_time()
    for some in batched(rows, COMMIT_ROWS):
        act(some)
    took = {"wall_us": time.perf_counter() - wall, "cpu_us": time.process_time() - cpu}
    return {name: round(value * 1e6 / ADDED, 1) for name, value in took.items()}


def measure_table(table: Table, count: int, passes: int) -> dict[str, Any]:
    """Fill a store and ask it everything."""
    table.fill(rows_of(count, clock.now_ms()))
    report: dict[str, Any] = {"bytes": table.size()}
    for one in questions(clock.now_ms()):
        report[one.name] = best(lambda one=one: [table.ask(text, one.args) for text in one.texts], passes)  # type: ignore[misc]
    report["a decision added"] = adding(table.add, count)
    return report


def measure_ours(folder: Path, count: int, passes: int) -> dict[str, Any]:
    """Fill the service's own store and ask its endpoints."""
    fill(folder, count)
    marker = folder / f"{DONE}-{count}"
    tenant = marker.read_text()
    figures = {one["name"]: one for one in asyncio.run(measure(folder, tenant, 1, passes))}
    report: dict[str, Any] = {}
    for one in questions(clock.now_ms()):
        report[one.name] = {"wall_ms": figures[one.ours]["p50_ms"]}
    with closing(open_writer(folder / "vettance.db")) as connection:
        report["bytes"] = _bytes_of_history(connection)
        filler = Filler(connection, tenant)
        filler.terms = dict(connection.execute("SELECT value, id FROM term"))
        waiting: list[DecisionRow] = []

        def add(rows: Sequence[DecisionRow]) -> None:
            filler.fill(list(rows))
            waiting.extend(rows)
            if len(waiting) >= CHUNK:
                connection.execute("BEGIN")
                filler._seal(waiting[:CHUNK])
                connection.execute("COMMIT")
                del waiting[:CHUNK]

        last = connection.execute("SELECT MAX(seq) FROM decision").fetchone()[0]
        report["a decision added"] = adding(add, last)
    marker.unlink()
    return report


def _bytes_of_history(connection: sqlite3.Connection) -> int:
    """Return what decisions and their columns take, but for the records, which no alternative stores."""
    names = [
        "'decision%'",
        "'chunk%'",
        "'term%'",
        "'id_search%'",
        "'roster%'",
        "'rollup%'",
        "'sqlite_autoindex_decision%'",
    ]
    like = " OR ".join(f"name LIKE {name}" for name in names)
    (pages,) = connection.execute(f"SELECT SUM(pgsize) FROM dbstat WHERE {like}").fetchone()
    (records,) = connection.execute("SELECT SUM(LENGTH(record)) FROM decision").fetchone()
    return int(pages) - int(records)


def main() -> None:
    """Fill, ask, and print a table for the decision record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/alternatives"))
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    # Taken away first: the service's own store that is filled is the embedded one.
    url = os.environ.pop("VETTANCE_DATABASE_URL", None) or os.environ.get("VETTANCE_TEST_POSTGRES")
    reports = {"ours, on SQLite": measure_ours(asked.folder / "ours", asked.decisions, asked.passes)}
    makers: list[Callable[[], Table]] = [lambda: SqliteTable(asked.folder)]
    makers += [lambda: PostgresTable(str(url))] if url else []
    makers += [lambda: DuckTable(asked.folder)] if importlib.util.find_spec("duckdb") else []
    for make in makers:
        for old in [*asked.folder.glob("plain.db*"), *asked.folder.glob("history.duckdb*")]:
            old.unlink()
        table = make()
        sys.stderr.write(f"{table.name}\n")
        reports[table.name] = measure_table(table, asked.decisions, asked.passes)
    if asked.json:
        print(json.dumps({"machine": machine(), "decisions": asked.decisions, "figures": reports}))
        return
    print(f"{asked.decisions:,} decisions on {machine()}; milliseconds by the clock (by the processor)\n")
    print("| | " + " | ".join(reports) + " |")
    print("|---" * (len(reports) + 1) + "|")
    for name in next(iter(reports.values())):
        print(f"| {name} | " + " | ".join(_cell(report.get(name)) for report in reports.values()) + " |")


def _cell(figure: Any) -> str:
    if isinstance(figure, dict):
        wall, *cpu = figure.values()
        return f"{wall:g}" + (f" ({cpu[0]:g})" if cpu else "") + (" µs" if "wall_us" in figure else "")
    return f"{figure / 2**20:,.0f} MiB" if figure is not None else ""


if __name__ == "__main__":
    main()
