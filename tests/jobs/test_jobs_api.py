"""Events accepted for later: the endpoints, the order, bursts, poison and crashes."""

import itertools
import signal
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.databases import ask
from tests.live import Answer, Caller, Service

_numbers = itertools.count(1)
ASYNC = "/api/v1/events/async"


def accept(tenant: Caller, **event: Any) -> str:
    answer = tenant.post(ASYNC, {"eventName": "user.login", **event})
    assert answer.status == 202, answer.body
    job_id: str = answer.json["jobId"]
    return job_id


def job(tenant: Caller, job_id: str) -> Any:
    answer = tenant.get(f"/api/v1/events/jobs/{job_id}")
    assert answer.status == 200, answer.body
    return answer.json


def settled(tenant: Caller, job_id: str, seconds: float = 20.0) -> Any:
    until = time.monotonic() + seconds
    while (found := job(tenant, job_id))["status"] in ("accepted", "processing"):
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


def poison(service: Service, tenant_id: str, sent: bytes) -> str:
    """Put a job into the store that no door would have accepted."""
    job_id = f"job_{next(_numbers):032x}"
    if url := service.env.get("VETTANCE_DATABASE_URL"):
        ask(
            url,
            "INSERT INTO job (id, tenant, received_at_ms, request_id, quiet, sent, state) "
            "VALUES ($1, $2, $3, 'r', 0, $4, 'accepted')",
            *(job_id, tenant_id, time.time_ns() // 1_000_000, sent),
        )
        return job_id
    with closing(sqlite3.connect(service.data / "vettance.db", timeout=10)) as connection, connection:
        connection.execute(
            "INSERT INTO job (id, tenant, received_at_ms, request_id, quiet, sent, state) "
            "VALUES (?, ?, ?, 'r', 0, ?, 'accepted')",
            (job_id, tenant_id, time.time_ns() // 1_000_000, sent),
        )
    return job_id


def test_an_event_is_accepted_then_decided_and_found(tenant: Caller) -> None:
    answer = tenant.post(ASYNC, {"eventName": "user.login", "customer": {"externalId": "async-1"}})
    assert answer.status == 202
    assert set(answer.json) == {"status", "jobId", "eventName", "receivedAt", "message"}
    assert (answer.json["status"], answer.json["eventName"]) == ("accepted", "user.login")
    done = settled(tenant, answer.json["jobId"])
    assert (done["status"], done["error"]) == ("completed", None)
    event = tenant.get(f"/api/v1/events/{done['eventId']}").json
    assert (event["source"], event["receivedAt"]) == ("async", answer.json["receivedAt"])
    assert event["customer"] == {"externalId": "async-1"}


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"eventName": 7}, 400), (b"{", 400), ({"eventName": "e", "occurredAt": "1999-01-01"}, 422)],
)
def test_a_bad_event_is_refused_at_once(tenant: Caller, body: Any, status: int) -> None:
    assert tenant.post(ASYNC, body).status == status


def test_a_job_of_another_tenant_is_not_found(tenant: Caller, other: Caller) -> None:
    job_id = accept(tenant)
    foreign, absent = other.get(f"/api/v1/events/jobs/{job_id}"), other.get("/api/v1/events/jobs/job_1")
    assert foreign.status == absent.status == 404
    assert foreign.json == absent.json


def test_without_a_key_nothing_is_accepted(service: Service) -> None:
    assert service.post(ASYNC, {"eventName": "e"}, key=None).status == 401


def test_a_retry_with_the_same_key_makes_no_second_job(tenant: Caller) -> None:
    headers = {"Idempotency-Key": "one"}
    first = tenant.post(ASYNC, {"eventName": "e"}, headers=headers)
    assert tenant.post(ASYNC, {"eventName": "e"}, headers=headers).body == first.body


def test_a_poisonous_event_fails_alone_and_says_why(tenant: Caller, service: Service) -> None:
    bad = [poison(service, tenant.id, sent) for sent in (b"not json", b'{"eventName": 7}', b"[]")]
    good = accept(tenant)
    assert settled(tenant, good)["status"] == "completed"
    for job_id in bad:
        failed = settled(tenant, job_id)
        assert failed["status"] == "failed"
        assert failed["eventId"] is None
        assert set(failed["error"]) == {"code", "message", "details"}


def test_each_customers_events_are_decided_in_the_order_of_their_receipt(tenant: Caller) -> None:
    jobs = [accept(tenant, customer={"externalId": f"order-{number % 3}"}) for number in range(60)]
    events = [settled(tenant, job_id)["eventId"] for job_id in jobs]
    assert events == sorted(events)


def log(service: Service) -> list[tuple[str, bytes]]:
    if url := service.env.get("VETTANCE_DATABASE_URL"):
        return ask(url, "SELECT id, sent FROM event ORDER BY seq")
    with closing(sqlite3.connect(service.data / "vettance.db", timeout=10)) as connection:
        return connection.execute("SELECT id, sent FROM event ORDER BY seq").fetchall()


def burst(caller: Caller, numbers: Sequence[int]) -> dict[int, str]:
    """Send events at once from some threads; returns the jobs that were acknowledged."""
    jobs: dict[int, str] = {}

    def send(number: int) -> None:
        try:
            answer: Answer = caller.post(ASYNC, {"eventName": "burst", "metadata": {"number": number}})
        except OSError:
            return
        if answer.status == 202:
            jobs[number] = answer.json["jobId"]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, numbers))
    return jobs


@pytest.mark.slow
def test_every_acknowledged_event_is_decided_exactly_once_across_kills(own_service: Service) -> None:
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    jobs: dict[int, str] = {}
    for round_ in range(3):
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(burst, caller, range(round_ * 500, round_ * 500 + 500))
            time.sleep(0.4)
            own_service.stop(signal.SIGKILL)
            jobs.update(sending.result())
        own_service.start()
        caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    done = {job_id: settled(caller, job_id) for job_id in jobs.values()}
    assert len(jobs) > 10
    assert {one["status"] for one in done.values()} == {"completed"}
    assert len({one["eventId"] for one in done.values()}) == len(jobs)
    sent = [body for _, body in log(own_service)]
    assert len(sent) == len(set(sent)), "an event was decided twice"
    kept = {event_id for event_id, _ in log(own_service)}
    assert {one["eventId"] for one in done.values()} <= kept


def pile_up(service: Service, tenant_id: str, count: int) -> None:
    """Have many events of a tenant wait, as a burst leaves them."""
    at_ms, start = time.time_ns() // 1_000_000, next(_numbers) * 10**12
    columns = "id, tenant, received_at_ms, request_id, quiet, sent, state"
    if service.env.get("VETTANCE_DATABASE_URL"):
        service.rows(
            f"INSERT INTO job ({columns}) SELECT 'job_' || lpad(({start} + n)::text, 32, '0'), "
            f"'{tenant_id}', {at_ms}, 'r', 0, convert_to('{{\"eventName\": \"x\"}}', 'UTF8'), 'accepted' "
            f"FROM generate_series(1, {count}) AS n RETURNING 1"
        )
        return
    service.rows(
        f"WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {count}) "
        f"INSERT INTO job ({columns}) SELECT 'job_' || printf('%032d', {start} + n), '{tenant_id}', {at_ms}, "
        "'r', 0, CAST('{\"eventName\": \"x\"}' AS BLOB), 'accepted' FROM counted"
    )


def waiting(service: Service, tenant_id: str) -> int:
    ((count,),) = service.rows(
        f"SELECT COUNT(*) FROM job WHERE tenant = '{tenant_id}' AND state = 'accepted'"
    )
    return int(count)


def test_a_tenants_backlog_delays_no_other_tenant(own_service: Service) -> None:
    busy, quick = own_service.new_tenant("Busy")[0], Caller(own_service, *own_service.new_tenant("Quick"))
    pile_up(own_service, busy, 20_000)
    own_service.wait_for(lambda: waiting(own_service, busy) < 20_000)
    found = settled(quick, accept(quick))
    assert found["status"] == "completed"
    assert waiting(own_service, busy) > 5_000
    own_service.wait_for(lambda: waiting(own_service, busy) == 0, 100)


def test_beyond_its_bound_a_backlog_takes_no_more(own_service: Service) -> None:
    full, other = (Caller(own_service, *own_service.new_tenant(name)) for name in ("Full", "Other"))
    pile_up(own_service, full.id, 130_000)
    refused = full.post(ASYNC, {"eventName": "x"})
    assert refused.status == 503
    assert refused.headers["retry-after"] == "10"
    assert refused.json["error"]["details"] == {"retryAfter": 10}
    assert other.post(ASYNC, {"eventName": "x"}).status == 202
