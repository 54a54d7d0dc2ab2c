"""A store with a past, once of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import absence, database
from tests.history.past import Archive


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    """A store of its own for a test, once of each kind."""
    if request.param == "sqlite":
        made = Archive(tmp_path)
        yield made
        made.close()
        return
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        made = Archive(tmp_path, url)
        yield made
        made.close()
