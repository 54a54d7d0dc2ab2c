"""A read in pieces: as many rows as come to so many bytes, whatever they are, and all of them in the end."""

import ast
import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from vettance.aml import sql as aml_sql
from vettance.aml.screening import sql as screening_sql
from vettance.db.engine import Row, Statement, everyone, in_pieces, scoped, still_asked, take_piece
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.db.tables import EVENT
from vettance.decisions import sql as decisions_sql
from vettance.events import sql as events_sql
from vettance.exchange import sql as exchange_sql
from vettance.jobs import sql as jobs_sql
from vettance.lists import sql as lists_sql
from vettance.retention import sql as retention_sql
from vettance.retention.stored_texts import REWRITTEN
from vettance.webhooks import delivery_queue
from vettance.websdk import sql as websdk_sql

AnyStore = SqliteStore | PostgresStore

LARGE = 200_000
SOURCE = Path(__file__).parents[2] / "src" / "vettance"


async def fill(store: AnyStore, sizes: list[int]) -> None:
    for number, size in enumerate(sizes):
        await store.write(
            everyone(
                EVENT,
                "INSERT INTO event (tenant, source, id, received_at_ms, occurred_at_ms, sent) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                ("ten_a", "", f"evt_{number:032x}", 0, 0, b"x" * size),
            )
        )


async def pieces(store: AnyStore, bytes_max: int) -> list[list[Row]]:
    found: list[list[Row]] = []
    after = 0
    while True:
        query = "SELECT seq, sent FROM event WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
        rows = await store.read(in_pieces(scoped(EVENT, "ten_a", query, (after, 5_000)), bytes_max))
        if not rows:
            return found
        found.append(rows)
        after = rows[-1][0]


async def test_many_small_rows_are_one_piece(store: AnyStore) -> None:
    await fill(store, [10] * 300)
    assert [len(piece) for piece in await pieces(store, 1_000_000)] == [300]


async def test_large_rows_come_a_few_at_a_time_and_none_is_left_out(store: AnyStore) -> None:
    sizes = [LARGE, 10, LARGE, LARGE, *[10] * 100, *[LARGE] * 20, 10]
    await fill(store, sizes)
    found = await pieces(store, 2 * LARGE)
    assert [len(row[1]) for piece in found for row in piece] == sizes
    assert len(found) > 1


async def test_a_piece_of_large_rows_is_little_larger_than_its_bound(store: AnyStore) -> None:
    await fill(store, [LARGE] * 40)
    found = await pieces(store, 12 * LARGE)
    assert sum(map(len, found)) == 40
    assert {len(piece) for piece in found[:-1]} == {12}


async def test_a_row_larger_than_the_bound_comes_alone(store: AnyStore) -> None:
    await fill(store, [LARGE] * 3)
    first = await store.read(in_pieces(everyone(EVENT, "SELECT sent FROM event ORDER BY seq LIMIT 1"), 1))
    assert [len(row[0]) for row in first] == [LARGE]


async def test_a_piece_leaves_its_connection_as_it_was(store: AnyStore) -> None:
    await fill(store, [LARGE] * 30)
    await asyncio.gather(*(pieces(store, 10) for _ in range(8)))
    await fill_more(store)
    ((count,),) = await store.read(everyone(EVENT, "SELECT COUNT(*) FROM event"))
    assert count == 31


async def fill_more(store: AnyStore) -> None:
    await store.write(
        everyone(
            EVENT,
            "INSERT INTO event (tenant, source, id, received_at_ms, occurred_at_ms, sent) "
            "VALUES ('ten_b', '', 'evt_more', 0, 0, ?)",
            (b"",),
        )
    )


def test_a_piece_of_rows_ends_with_the_one_that_fills_it() -> None:
    rows = iter([(1, b"aaaa"), (2, "bb"), (3, None), (4, b"c")])
    assert take_piece(rows, 5) == [(1, b"aaaa"), (2, "bb")]
    assert take_piece(rows, 5, 1) == [(3, None)]
    assert take_piece(rows, 5) == [(4, b"c")]
    assert take_piece(rows, 5) == []


def test_what_is_asked_for_by_key_and_was_not_come_to_is_asked_for_again() -> None:
    assert still_asked([3, 5, 9], [(9, b"aa"), (3, b"aa")], 4) == [5]
    assert still_asked([3, 5, 9], [(9, b"aa"), (3, b"aa"), (5, b"")], 4) == []
    # What was not found is not there any more.
    assert not still_asked([3, 5, 9], [(9, b"aa"), (3, b"a")], 4)
    assert not still_asked([3, 5, 9], [], 4)


ASKED = (
    events_sql.select_log(0, 0, 1),
    events_sql.select_tenant_log("t", 0, 0, 1),
    decisions_sql.select_decided_log("t", 0, 0, 1),
    decisions_sql.select_listed_decisions("t", [1, 2, 3], bodies=True),
    events_sql.select_rows("t", [1, 2, 3]),
    events_sql.select_imported_log("t", 0, 1),
    lists_sql.select_all("", 1),
    lists_sql.select_entries("t", ["a", "b"]),
    jobs_sql.select_queued("t", "imp", 1),
    jobs_sql.select_accepted("t", 0, 1),
    aml_sql.select_log("t", 0, 0, 1),
    aml_sql.select_log_of_all(0, 0, 1),
    aml_sql.select_external_ids("t", ("", 0), 1),
    aml_sql.select_sent("t", ["a", "b"]),
    screening_sql.select_behind("t", "set", 1),
    exchange_sql.select_exported("t", 0, "occurred_at_ms", 1, 2, 1),
    retention_sql.select_events("t", [1, 2, 3]),
    # What people wrote, and what is delivered, is small.
    *(retention_sql.select_place("t", one, one.start) for one in REWRITTEN if "sent" in one.columns),
    websdk_sql.select_signals("ten", [1]),
    delivery_queue.select_claimed([1, 2], "lease"),
)


@pytest.mark.parametrize("statement", ASKED, ids=lambda statement: statement.sql[:90])
def test_a_read_in_pieces_sorts_nothing_first(statement: Statement, path: Path) -> None:
    """SQLite would gather all rows, with everything in them, before it gave the first one."""
    assert statement.bytes_max is not None
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.args).fetchall()
    assert not [row[3] for row in plan if "TEMP B-TREE" in row[3]]


#: Columns in which a caller's own words stand, as large as a request may be.
BODIES = re.compile(r"\b(sent|signals|body|record|_STORED|_COLUMNS|_LOG|_BEHIND)\b")
MANY = re.compile(r"LIMIT|\bIN \(")
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name in ("sql.py", "outbox.py"))
#: Rows that cannot be large.
SMALL = {
    ("lists", "page"): "an entry is bounded at the door, and a page has a hundred",
    ("lists", "select_by_values"): "an entry is bounded at the door, and a value has one on each list",
    ("feedback", "select_feedback"): "notes are bounded at the door",
    ("webhooks", "select_backlog"): "it counts",
    ("streams", "count_due"): "it counts",
    ("decisions", "select_record_beginnings"): "twelve bytes of a record, once for each beginning",
    (
        "backtests",
        "select_newest",
    ): "an order is bounded at the door, a result by its samples; a page has twenty",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_read_of_many_bodies_is_in_pieces(path: Path) -> None:
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef):
            continue
        body = ast.get_source_segment(text, node) or ""
        if "SELECT" not in body or not BODIES.search(body) or not MANY.search(body):
            continue
        if re.search(r"\b(UPDATE|DELETE|INSERT)\b", body) or (path.parent.name, node.name) in SMALL:
            continue
        assert "in_pieces(" in body, f"{path.relative_to(SOURCE)}: {node.name} may return any number of bytes"
