"""A migrated store in a temporary folder, once with each seat of the writer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store_path(tmp_path / "data")


@pytest.fixture(params=["thread", "process"])
async def store(path: Path, request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore]:
    migrate(path)
    async with await SqliteStore.open(path, writer=request.param) as opened:
        yield opened


@pytest.fixture
async def served(path: Path) -> AsyncIterator[SqliteStore]:
    """A store whose writer is a process of its own."""
    migrate(path)
    async with await SqliteStore.open(path, writer="process") as opened:
        yield opened
