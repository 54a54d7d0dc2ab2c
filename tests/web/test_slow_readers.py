"""Clients that do not read what they are answered are dropped, and take no room from others meanwhile."""

import socket
import time

import pytest

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.errors import Unavailable
from vettance.limits.connection_shares import ConnectionShares
from vettance.web.answer_room import AnswerRoom
from vettance.web.server import EdgeProtocol

NOTES = "/api/v1/notes"
LARGE = 4_000_000


class ImpatientProtocol(EdgeProtocol):
    look_every_s = 0.2


@pytest.fixture
def notebook():
    return Notebook(unread_bytes_max=2 * LARGE + 100)


@pytest.fixture
def port(notebook):
    with serving(notebook.edge, http=ImpatientProtocol) as port:
        yield port


class LazyClient(RawClient):
    """One whose system takes little of what it does not read."""

    def connect(self):
        self.close()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", self.port))
        self.socket.settimeout(20)


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def read_all(client: RawClient) -> int:
    """Read until the connection ends; returns how many bytes came."""
    count = 0
    try:
        while data := client.socket.recv(1_000_000):
            count += len(data)
    except ConnectionError:
        pass
    client.close()
    return count


@pytest.mark.parametrize("requests", [1, 40])
def test_a_client_that_reads_nothing_is_dropped(notebook, port, requests):
    client = LazyClient(port, notebook.new_key())
    client.send(client.head("GET", f"/api/v1/large/{LARGE}", [], with_key=True) * requests)
    wait_for(lambda: notebook.edge.in_flight == 1)
    wait_for(lambda: notebook.edge.in_flight == 0)
    assert read_all(client) < LARGE


def test_a_client_that_sends_small_requests_and_reads_nothing_is_dropped(notebook, port):
    client = LazyClient(port, notebook.new_key())
    raw = client.head("GET", NOTES, [], with_key=True) * 50
    client.socket or client.connect()
    client.socket.settimeout(5)
    assert client.send_until_closed(raw, 0.001, 20_000) > 1


def test_an_answer_that_ends_its_connection_is_not_kept_for_ever(notebook, port):
    client = LazyClient(port, notebook.new_key())
    client.send(client.head("GET", "/api/v1/large/60000", [("connection", "close")], with_key=True))
    wait_for(lambda: notebook.edge.in_flight == 0)
    time.sleep(1.5)
    assert read_all(client) < 60_000


@pytest.mark.slow
def test_a_client_that_reads_slowly_gets_everything(notebook, port):
    client = LazyClient(port, notebook.new_key())
    client.send(client.head("GET", "/api/v1/large/600000", [], with_key=True) * 2)
    got, client.pending = b"", b""
    while len(got) < 1_200_000:
        piece = client.socket.recv(20_000)
        assert piece, "it was dropped"
        got += piece
        time.sleep(0.02)
    client.close()


def test_large_answers_that_one_tenant_does_not_read_leave_room_for_another(notebook, port):
    key, path = notebook.new_key(), f"/api/v1/large/{LARGE}"
    lazy = [LazyClient(port, key) for _ in range(3)]
    for client in lazy:
        client.send(client.head("GET", path, [], with_key=True))
    own, other = RawClient(port, key), RawClient(port, notebook.new_key())
    wait_for(lambda: notebook.edge.in_flight == 1)
    assert own.ask("GET", path).status == 503
    assert own.ask("GET", NOTES).status == 200
    assert other.ask("GET", path).status == 200
    wait_for(lambda: notebook.edge.in_flight == 0)
    assert own.ask("GET", path).status == 200
    for client in (*lazy, own, other):
        client.close()


@pytest.mark.parametrize("way", ["large", "streamed"])
def test_answers_that_there_is_no_room_for_are_not_built(notebook, port, way):
    key, path = notebook.new_key(), f"/api/v1/{way}/{LARGE}"
    own, lazy = RawClient(port, key), LazyClient(port, key)
    own.send(own.head("GET", path, [("connection", "close")], with_key=True))
    assert read_all(own) > LARGE
    lazy.send(lazy.head("GET", path, [], with_key=True))
    wait_for(lambda: notebook.built == 2)
    assert [own.ask("GET", path).status for _ in range(5)] == [503] * 5
    assert notebook.built == 2
    for client in (own, lazy):
        client.close()


def test_room_is_asked_for_by_the_rows_of_a_page_and_the_size_of_the_last_one():
    room, holders = AnswerRoom(2_500_000), ("ten_1", "key_1")
    assert room.reserve("/events", b"limit=100", holders) == 0
    room.note("/events", b"limit=100", holders, 1_000_000)
    assert room.reserve("/events", b"a=1&limit=50&b=2", holders) == 500_000
    assert room.reserve("/events", b"", holders) == 500_000
    assert room.reserve("/events", b"limit=1", holders) == 0
    assert room.reserve("/lists", b"limit=100", holders) == 0
    assert room.reserve("/events", b"limit=100", ("ten_2", "key_2")) == 0
    with pytest.raises(Unavailable):
        room.reserve("/events", b"limit=100", holders)
    room.give(1_000_000, holders)
    room.note("/events", b"limit=100", holders, 1_000)
    assert room.reserve("/events", b"limit=100", holders) == 0


def test_no_more_is_expected_of_an_answer_than_the_largest_one_had():
    room, holders = AnswerRoom(2_500_000), ("ten_1", "key_1")
    room.note("/events", b"limit=1", holders, 900_000)
    assert room.reserve("/events", b"limit=100", holders) == 900_000, "and not 90 million, for ever refused"
    room.give(900_000, holders)
    room.note("/events", b"limit=100", holders, 1_000_000)
    assert room.reserve("/events", b"limit=100", holders) == 1_000_000


def test_connections_of_one_tenant_leave_some_for_others(notebook):
    shares = ConnectionShares(20, by_address=False)

    class Shared(EdgeProtocol):
        def __init__(self, *args, **named):
            super().__init__(*args, shares=shares, **named)

    with serving(notebook.edge, http=Shared) as port:
        greedy = [RawClient(port, key) for key in [notebook.new_key()] * 12]
        answers = [client.ask("GET", NOTES) for client in greedy]
        assert [answer.status for answer in answers] == [200] * 10 + [503] * 2
        # A refused request costs nothing.
        assert len({answer.headers["x-quota-remaining"] for answer in answers[9:]}) == 1
        assert greedy[-1].is_closed()
        other = RawClient(port, notebook.new_key())
        assert other.ask("GET", NOTES).status == 200
        for client in (*greedy, other):
            client.close()
        wait_for(lambda: shares.open == len(shares.tenants) == 0)


def test_connections_of_one_address_are_bounded_and_given_back(notebook):
    shares = ConnectionShares(20)

    class Shared(EdgeProtocol):
        def __init__(self, *args, **named):
            super().__init__(*args, shares=shares, **named)

    with serving(notebook.edge, http=Shared) as port:
        clients = [RawClient(port) for _ in range(10)]
        assert [client.ask("GET", "/healthz").status for client in clients] == [200] * 10
        beyond = RawClient(port)
        beyond.connect()
        answer = beyond.read()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.error["code"] == "SERVICE_UNAVAILABLE"
        clients.pop().close()
        wait_for(lambda: shares.open == 9)
        assert beyond.ask("GET", "/healthz").status == 200
        for client in (*clients, beyond):
            client.close()
