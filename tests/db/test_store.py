"""What the port promises: all or nothing, only the guilty fail, in order, seen when returned."""

import asyncio
import gc
import os
import signal
import stat
import weakref
from pathlib import Path

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.db.rows import (
    STEPS,
    add_use,
    all_uses,
    begin_uses,
    decided,
    expect_batch_like_model,
    raise_uses,
    until,
    use,
    uses,
)
from vettance.db.connection import open_writer
from vettance.db.engine import Clash, Lost, Misuse, Statement, StoreDown, everyone, insert
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import Seat, SqliteStore, store_path
from vettance.db.tables import API_KEY, CATALOG, CHANGE, DECISION, DELIVERY, EVENT, QUOTA_USE, Insert, Table
from vettance.tenants.sql import note_change

AnyStore = SqliteStore | PostgresStore


async def test_a_read_sees_every_write_that_has_returned(store: AnyStore) -> None:
    for hour in range(20):
        assert await store.write(use("ten_a", hour)) == [1]
        assert len(await store.read(all_uses())) == hour + 1


async def test_values_come_back_as_they_were_given(store: AnyStore) -> None:
    blob = bytes(range(256))
    await store.write(
        everyone(
            EVENT,
            "INSERT INTO event (tenant, source, id, received_at_ms, occurred_at_ms, sent) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            ("tön 🂡", "", "x", -(2**63), 2**63 - 1, blob),
        ),
    )
    rows = await store.read(
        everyone(EVENT, "SELECT tenant, source, received_at_ms, sent, NULL, 0.1 FROM event")
    )
    assert rows == [("tön 🂡", "", -(2**63), blob, None, 0.1)]


async def test_a_write_tells_how_many_rows_each_statement_changed(store: AnyStore) -> None:
    await store.write(use("ten_a", 1), use("ten_a", 2))
    counts = await store.write(
        everyone(QUOTA_USE, "UPDATE quota_use SET used = 5"),
        everyone(QUOTA_USE, "DELETE FROM quota_use WHERE hour = ?", (1,)),
        everyone(
            QUOTA_USE, "WITH h AS (SELECT 9 AS hour) INSERT INTO quota_use SELECT 'ten_b', hour, 1 FROM h"
        ),
        everyone(QUOTA_USE, "DELETE FROM quota_use WHERE hour = ?", (77,)),
    )
    assert counts == [2, 1, 1, 0]


async def test_inserts_of_several_rows_tell_how_many_each_changed(store: AnyStore) -> None:
    # Some share a batch, and each has another number of rows.
    counts = await asyncio.gather(*(store.write(uses("ten_a", range(count))) for count in (1, 3, 2, 7)))
    assert counts == [[1], [3], [2], [7]]
    assert await store.write(begin_uses("ten_a", range(5, 9)), begin_uses("ten_a", range(9))) == [2, 0]
    assert await store.read(all_uses()) == [
        ("ten_a", hour, used) for hour, used in enumerate((4, 3, 2, 1, 1, 1, 1, 0, 0))
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 31, 33, 70])
async def test_rows_that_are_written_together_are_numbered_in_their_order(
    store: AnyStore, count: int
) -> None:
    noted = [f"{number}" for number in range(count)]
    assert await store.write(*(note_change("lists", "ten_a", one, 1) for one in noted)) == [1] * count
    found = await store.read(everyone(CHANGE, "SELECT subject FROM change ORDER BY seq"))
    assert [row[0] for row in found] == noted


async def test_of_an_insert_of_several_rows_nothing_is_kept_when_one_is_refused(store: AnyStore) -> None:
    odd = insert(Insert(QUOTA_USE, "tenant, hour, used"), "ten_a", (1, 1, "ten_a", 2, 1, "ten_a", 1, 1))
    found = await asyncio.gather(store.write(use("ten_a", 9)), store.write(odd), return_exceptions=True)
    assert found[0] == [1]
    assert isinstance(found[1], Clash)
    assert await store.read(all_uses()) == [("ten_a", 9, 1)]


async def test_simultaneous_counts_are_told_and_kept_one_by_one(store: AnyStore) -> None:
    writes = [(*decided(f"evt_{number:032x}"), raise_uses("ten_a", 1)) for number in range(20)]
    assert await asyncio.gather(*(store.write(*write) for write in writes)) == [[1, 1, 1, 2]] * 20
    assert await store.read(all_uses()) == [("ten_a", 1, 20), ("ten_a", 5, 20)]


async def test_a_write_of_nothing_changes_nothing(store: AnyStore) -> None:
    assert await store.write() == []


async def test_a_unique_clash_undoes_the_whole_write(store: AnyStore) -> None:
    await store.write(use("ten_a", 1))
    with pytest.raises(Clash, match="quota_use"):
        await store.write(use("ten_a", 2), use("ten_a", 1))
    assert await store.read(all_uses()) == [("ten_a", 1, 1)]


async def test_a_refused_write_leaves_nothing_for_the_collector(store: AnyStore) -> None:
    async def refused() -> "weakref.ref[Clash]":
        try:
            await store.write(use("ten_a", 1))
        except Clash as clash:
            return weakref.ref(clash)
        raise AssertionError("it was not refused")

    await store.write(use("ten_a", 1))
    gc.disable()
    try:
        clash = await refused()
        await asyncio.sleep(0)
        assert clash() is None
    finally:
        gc.enable()


async def test_an_unmet_row_count_undoes_the_whole_write(store: AnyStore) -> None:
    with pytest.raises(Lost):
        await store.write(use("ten_a", 1), add_use("ten_a", 2, rows=1))
    assert await store.read(all_uses()) == []


@pytest.mark.parametrize(
    "statement",
    [
        everyone(Table("nowhere"), "INSERT INTO nowhere VALUES (?)", (1,)),
        everyone(CATALOG, "this is not SQL"),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1)),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1, None)),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1, 2**64)),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1, 2**63)),
        everyone(
            QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1, object())
        ),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("a", 1, [1])),
        everyone(QUOTA_USE, "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", ("\ud800", 1, 1)),
        everyone(
            API_KEY,
            "INSERT INTO api_key (id, tenant, digest, hint, created_at_ms) VALUES (?, ?, ?, ?, ?)",
            ("key_a", "ten_nobody", b"1", "x", 1),
        ),
    ],
    ids=[
        "table",
        "syntax",
        "too few",
        "null",
        "65 bits",
        "64 bits",
        "object",
        "list",
        "surrogate",
        "reference",
    ],
)
async def test_a_wrong_statement_fails_alone_and_says_so(store: AnyStore, statement: Statement) -> None:
    outcomes = await asyncio.gather(
        store.write(use("ten_a", 1)),
        store.write(use("ten_a", 2), statement),
        store.write(use("ten_a", 3)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [list, Misuse, list]
    assert [row[1] for row in await store.read(all_uses())] == [1, 3]
    assert store.healthy()


async def test_a_wrong_query_is_a_misuse_and_a_query_cannot_write(store: AnyStore) -> None:
    with pytest.raises(Misuse, match=r"no such table|does not exist"):
        await store.read(everyone(CATALOG, "SELECT * FROM nowhere"))
    with pytest.raises(StoreDown, match="read-only"):
        await store.read(everyone(QUOTA_USE, "DELETE FROM quota_use"))


async def test_simultaneous_writes_take_effect_in_the_order_of_their_calls(store: AnyStore) -> None:
    ids = [f"evt_{number:032x}" for number in range(3000)]
    await asyncio.gather(*(store.write(*decided(event_id)) for event_id in ids))
    assert await store.read(everyone(EVENT, "SELECT id FROM event ORDER BY seq")) == [
        (event_id,) for event_id in ids
    ]
    pairs = "SELECT count(*) FROM event e JOIN decision d ON d.seq = e.seq AND d.id = e.id"
    assert await store.read(everyone(EVENT.reading(DECISION), pairs)) == [(3000,)]


async def test_order_holds_when_some_of_the_writes_fail(store: AnyStore) -> None:
    ids = [f"evt_{number % 70:032x}" for number in range(100)]
    outcomes = await asyncio.gather(
        *(store.write(*decided(event_id)) for event_id in ids), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [list] * 70 + [Clash] * 30
    assert [row[0] for row in await store.read(everyone(EVENT, "SELECT id FROM event ORDER BY seq"))] == ids[
        :70
    ]
    assert await store.read(everyone(DELIVERY, "SELECT count(*) FROM delivery")) == [(70,)]


async def test_of_simultaneous_claims_exactly_one_wins(store: AnyStore) -> None:
    await store.write(use("ten_a", 1, 0))
    claim = everyone(
        QUOTA_USE, "UPDATE quota_use SET used = 1 WHERE tenant = ? AND used = 0", ("ten_a",), rows=1
    )
    outcomes = await asyncio.gather(*(store.write(claim) for _ in range(50)), return_exceptions=True)
    assert sorted(str(type(outcome).__name__) for outcome in outcomes) == ["Lost"] * 49 + ["list"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=st.lists(STEPS, min_size=1, max_size=25))
def test_a_batch_equals_its_writes_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, writes: list[list[tuple[str, int]]]
) -> None:
    async def run() -> None:
        path = store_path(tmp_path_factory.mktemp("batch"))
        migrate(path)
        async with await SqliteStore.open(path, writer="thread") as store:
            await expect_batch_like_model(store, writes)

    asyncio.run(run())


async def test_a_cancelled_caller_leaves_the_others_whole(store: AnyStore) -> None:
    tasks = [asyncio.create_task(store.write(*decided(f"evt_{number:032x}"))) for number in range(200)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    kept = {row[0] for row in await store.read(everyone(EVENT, "SELECT id FROM event"))}
    returned = {f"evt_{number:032x}" for number, outcome in enumerate(outcomes) if isinstance(outcome, list)}
    assert len(returned) >= 133
    assert returned <= kept
    halves = "SELECT count(*) FROM event LEFT JOIN decision USING (id) WHERE decision.id IS NULL"
    assert await store.read(everyone(EVENT.reading(DECISION), halves)) == [(0,)]


async def test_made_up_statements_do_not_fill_the_writer(store: AnyStore) -> None:
    for number in range(600):
        await store.write(
            everyone(QUOTA_USE, f"INSERT INTO quota_use (tenant, hour, used) VALUES (?, {number}, 1)", ("a",))
        )
    many = [use("ten_b", hour) for hour in range(300)]
    assert await store.write(*many) == [1] * 300
    assert await store.read(everyone(QUOTA_USE, "SELECT count(*) FROM quota_use")) == [(900,)]


async def test_more_waiting_writes_than_the_bound_are_refused(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vettance.db.write_batcher.WAITING_MAX", 100)
    writes = [asyncio.create_task(store.write(use("ten_a", hour))) for hour in range(150)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    refused = [str(outcome) for outcome in outcomes if isinstance(outcome, StoreDown)]
    assert refused == ["the store is overloaded"] * 50
    assert len(await store.read(all_uses())) == 100
    assert store.pending == 0


async def test_pending_counts_the_writes_that_wait(store: AnyStore) -> None:
    writes = [asyncio.create_task(store.write(use("ten_a", hour))) for hour in range(5)]
    await asyncio.sleep(0)
    assert store.pending == 5
    await asyncio.gather(*writes)
    assert store.pending == 0


async def test_closing_finishes_what_waits_and_then_refuses(path: Path) -> None:
    migrate(path)
    store = await SqliteStore.open(path, writer="process")
    writes = [asyncio.create_task(store.write(use("ten_a", hour))) for hour in range(2500)]
    await asyncio.sleep(0)
    await store.close()
    assert [await write for write in writes] == [[1]] * 2500
    with pytest.raises(StoreDown, match="closed"):
        await store.write(use("ten_a", 9999))
    assert not path.with_name("vettance.db-wal").exists()
    await store.close()


async def test_closing_tells_those_who_read_that_the_store_is_down(path: Path) -> None:
    migrate(path)
    store = await SqliteStore.open(path, writer="thread")
    endless = everyone(
        CATALOG, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    reads = [asyncio.create_task(store.read(endless)) for _ in range(12)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(5):
        await store.close()
    told = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(one) for one in told} == {StoreDown}
    with pytest.raises(StoreDown, match="closed"):
        await store.read(everyone(CATALOG, "SELECT 1"))


@pytest.mark.parametrize("seat", ["thread", "process"])
def test_the_store_runs_on_the_loop_of_the_server_too(path: Path, seat: Seat) -> None:
    async def run() -> None:
        async with await SqliteStore.open(path, writer=seat) as store:
            await store.migrate()
            await asyncio.gather(*(store.write(*decided(f"evt_{number:032x}")) for number in range(300)))
            if store.writer_pid is not None:
                os.kill(store.writer_pid, signal.SIGKILL)
                await until(lambda: not store.healthy())
            await store.write(*decided("evt_" + "f" * 32))
            assert await store.read(everyone(EVENT, "SELECT count(*) FROM event")) == [(301,)]

    uvloop.run(run())


@pytest.mark.parametrize("seat", ["thread", "process"])
async def test_closing_does_not_wait_for_callers_that_were_cancelled(path: Path, seat: Seat) -> None:
    migrate(path)
    store = await SqliteStore.open(path, writer=seat)
    tasks = [asyncio.create_task(store.write(use("ten_a", hour))) for hour in range(2500)]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(5):
        await store.close()
    assert {type(outcome) for outcome in await asyncio.gather(*tasks, return_exceptions=True)} <= {
        list,
        asyncio.CancelledError,
    }


async def test_a_query_that_takes_too_long_is_interrupted(path: Path) -> None:
    migrate(path)
    async with await SqliteStore.open(path, writer="thread", read_s_max=0.2) as store:
        endless = everyone(
            CATALOG, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        )
        for _ in range(6):
            with pytest.raises(StoreDown, match="longer than"):
                await store.read(endless)
        assert await store.read(everyone(CATALOG, "SELECT 1")) == [(1,)]


async def test_a_cancelled_query_frees_its_connection(path: Path) -> None:
    migrate(path)
    async with await SqliteStore.open(path, writer="thread") as store:
        endless = everyone(
            CATALOG, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        )
        tasks = [asyncio.create_task(store.read(endless)) for _ in range(12)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(2):
            assert await store.read(everyone(CATALOG, "SELECT 1")) == [(1,)]


async def test_the_data_folder_is_for_its_owner_only(path: Path, served: SqliteStore) -> None:
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("vettance.db*")} == {0o600}
    assert path.name == "vettance.db"


def test_the_writing_connection_is_set_to_be_durable(path: Path) -> None:
    migrate(path)
    connection = open_writer(path)
    asked = ("synchronous", "journal_mode", "wal_autocheckpoint", "foreign_keys", "page_size")
    told = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked}
    connection.close()
    # 2 is FULL: a commit returns when the log is on the disk (sqlite.org/pragma.html#pragma_synchronous).
    assert told == {
        "synchronous": 2,
        "journal_mode": "wal",
        "wal_autocheckpoint": 0,
        "foreign_keys": 1,
        "page_size": 8192,
    }
