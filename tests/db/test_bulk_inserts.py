"""Rows of several tables reach PostgreSQL in one statement, each in its order and under its tenant's wall."""

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.databases import ask
from tests.db.rows import use
from vettance.db.bulk_inserts import BulkInserts, WaitingRows
from vettance.db.dialect import bulk_rows, form_of
from vettance.db.engine import Clash, Statement, everyone, insert
from vettance.db.postgres import PostgresStore
from vettance.db.tables import CHANGE, QUOTA_USE, Insert
from vettance.tenants.sql import note_change

_NOTE = Insert(CHANGE, "area, tenant, subject, at_ms")
_SUM = Insert(QUOTA_USE, "tenant, hour, used", key="tenant, hour", adds="used")
_MOST = bulk_rows(_NOTE)


def _wait(waiting: WaitingRows, into: Insert, rows: list[tuple[Any, ...]]) -> None:
    form = form_of(insert(into, rows[0][0], rows[0][into.starts_with_tenant :]))
    assert form.bulk is into
    waiting.add(form, into, rows)


@pytest.mark.parametrize("count", [1, 2, 5, _MOST, _MOST + 1, 3 * _MOST])
async def test_rows_of_several_tables_go_along_with_a_question(emptied: str, count: int) -> None:
    waiting, inserts = WaitingRows(), BulkInserts()
    _wait(waiting, _NOTE, [("lists", "ten_a", f"{number}", 1) for number in range(count)])
    _wait(waiting, _SUM, [("ten_a", number, 1) for number in range(count)])
    sent: list[str] = []
    connection = await asyncpg.connect(emptied)
    try:
        connection.add_query_logger(lambda record: sent.append(record.query))
        answer = await inserts.send(connection, waiting, "SELECT unnest($1::text[])", ["asked", "too"])
    finally:
        await connection.close()
    assert [row[0] for row in answer] == ["asked", "too"]
    assert len(sent) == -(-count // _MOST)
    noted = ask(emptied, "SELECT subject FROM change ORDER BY seq")
    assert [subject for (subject,) in noted] == [f"{number}" for number in range(count)]
    assert sum(used for (used,) in ask(emptied, "SELECT used FROM quota_use")) == count


def test_what_changes_the_same_table_comes_behind() -> None:
    waiting = WaitingRows()
    assert not waiting.concern(None)
    _wait(waiting, _SUM, [("ten_a", 1, 1)])
    assert waiting.concern(QUOTA_USE)
    assert waiting.concern(CHANGE.reading(QUOTA_USE))
    assert not waiting.concern(CHANGE)
    assert waiting.concern(None), "it declares nothing, and may be about anything"
    waiting.take()
    assert not waiting.concern(QUOTA_USE)


async def test_tenants_that_join_a_batch_late_or_have_odd_names_are_admitted(shared: PostgresStore) -> None:
    tenants = ["ten_a", "o'neill", "tön", "ten_b", "*", "ten_c"]
    forgetful = Statement("UPDATE quota_use SET used = used + 1", tenant="ten_b")

    async def one(place: int, tenant: str) -> list[int]:
        await asyncio.sleep(place / 2_000)
        if tenant == "*":
            return await shared.write(everyone(QUOTA_USE, "UPDATE quota_use SET used = used"))
        return await shared.write(use(tenant, place), note_change("lists", tenant, "x", 1))

    await asyncio.gather(*(one(place, tenant) for place, tenant in enumerate(tenants * 20)))
    kept = await shared.read(everyone(QUOTA_USE, "SELECT tenant, COUNT(*) FROM quota_use GROUP BY tenant"))
    assert sorted(kept) == sorted((tenant, 20) for tenant in tenants if tenant != "*")
    # Whose rows a batch before this one was about is of no use to it.
    assert await shared.write(forgetful) == [20]


async def test_of_writes_in_one_statement_only_the_guilty_one_fails(shared: PostgresStore) -> None:
    await shared.write(use("ten_a", 7))
    found = await asyncio.gather(
        *(shared.write(use("ten_a", hour), note_change("lists", "ten_a", f"{hour}", 1)) for hour in range(9)),
        return_exceptions=True,
    )
    assert [type(one) for one in found] == [Clash if hour == 7 else list for hour in range(9)]
    noted = await shared.read(everyone(CHANGE, "SELECT subject FROM change ORDER BY seq"))
    assert [subject for (subject,) in noted] == [f"{hour}" for hour in range(9) if hour != 7]
