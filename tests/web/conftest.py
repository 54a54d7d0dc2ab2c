"""A running sample service, and a raw client with a key of its own tenant."""

import pytest

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving


@pytest.fixture(scope="session")
def notebook():
    return Notebook()


@pytest.fixture(scope="session")
def port(notebook):
    with serving(notebook.edge) as port:
        yield port


@pytest.fixture
def client(notebook, port):
    """A client of a new tenant with generous limits."""
    client = RawClient(port, notebook.new_key())
    yield client
    client.close()
    assert not notebook.errors, notebook.errors
