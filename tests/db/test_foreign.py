"""Databases as others set them up: what a DBA sets does no harm, what cannot serve is said in one line."""

from collections.abc import Iterator

import asyncpg
import pytest

from tests.databases import SERVER, absence, ask, database, url_of
from tests.db.rows import all_uses, use
from vettance.db import postgres_schema
from vettance.db.engine import StoreDown
from vettance.db.postgres import PostgresStore
from vettance.db.postgres_link import connect, failure, part, unheeded


@pytest.fixture
def empty() -> Iterator[str]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        yield made


async def test_settings_that_a_pooler_drops_are_noticed(empty: str) -> None:
    # What PgBouncer is told to ignore never reaches the server, which answers as if nothing had been asked.
    bare = await asyncpg.connect(empty)
    lost = await unheeded(bare, {"statement_timeout": "8000", "synchronous_commit": "on", "jit": "off"})
    await bare.close()
    assert lost == ["jit", "statement_timeout"]


async def test_what_a_database_sets_for_its_sessions_does_not_reach_ours(empty: str) -> None:
    name = empty.rpartition("/")[2]
    theirs = {
        "statement_timeout": "50ms",
        "lock_timeout": "50ms",
        "idle_session_timeout": "50ms",
        "idle_in_transaction_session_timeout": "50ms",
        "default_transaction_isolation": "serializable",
        "synchronous_commit": "off",
        "search_path": "elsewhere",
    }
    for setting, value in theirs.items():
        ask(SERVER, f"ALTER DATABASE {name} SET {setting} = '{value}'")
    await postgres_schema.migrate(empty)
    connection = await connect(empty, statement_s_max=5, writes=True)
    ours = {setting: await connection.fetchval(f"SHOW {setting}") for setting in theirs}
    await part(connection)
    assert ours == {
        "statement_timeout": "5s",
        "lock_timeout": "0",
        "idle_session_timeout": "0",
        "idle_in_transaction_session_timeout": "4s",
        "default_transaction_isolation": "read committed",
        "synchronous_commit": "on",
        "search_path": "public",
    }
    async with await PostgresStore.open(empty) as store:
        await store.write(use("ten_a", 1))
        assert await store.read(all_uses()) == [("ten_a", 1, 1)]


async def test_an_encoding_that_cannot_hold_every_text_is_refused(empty: str) -> None:
    name = f"{empty.rpartition('/')[2]}_latin"
    ask(SERVER, f"CREATE DATABASE {name} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    try:
        for start in (postgres_schema.migrate, postgres_schema.check, PostgresStore.open):
            with pytest.raises(StoreDown, match=r"encoding LATIN1.*createdb --encoding UTF8"):
                await start(url_of(name))
    finally:
        ask(SERVER, f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_database_without_a_connection_left_says_so(empty: str) -> None:
    name = empty.rpartition("/")[2]
    role = f"{name}_user"
    ask(SERVER, f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    try:
        with pytest.raises(StoreDown, match="no connection left"):
            await connect(empty.replace("postgres@", f"{role}@"), statement_s_max=5, writes=False)
    finally:
        ask(SERVER, f"DROP ROLE {role}")


async def test_an_extension_that_is_not_there_is_called_by_its_name(empty: str) -> None:
    connection = await connect(empty, statement_s_max=5, writes=True)
    with pytest.raises(Exception, match="not available") as refused:
        await connection.execute("CREATE EXTENSION nowhere")
    await part(connection)
    assert "nowhere" in str(failure(refused.value))
