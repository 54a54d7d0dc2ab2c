"""A broker of each kind that runs here, and a service on a data folder of its own."""

from collections.abc import Iterator

import pytest

from tests.streams.brokers import Broker, absence, broker


@pytest.fixture(params=["nats", "amqp", "kafka"])
def places(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Places of the test's own at a broker."""
    if (reason := absence(request.param)) is not None:
        pytest.skip(reason)
    one = broker(request.param)
    one.open()
    try:
        yield one
    finally:
        one.close()
