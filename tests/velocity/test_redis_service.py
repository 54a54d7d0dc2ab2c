"""A whole service on Redis, as its callers see it when Redis is emptied, away and back."""

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, started
from tests.redis_link.redis_server import PrivateRedis

LOGIN = {"eventName": "user.login", "customer": {"externalId": "c1"}, "ip": "203.0.113.9"}
RULES = """
name: counting
rules:
  - id: counting
    name: Counting
    reason: COUNTING
    explanation: Counts.
    when: count(by=ip, within="1h") >= 0
    score: 0
    tests:
      - {name: any, event: {eventName: x, ip: 203.0.113.9}, fires: true}
      - {name: none, event: {eventName: x}, fires: false}
"""


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def on_redis(redis: PrivateRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    service = started(folder, VETTANCE_REDIS_URL=redis.url)
    rules = folder / "rules.yaml"
    rules.write_text(RULES, "utf-8")
    service.cli("rules", "push", str(rules), "--yes", "--tenant", service.tenant_id)
    service.wait_for(lambda: decide(service).json["ruleVersion"]["version"] == "2")
    yield service
    assert service.stop() == 0


def decide(service: Service) -> Any:
    return service.post("/api/v1/decisions/evaluate", LOGIN)


def count_of(service: Service, event_id: str) -> int:
    record = service.get(f"/api/v1/decisions/{event_id}").json
    (count,) = (value for name, value in record["inputs"]["features"].items() if name.startswith("count("))
    return int(count)


def whole(service: Service) -> tuple[str, int]:
    """Decide until the memory is whole; returns the event and how many went before it."""
    until_s = time.monotonic() + 20
    while True:
        answer = decide(service)
        if answer.status == 200 and "degraded" not in answer.json:
            total = service.get("/api/v1/events/stats").json["totalEvents"]
            return answer.json["correlationIds"]["eventId"], total - 1
        assert time.monotonic() < until_s, answer.body
        time.sleep(0.05)


def test_each_of_simultaneous_events_sees_those_before_it(on_redis: Service) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: decide(on_redis).json["correlationIds"]["eventId"], range(60)))
    counts = sorted(count_of(on_redis, event_id) for event_id in made)
    assert counts == list(range(counts[0], counts[0] + 60))


def test_history_is_imported_beside_the_shared_memory_and_joins_it(on_redis: Service, tmp_path: Path) -> None:
    caller = Caller(on_redis, *on_redis.new_tenant("History"))
    (tmp_path / "rules.yaml").write_text(RULES, "utf-8")
    on_redis.cli("rules", "push", str(tmp_path / "rules.yaml"), "--yes", "--tenant", caller.id)
    decided = "/api/v1/decisions/evaluate"
    on_redis.wait_for(lambda: caller.post(decided, LOGIN).json["ruleVersion"]["version"] == "2")
    now = time.time()
    moments = [now - 200 * 86_400 + second for second in range(30)] + [now - 60]
    lines = [json.dumps({"event": LOGIN, "occurredAt": moment}) + "\n" for moment in reversed(moments)]
    (tmp_path / "history.ndjson").write_text("".join(lines))
    on_redis.cli("import", str(tmp_path / "history.ndjson"), "--tenant", caller.id, "--wait", "--json")
    rows = on_redis.rows(
        f"SELECT decision.record FROM event JOIN decision ON decision.id = event.id "
        f"WHERE event.tenant = '{caller.id}' AND event.source = 'import' ORDER BY event.seq"
    )
    assert [json.loads(record)[5][0] for (record,) in rows] == [*range(30), 0]
    before = caller.get("/api/v1/events/stats").json["totalEvents"] - 31
    after = caller.post(decided, LOGIN).json["correlationIds"]["eventId"]
    features = caller.get(f"/api/v1/decisions/{after}").json["inputs"]["features"]
    assert features['count(by=ip, within="1h")'] == before + 1


def test_an_emptied_redis_is_said_and_soon_filled_again(on_redis: Service, redis: PrivateRedis) -> None:
    decide(on_redis)
    redis.command("FLUSHALL")
    answer = decide(on_redis)
    assert answer.status == 200
    assert answer.json["degraded"] is True
    event_id = answer.json["correlationIds"]["eventId"]
    assert on_redis.get(f"/api/v1/decisions/{event_id}").json["outputs"]["degraded"] is True
    event_id, before = whole(on_redis)
    assert count_of(on_redis, event_id) == before
    assert "degraded" not in on_redis.get(f"/api/v1/decisions/{event_id}").json["outputs"]


def test_without_redis_requests_are_refused_and_taken_when_it_is_back(
    on_redis: Service, redis: PrivateRedis
) -> None:
    decide(on_redis)
    redis.stop()
    refused = decide(on_redis)
    assert refused.status == 503
    ready = on_redis.get("/readyz")
    assert ready.status == 503
    assert {one["name"]: one["ok"] for one in ready.json["checks"]}["redis"] is False
    assert refused.json["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert refused.json["error"]["details"]["retryAfter"] >= 1
    redis.start()
    on_redis.wait_for(lambda: decide(on_redis).status == 200, seconds=5)
    event_id, before = whole(on_redis)
    assert count_of(on_redis, event_id) == before


def test_a_redis_that_takes_nothing_is_told(on_redis: Service, redis: PrivateRedis) -> None:
    assert on_redis.get("/readyz").status == 200
    redis.command("CONFIG", "SET", "maxmemory", "1")
    try:
        assert on_redis.get("/readyz").status == 503
        assert decide(on_redis).status == 503
    finally:
        redis.command("CONFIG", "SET", "maxmemory", "0")
    on_redis.wait_for(lambda: decide(on_redis).status == 200, seconds=5)
    assert on_redis.get("/readyz").status == 200


def test_limits_hold_and_a_lost_quota_is_not_given_back(on_redis: Service, redis: PrivateRedis) -> None:
    _, key = on_redis.new_tenant("Small", throttle=10_000, quota=25)
    answers = [on_redis.get("/api/v1/lists", key=key) for _ in range(30)]
    assert [answer.status for answer in answers[-5:]] == [429] * 5
    assert answers[0].headers["x-quota-limit"] == "25"
    # What was counted is written down every five seconds, and given back when Redis knows less.
    on_redis.wait_for(lambda: _saved(on_redis), seconds=15)
    redis.command("FLUSHALL")
    on_redis.wait_for(lambda: on_redis.get("/api/v1/lists", key=key).status == 429, seconds=15)


def _saved(service: Service) -> bool:
    with sqlite3.connect(f"file:{service.data / 'vettance.db'}?mode=ro", uri=True) as store:
        return bool(store.execute("SELECT 1 FROM quota_use WHERE used >= 25").fetchall())
