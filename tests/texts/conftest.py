"""A service on each store, for tests of what texts of any length and script become."""

import signal
from collections.abc import Iterator

import pytest

from tests.databases import absence, database
from tests.live import Caller, Service, started


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a loaded watchlist, once on each store."""
    folder = tmp_path_factory.mktemp("either")
    if request.param == "sqlite":
        yield from _serving(started(folder))
        return
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        yield from _serving(started(folder, VETTANCE_DATABASE_URL=url))


def _serving(service: Service) -> Iterator[Service]:
    service.cli("watchlist", "import", "--source", "sample", "--json")
    yield service
    if service.process is not None:
        service.stop(signal.SIGKILL)


@pytest.fixture
def caller(either: Service) -> Caller:
    """A tenant of its own, with the AML product."""
    tenant = Caller(either, *either.new_tenant("Texts"))
    either.cli("tenant", "set", tenant.id, "--aml", "on", "--json")
    asked = {"inputName": "Nobody", "externalId": "n-1"}
    either.wait_for(lambda: tenant.post("/api/v1/aml/screen", asked).status == 200)
    return tenant
