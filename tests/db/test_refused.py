"""What a PostgreSQL refuses for want of a right or a table is the deployment's to mend, and no bug."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from tests.databases import SERVER, absence, ask, database
from tests.db.rows import all_uses, decided, until, use
from vettance.db import postgres_schema
from vettance.db.engine import StoreDown
from vettance.db.postgres import PostgresStore
from vettance.db.postgres_examine import examine
from vettance.db.postgres_link import ROLE


@contextlib.contextmanager
def without(url: str, right: str, table: str) -> Iterator[None]:
    ask(url, f"REVOKE {right} ON {table} FROM {ROLE}")
    try:
        yield
    finally:
        ask(url, f"GRANT {right} ON {table} TO {ROLE}")


@pytest.fixture
def empty() -> Iterator[str]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        yield made


async def test_a_write_without_its_right_is_down_and_alone_and_taken_when_it_is_given(emptied: str) -> None:
    async with await PostgresStore.open(emptied) as store:
        with without(emptied, "INSERT", "quota_use"):
            refused, kept = await asyncio.gather(
                store.write(use("ten_a", 1)), store.write(*decided("evt_1")), return_exceptions=True
            )
            assert isinstance(refused, StoreDown)
            assert "quota_use" in str(refused)
            assert kept == [1, 1, 1]
            assert not store.healthy()
            await until(lambda: "lacks INSERT on quota_use: `GRANT" in str(store.trouble))
            # Other writes go on, and do not hide it.
            assert await store.write(*decided("evt_2")) == [1, 1, 1]
            assert not store.healthy()
        await until(store.healthy)
        assert await store.read(all_uses()) == [], "what was tried was undone"
        assert await store.write(use("ten_a", 1)) == [1]


@pytest.mark.parametrize("right", ["INSERT", "SELECT"])
async def test_a_turn_without_its_right_is_undone_and_the_store_unwell_until_it_is_given(
    emptied: str, right: str
) -> None:
    async def take_one() -> None:
        async with store.turn() as turn:
            await turn.begin(["ten_a"])
            await turn.write([decided("evt_1")])
            await turn.read(all_uses())
            await turn.write([[use("ten_a", 1)]])

    async with await PostgresStore.open(emptied) as store:
        with without(emptied, right, "quota_use"):
            with pytest.raises(StoreDown, match="quota_use"):
                await take_one()
            await until(lambda: f"lacks {right} on quota_use: `GRANT" in str(store.trouble))
            # Other writes go on, and do not hide it.
            assert await store.write(*decided("evt_2")) == [1, 1, 1]
            assert not store.healthy()
        await until(store.healthy)
        assert await store.read(all_uses()) == []
        await take_one()
        assert await store.read(all_uses()) == [("ten_a", 1, 1)]


async def test_a_turn_that_meets_a_database_set_read_only_has_the_store_wait_for_it(empty: str) -> None:
    await postgres_schema.migrate(empty)
    name = empty.rpartition("/")[2]
    async with await PostgresStore.open(empty) as store:
        ask(SERVER, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        ask(SERVER, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        with pytest.raises(StoreDown, match="takes no writes"):
            async with store.turn():
                pass
        await until(lambda: "takes no writes" in str(store.trouble))
        ask(SERVER, f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await until(store.healthy)
        assert await store.write(use("ten_a", 1)) == [1]


async def test_a_query_without_its_right_is_down(emptied: str) -> None:
    async with await PostgresStore.open(emptied) as store:
        with without(emptied, "SELECT", "quota_use"), pytest.raises(StoreDown, match="quota_use"):
            await store.read(all_uses())
        assert await store.read(all_uses()) == []


async def test_a_table_of_ours_that_is_gone_is_down_until_it_is_back(emptied: str) -> None:
    async with await PostgresStore.open(emptied) as store:
        ask(emptied, "ALTER TABLE quota_use RENAME TO elsewhere")
        try:
            with pytest.raises(StoreDown, match="lacks a table"):
                await store.write(use("ten_a", 1))
            assert not store.healthy()
        finally:
            ask(emptied, "ALTER TABLE elsewhere RENAME TO quota_use")
        await until(store.healthy)
        assert await store.write(use("ten_a", 1)) == [1]


async def test_rights_that_lack_are_found_out(emptied: str) -> None:
    assert (await examine(emptied)).lacking is None
    with without(emptied, "INSERT, UPDATE", "event"):
        told = str((await examine(emptied)).lacking)
    assert told.startswith(f"{ROLE} lacks INSERT, UPDATE on event: `GRANT")
