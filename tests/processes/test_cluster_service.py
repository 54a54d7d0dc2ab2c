"""The whole service on a Redis Cluster: counts stay exact while slots move, and when a master dies."""

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import absence, ask, database
from tests.live import Service
from tests.processes.test_several_processes import Deployment
from tests.redis_link.redis_cluster import PrivateCluster, until
from vettance.redis_link.cluster_connection import slot_of

pytestmark = pytest.mark.slow

ADDRESSES = [f"203.0.113.{number}" for number in range(1, 9)]
SEEN_MAX = 40

Answered = tuple[str, int, int | None]


def counting_rules() -> str:
    """One rule for each number of earlier events of an address, whose reason says it."""
    event = "{eventName: user.login, ip: 198.51.100.7}"

    def given(count: int) -> str:
        past = f"{event[:-1]}, at: -5m, repeat: {count}, every: 1s}}"
        return f"given: [{past}], " if count else ""

    rules = "".join(
        f"""
  - id: seen-{seen}
    when: count(by=ip, within="1d") == {seen}
    name: Seen {seen}
    score: 1
    reason: SEEN_{seen}
    explanation: It is known so often.
    tests:
      - {{name: so often, {given(seen)}event: {event}, fires: true}}
      - {{name: once more, {given(seen + 1)}event: {event}, fires: false}}
"""
        for seen in range(SEEN_MAX)
    )
    return f"name: counting\nrules:{rules}"


@pytest.fixture
def shards() -> Iterator[PrivateCluster]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    cluster = PrivateCluster(replicas=1, timeout_ms=2_000)
    yield cluster
    cluster.close()


@pytest.fixture
def two(shards: PrivateCluster, tmp_path: Path) -> Iterator[tuple[Service, Service]]:
    """Two servers that count how often they have seen an address."""
    document = tmp_path / "counting.yaml"
    document.write_text(counting_rules(), "utf-8")
    with database() as url:
        made = Deployment(tmp_path / "data", url, shards)
        first = made.start()
        first.cli("rules", "push", str(document), "--yes", "--tenant", made.tenant_id)
        yield first, made.start("--role", "web")
        for service in made.running:
            if service.process is not None:
                assert service.stop() == 0


def decide(service: Service, address: str) -> Answered:
    """Have a server decide about an address: (address, status, how often it was known before).

    None where it was refused, or answered without being sure (`degraded`).
    """
    body = {"eventName": "user.login", "eventCategory": "AUTHENTICATION", "ip": address}
    answer = service.post("/api/v1/decisions/evaluate", body)
    if answer.status != 200 or "degraded" in answer.json:
        return address, answer.status, None
    (code,) = [reason["code"] for reason in answer.json["reasonCodes"] if reason["code"].startswith("SEEN_")]
    return address, 200, int(code.removeprefix("SEEN_"))


def is_like_the_log(service: Service, address: str) -> bool:
    """Tell whether a server knows an address as often as decisions about it are stored."""
    url = service.env["VETTANCE_DATABASE_URL"]
    ((stored,),) = ask(url, f"SELECT count(*) FROM decision WHERE ip = '{address}'")
    return decide(service, address)[2] == stored


@contextlib.contextmanager
def load(two: tuple[Service, Service], answered: list[Answered]) -> Iterator[None]:
    """Have both servers decide, three callers each, until the block ends."""
    over = threading.Event()

    def go_on(turn: int) -> None:
        for number in itertools.count(turn):
            if over.is_set():
                return
            answered.append(decide(two[turn % 2], ADDRESSES[number * 5 % len(ADDRESSES)]))
            over.wait(0.15)

    callers = [threading.Thread(target=go_on, args=(turn,)) for turn in range(6)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        over.set()
        for caller in callers:
            caller.join()


def assert_each_saw_those_before(answered: list[Answered]) -> None:
    """The k-th event of an address saw k − 1 before it, whichever server decided it."""
    for address in ADDRESSES:
        seen = sorted(known for one, _, known in answered if one == address and known is not None)
        assert seen == [*range(len(seen))], address


def test_counts_of_a_cluster_are_exact_over_two_servers_while_every_slot_of_a_tenant_moves(
    two: tuple[Service, Service], shards: PrivateCluster
) -> None:
    answered: list[Answered] = []
    with load(two, answered):
        until(lambda: len(answered) > 30)
        keys = [key for node in shards.masters for key in node.tell("KEYS", "vettance:*")]
        for slot in {slot_of(key) for key in keys}:
            source = shards.owner(slot)
            to = shards.masters[(shards.masters.index(source) + 1) % len(shards.masters)]
            shards.move(slot, to, 0.02)
    assert Counter(status for _, status, _ in answered) == {200: len(answered)}
    assert None not in [known for _, _, known in answered]
    assert_each_saw_those_before(answered)


def test_a_master_that_dies_refuses_for_a_while_and_costs_no_count(
    two: tuple[Service, Service], shards: PrivateCluster
) -> None:
    answered: list[Answered] = []
    with load(two, answered):
        until(lambda: len(answered) > 30)
        victim = shards.masters[1]
        slot = next(slot_of(key) for key in victim.tell("KEYS", "vettance:*"))
        victim.kill()
        until(lambda: shards.owner(slot) is not victim)
        before = len(answered)
        until(lambda: [status for _, status, _ in answered[before:]].count(200) > 30)
    assert {status for _, status, _ in answered} <= {200, 503}
    for address in ADDRESSES:
        known = [known for one, _, known in answered if one == address and known is not None]
        assert len(known) == len(set(known)), address
    # What the dead master had not passed on is filled in from the log.
    for service in two:
        for address in ADDRESSES:
            service.wait_for(lambda at=service, one=address: is_like_the_log(at, one), seconds=60)
