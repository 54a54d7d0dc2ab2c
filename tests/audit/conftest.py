"""A store of each engine for the tests of the log."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.databases import absence, database, run_beside
from vettance.db import postgres_schema
from vettance.db.engine import Store
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path

_numbers = itertools.count()


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        run_beside(lambda: postgres_schema.migrate(made))
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "postgres":
        async with await PostgresStore.open(request.getfixturevalue("url")) as opened:
            yield opened
        return
    migrate(store_path(tmp_path))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as embedded:
        yield embedded


@pytest.fixture
def tenant() -> str:
    """A tenant without entries yet."""
    return f"ten_{next(_numbers)}"
