"""What a tenant may have of webhooks at a time, and that it gets its part whatever others do."""

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.live import Answer, Caller, Service, started
from tests.webhooks.sink import Sink, sinking
from vettance.tenants.tenant import SUBSCRIPTIONS_DEFAULT

ROOT = "/api/v1/webhooks/subscriptions"
KIND = "BLOCKLIST_ENTRY_ADDED"


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """A name server that never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory, silent: str) -> Iterator[Service]:
    """A service that may deliver to this machine, and whose name server is silent."""
    folder = tmp_path_factory.mktemp("limits")
    running = started(folder, VETTANCE_UNSAFE_WEBHOOKS="1", VETTANCE_NAME_SERVERS=silent)
    yield running
    assert running.stop() == 0


@pytest.fixture
def mine(unsafe: Service) -> Caller:
    return Caller(unsafe, *unsafe.new_tenant())


@pytest.fixture
def sink() -> Iterator[Sink]:
    with sinking() as running:
        yield running


class Hanging:
    """A receiver that takes connections and never says anything."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=32)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.taken: list[socket.socket] = []

    def wait_for(self, count: int) -> None:
        self.listener.settimeout(5)
        while len(self.taken) < count:
            self.taken.append(self.listener.accept()[0])

    def end(self) -> None:
        for one in self.taken:
            one.close()
        self.listener.close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    receiver = Hanging()
    yield receiver
    receiver.end()


def subscribe(caller: Caller, url: str) -> Answer:
    return caller.post(ROOT, {"url": url, "eventTypes": [KIND]})


def test_a_tenant_has_so_many_subscriptions_and_is_told_so_at_the_next(mine: Caller) -> None:
    for number in range(SUBSCRIPTIONS_DEFAULT):
        assert subscribe(mine, f"http://127.0.0.1:9/{number}").status == 201
    refused = subscribe(mine, "http://127.0.0.1:9/more")
    assert refused.status == 409
    assert refused.json["error"]["code"] == "CONFLICT"
    assert refused.json["error"]["details"] == {
        "reason": "too_many_subscriptions",
        "limit": SUBSCRIPTIONS_DEFAULT,
    }
    assert "may have 25" in refused.json["error"]["message"]
    one = mine.get(ROOT).json["subscriptions"][0]
    assert mine.delete(f"{ROOT}/{one['id']}").status == 200
    assert subscribe(mine, "http://127.0.0.1:9/more").status == 201


def test_the_limit_is_a_setting_of_the_tenant(unsafe: Service) -> None:
    mine = Caller(unsafe, *unsafe.new_tenant(subscriptions=2))
    answers = [subscribe(mine, "http://127.0.0.1:9/").status for _ in range(3)]
    assert answers == [201, 201, 409]


def test_many_who_subscribe_at_once_do_not_get_beyond_the_limit(mine: Caller) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: subscribe(mine, f"http://127.0.0.1:9/{n}").status, range(40)))
    assert made.count(201) == len(mine.get(ROOT).json["subscriptions"]) <= SUBSCRIPTIONS_DEFAULT


def test_slow_tests_of_one_tenant_are_few_and_hold_up_nobody_elses(
    mine: Caller, unsafe: Service, hanging: Hanging, sink: Sink
) -> None:
    slow = subscribe(mine, hanging.url).json["id"]
    other = Caller(unsafe, *unsafe.new_tenant())
    quick = subscribe(other, sink.url).json["id"]
    with ThreadPoolExecutor(4) as threads:
        under_way: list[Future[Answer]] = [
            threads.submit(mine.post, f"{ROOT}/{slow}/test", None) for _ in range(4)
        ]
        hanging.wait_for(4)
        refused = mine.post(f"{ROOT}/{slow}/test", None)
        assert refused.status == 429
        assert refused.json["error"]["details"]["limit"] == 4
        assert refused.json["error"]["details"]["retryAfter"] == 1
        assert "under way" in refused.json["error"]["message"]
        assert other.post(f"{ROOT}/{quick}/test", None).json["success"]
        hanging.end()
        for one in under_way:
            assert one.result().json == {
                "success": False,
                "statusCode": 0,
                "message": "The receiver closed the connection without an answer.",
            }
    assert mine.post(f"{ROOT}/{slow}/test", None).status == 200


def test_a_test_says_that_the_name_was_not_found_and_not_that_the_receiver_was_slow(mine: Caller) -> None:
    made = subscribe(mine, "http://hooks.example.com/").json["id"]
    answer = mine.post(f"{ROOT}/{made}/test", None)
    assert answer.json == {
        "success": False,
        "statusCode": 0,
        "message": "The receiver's name could not be resolved.",
    }
