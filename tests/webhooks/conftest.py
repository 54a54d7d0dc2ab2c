"""Fixtures of the webhook tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.webhooks.office import Office
from vettance.db.sqlite import SqliteStore, store_path


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as store:
        await store.migrate()
        office = Office(store)
        yield office
        await office.end()
