"""A tenant with many stalled connections, at a real service: another one's requests do not notice."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from tests.live import Caller, Service
from tests.web.raw_client import RawClient
from vettance.wire.payload import BODY_BYTES_MAX

#: More than the room for large bodies has place for, of one mebibyte each.
STALLED = 169
EVALUATE = "/api/v1/decisions/evaluate"
SMALL = {"eventName": "x", "metadata": {"note": "y" * 20_000}}


@contextlib.contextmanager
def stalled(port: int, key: str, count: int) -> Iterator[list[RawClient]]:
    """Open connections with a body each of which all but the last byte has been sent."""
    clients = [RawClient(port, key) for _ in range(count)]
    body = b'{"eventName":"x","ballast":"' + b"y" * (BODY_BYTES_MAX - 30)
    headers = [("content-type", "application/json"), ("content-length", str(BODY_BYTES_MAX))]
    try:
        for client in clients:
            # Those refused are told while they still send.
            with contextlib.suppress(ConnectionError):
                client.send(client.head("POST", EVALUATE, headers, with_key=True) + body)
        yield clients
    finally:
        for client in clients:
            client.close()


@pytest.fixture
def port(service: Service) -> int:
    return int(service.base_url.rpartition(":")[2])


def test_stalled_bodies_of_one_tenant_leave_the_requests_of_another_alone(
    service: Service, port: int
) -> None:
    greedy = Caller(service, *service.new_tenant("Greedy"))
    other = Caller(service, *service.new_tenant("Other"))
    with stalled(port, greedy.key, STALLED) as clients:
        assert {other.post(EVALUATE, SMALL).status for _ in range(200)} == {200}
        large = {f: {"text": "y" * 30_000} for f in ("metadata", "payload", "custom_fields", "location")}
        assert {other.post(EVALUATE, {"eventName": "x", **large}).status for _ in range(20)} == {200}
        # The tenant itself is held up with large bodies only.
        assert {greedy.post(EVALUATE, SMALL).status for _ in range(20)} == {200}
        refused = 0
        for client in clients:
            client.socket.settimeout(0.02)
            with contextlib.suppress(TimeoutError, ConnectionError, socket.error):
                refused += client.read().status == 503
        assert 100 < refused < STALLED
