"""What is away is told to the log once when it goes, now and then while it lasts, and when it is back."""

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.databases import SERVER, absence, ask, database
from tests.live import Service, started
from tests.redis_link.redis_server import PrivateRedis
from vettance.db.postgres_link import ROLE
from vettance.telemetry.outages import SETTLED_S, TELL_S, Outage

LOGIN = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "c-1", "email": "eve@example.com"},
}


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def told(lines: list[Any]) -> list[tuple[str, float | None]]:
    return [(line["event"], line.get("down_s")) for line in lines]


def test_what_stays_away_is_told_when_it_goes_and_once_a_minute_and_when_it_is_back() -> None:
    clock = Clock()
    outage = Outage("store", clock)
    with capture_logs() as lines:
        for _ in range(250):
            outage.down("PostgreSQL cannot be reached")
            clock.now_s += 0.5
        for _ in range(20):
            outage.up()
            clock.now_s += 0.5
    assert told(lines) == [
        ("store_down", None),
        ("store_still_down", TELL_S),
        ("store_still_down", 2 * TELL_S),
        ("store_back", 125.0),
    ]
    assert {line["log_level"] for line in lines} == {"warning"}
    assert all(line["reason"] for line in lines[:-1])


def test_what_answers_every_other_time_is_not_back() -> None:
    clock = Clock()
    outage = Outage("redis", clock)
    with capture_logs() as lines:
        for _ in range(50):
            outage.down("Redis cannot be reached")
            outage.up()
            clock.now_s += SETTLED_S / 2
            outage.up()
    assert told(lines) == [("redis_down", None), ("redis_still_down", pytest.approx(TELL_S, abs=SETTLED_S))]


def test_what_answers_is_not_told() -> None:
    outage = Outage("store")
    with capture_logs() as lines:
        outage.up()
    assert not lines


def said(service: Service, event: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in tuple(service.log) if line.startswith("{"))
    return [line for line in lines if line["event"] == event]


def refuse_for(service: Service, seconds: float) -> None:
    """Ask a service that has lost something, for some time; it refuses as the contract has it."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        answer = service.post("/api/v1/decisions/evaluate", LOGIN)
        assert (answer.status, answer.json["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")


def insist_told(service: Service, what: str, processes: int = 1) -> None:
    """See that each process has told of one outage, and that nothing else was said of it."""
    service.wait_for(lambda: len(said(service, f"{what}_back")) == processes, 30)
    down, back = said(service, f"{what}_down"), said(service, f"{what}_back")
    assert len({line["pid"] for line in down}) == len(down) == processes
    assert {line["pid"] for line in back} == {line["pid"] for line in down}
    assert all(line["down_s"] > 0 for line in back)
    lines = [json.loads(line) for line in service.log if line.startswith("{")]
    started_at = lines.index(down[0])
    fine = (f"{what}_down", f"{what}_back", "memory_filled", "webhook_claim_in_doubt")
    assert not [line for line in lines[started_at:] if line["event"] not in fine]


def subscribe(service: Service) -> None:
    """Have the service begin the process that delivers."""
    hook = {"url": "http://127.0.0.1:9/nobody", "eventTypes": ["EVENT_RISK_EVALUATED"]}
    assert service.post("/api/v1/webhooks/subscriptions", hook).status == 201


@pytest.fixture
def on_database(tmp_path: Path) -> Iterator[Service]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        service = started(tmp_path, VETTANCE_DATABASE_URL=url, VETTANCE_UNSAFE_WEBHOOKS="1")
        yield service
        assert service.stop() == 0


@pytest.mark.slow
def test_a_database_that_is_away_is_told_once_by_each_process(on_database: Service) -> None:
    name = on_database.env["VETTANCE_DATABASE_URL"].rpartition("/")[2]
    subscribe(on_database)
    connections = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
    before = ask(SERVER, connections)
    on_database.wait_for(lambda: ask(SERVER, connections) > before, 20)
    ask(SERVER, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    ask(SERVER, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    refuse_for(on_database, 3)
    ask(SERVER, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    insist_told(on_database, "store", processes=2)
    assert on_database.post("/api/v1/decisions/evaluate", LOGIN).status == 200


@pytest.mark.slow
def test_a_database_that_takes_no_writes_is_told_once_and_not_ready_all_the_while(
    on_database: Service,
) -> None:
    url = on_database.env["VETTANCE_DATABASE_URL"]
    name = url.rpartition("/")[2]
    ask(SERVER, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    ask(SERVER, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    # What ended is noticed by who writes next.
    assert on_database.post("/api/v1/decisions/evaluate", LOGIN).status == 503
    on_database.wait_for(lambda: on_database.get("/readyz").status == 503)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert on_database.post("/api/v1/decisions/evaluate", LOGIN).status == 503
        assert on_database.get("/readyz").status == 503
    ask(SERVER, f"ALTER DATABASE {name} RESET default_transaction_read_only")
    insist_told(on_database, "store")
    assert on_database.post("/api/v1/decisions/evaluate", LOGIN).status == 200
    assert ask(url, "SELECT count(*) FROM event") == [(1,)]


@pytest.mark.slow
def test_a_right_that_was_taken_away_is_told_once_and_nothing_is_lost(on_database: Service) -> None:
    url = on_database.env["VETTANCE_DATABASE_URL"]
    ask(url, f"REVOKE INSERT ON event FROM {ROLE}")
    refuse_for(on_database, 2)
    on_database.wait_for(lambda: on_database.get("/readyz").status == 503)
    ask(url, f"GRANT INSERT ON event TO {ROLE}")
    insist_told(on_database, "store")
    assert on_database.post("/api/v1/decisions/evaluate", LOGIN).status == 200
    assert ask(url, "SELECT count(*) FROM event") == [(1,)]
    assert "event" in said(on_database, "store_down")[0]["reason"]


@pytest.mark.slow
def test_a_redis_that_is_away_is_told_once(tmp_path: Path) -> None:
    redis = PrivateRedis()
    redis.start()
    service = started(tmp_path, VETTANCE_REDIS_URL=redis.url)
    redis.stop()
    refuse_for(service, 3)
    redis.start()
    insist_told(service, "redis")
    assert service.stop() == 0
    redis.close()


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_told_once(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_DATABASE_URL="")
    writer = writer_of(service)
    _, hard = resource.prlimit(writer, resource.RLIMIT_FSIZE)
    # The log of the store cannot grow beyond what it has.
    size = (tmp_path / "vettance.db-wal").stat().st_size
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, hard))
    service.wait_for(lambda: service.post("/api/v1/decisions/evaluate", LOGIN).status == 503)
    refuse_for(service, 2)
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    insist_told(service, "store")
    assert service.stop() == 0


def writer_of(service: Service) -> int:
    assert service.process is not None
    tasks = Path(f"/proc/{service.process.pid}/task").glob("*/children")
    children = [int(one) for file in tasks for one in file.read_text().split()]
    (writer,) = [one for one in children if b"db.writer" in Path(f"/proc/{one}/cmdline").read_bytes()]
    return writer
