"""Searches go by the indexes made for them; a plan that reads every term would still answer, only late."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.databases import absence, database
from vettance.db import postgres_schema
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.terms.sql import scan_terms, select_terms


def test_texts_with_a_folded_case_of_their_own_are_found_by_their_index(tmp_path: Path) -> None:
    file = tmp_path / "vettance.db"
    migrate(file)
    asked = scan_terms("ten_" + "0" * 32, "ß")
    with closing(sqlite3.connect(file)) as connection:
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + asked.sql, asked.args)]
    assert any("term_folded" in step for step in plan), plan


async def test_postgres_looks_each_text_up_by_the_index_of_digests() -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    asked = select_terms("ten_" + "0" * 32, ["one", "back\\slash"]).postgres
    assert asked is not None
    with database() as url:
        await postgres_schema.migrate(url)
        async with await PostgresStore.open(url) as store:
            plan = await store.read(asked._replace(sql="EXPLAIN " + asked.sql))
    steps = [step for (step,) in plan]
    assert any("Index Scan using term_of_text" in step for step in steps), steps
    assert any("Index Cond" in step and "wanted.digest" in step for step in steps), steps
