"""A migrated store, once of each kind: the embedded one with each seat of its writer, and PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.databases import absence, ask, database, run_beside
from vettance.db import postgres_schema
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store_path(tmp_path / "data")


@pytest.fixture(params=["thread", "process"])
async def embedded(path: Path, request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore]:
    migrate(path)
    async with await SqliteStore.open(path, writer=request.param) as opened:
        yield opened


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A migrated database, for tests that leave the rows of others alone."""
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        run_beside(lambda: postgres_schema.migrate(made))
        yield made


@pytest.fixture
def emptied(url: str) -> str:
    """The same, without rows."""
    tables = ask(
        url,
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace AND relname NOT IN ('schema_version', 'term_epoch')",
    )
    ask(url, f"TRUNCATE {', '.join(name for (name,) in tables)} RESTART IDENTITY")
    ask(url, "SELECT setval('event_seq', 1, false), setval('decision_seq', 1, false)")
    return url


@pytest.fixture(params=["thread", "process", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore | PostgresStore]:
    if request.param == "postgres":
        async with await PostgresStore.open(request.getfixturevalue("emptied")) as opened:
            yield opened
        return
    path = request.getfixturevalue("path")
    migrate(path)
    async with await SqliteStore.open(path, writer=request.param) as embedded:
        yield embedded


@pytest.fixture
async def served(path: Path) -> AsyncIterator[SqliteStore]:
    """A store whose writer is a process of its own."""
    migrate(path)
    async with await SqliteStore.open(path, writer="process") as opened:
        yield opened


@pytest.fixture
async def shared(emptied: str) -> AsyncIterator[PostgresStore]:
    async with await PostgresStore.open(emptied) as opened:
        yield opened
