"""A private Redis for tests of the shared memory."""

from collections.abc import Iterator

import pytest
from redis_server import PrivateRedis


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    """A server of the test's own."""
    server = PrivateRedis()
    server.start()
    yield server
    server.close()
