"""Throttle and quota, as callers meet them."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.live import Service


def test_of_parallel_calls_exactly_the_throttle_passes(service: Service) -> None:
    _, key = service.new_tenant("Throttled", throttle=40)
    used = 40 - int(service.get("/api/v1/lists", key=key).headers["x-ratelimit-remaining"])
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: service.get("/api/v1/lists", key=key), range(120)))
    passed = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status == 429]
    assert len(passed) == 40 - used
    assert len(passed) + len(refused) == 120
    for answer in refused:
        error = answer.json["error"]
        assert error["code"] == "QUOTA_EXCEEDED"
        assert error["details"]["limit"] == 40
        assert error["details"]["window"] == 60
        assert 1 <= error["details"]["retryAfter"] <= 60
        assert answer.headers["retry-after"] == str(error["details"]["retryAfter"])
        assert answer.headers["x-ratelimit-remaining"] == "0"
    remaining = sorted(int(answer.headers["x-ratelimit-remaining"]) for answer in passed)
    assert remaining == list(range(40 - used))


def test_each_key_of_a_tenant_has_a_throttle_of_its_own_and_all_share_the_quota(service: Service) -> None:
    tenant_id, first = service.new_tenant("Two keys", throttle=10, quota=1_000)
    second = service.new_key(tenant_id)
    while service.get("/api/v1/lists", key=first).status == 200:
        pass
    answer = service.get("/api/v1/lists", key=second)
    assert answer.status == 200
    assert int(answer.headers["x-quota-limit"]) - int(answer.headers["x-quota-remaining"]) >= 11


def test_a_used_up_quota_refuses_until_the_hour_of_the_clock_ends(service: Service) -> None:
    if time.time() % 3600 > 3590:
        time.sleep(11)
    _, key = service.new_tenant("Quota", quota=25)
    left = int(service.get("/api/v1/lists", key=key).headers["x-quota-remaining"])
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: service.get("/api/v1/lists", key=key), range(60)))
    assert sum(answer.status == 200 for answer in answers) == left
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.json["error"]["details"]["window"] == 3600
    reset = int(refused.headers["x-quota-reset"])
    assert reset % 3600 == 0
    assert 0 < reset - time.time() <= 3600


def test_every_authenticated_answer_carries_the_limit_headers_errors_too(service: Service) -> None:
    _, key = service.new_tenant("Headers")
    for method, path, status in (
        ("GET", "/api/v1/lists", 200),
        ("GET", "/api/v1/lists?page=0", 400),
        ("POST", "/api/v1/lists", 400),
        ("GET", "/api/v1/decisions/evt_" + "0" * 32, 404),
    ):
        answer = service.call(method, path, b"{}" if method == "POST" else None, key=key)
        assert answer.status == status
        for header in ("x-quota-limit", "x-quota-remaining", "x-quota-reset"):
            assert answer.headers[header].isdigit()
        for header in ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"):
            assert answer.headers[header].isdigit()


def test_the_quota_of_an_hour_survives_a_restart(own_service: Service) -> None:
    if time.time() % 3600 > 3570:
        time.sleep(31)
    tenant_id, key = own_service.new_tenant("Counted", quota=500)
    for _ in range(20):
        own_service.get("/api/v1/lists", key=key)
    before = int(own_service.get("/api/v1/lists", key=key).headers["x-quota-remaining"])
    assert own_service.stop() == 0
    own_service.start()
    after = int(own_service.get("/api/v1/lists", key=key).headers["x-quota-remaining"])
    assert after == before - 1
    assert tenant_id
