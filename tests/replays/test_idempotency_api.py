"""What a retry with the same `Idempotency-Key` gets, at a running service."""

import itertools
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.live import Answer, Caller, Service

_numbers = itertools.count(1)
EVENT = {"eventName": "payment.attempt", "customer": {"externalId": "c1"}}


def keyed(tenant: Caller, path: str, body: Any, key: str) -> Answer:
    return tenant.post(path, body, headers={"Idempotency-Key": key})


def fresh_key() -> str:
    return f"key {next(_numbers)}"


def events(tenant: Caller, marker: str) -> int:
    """Count the events of a customer as the memory of a rule-free decision knows them."""
    answer = tenant.post("/api/v1/events", {"eventName": "look", "customer": {"externalId": marker}})
    found = tenant.get(f"/api/v1/decisions/{answer.json['eventId']}").json
    count: int = found["linkedEntities"]["customer"]["events"]
    return count - 1


@pytest.mark.parametrize("path", ["/api/v1/decisions/evaluate", "/api/v1/events", "/api/v1/events/ingest"])
def test_a_retry_makes_no_second_event_and_gets_the_same_bytes(tenant: Caller, path: str) -> None:
    key, marker = fresh_key(), f"retry{path}"
    body = {"eventName": "payment.attempt", "customer": {"externalId": marker}}
    first, second = keyed(tenant, path, body, key), keyed(tenant, path, body, key)
    assert first.status == second.status
    assert first.status in (200, 201)
    assert first.body == second.body
    assert first.headers.get("link") == second.headers.get("link")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert events(tenant, marker) == 1


def test_fifty_simultaneous_requests_have_one_effect_and_one_answer(tenant: Caller) -> None:
    event_id = tenant.post("/api/v1/events", EVENT).json["eventId"]
    path, key = f"/api/v1/feedback/decision/{event_id}", fresh_key()
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda n: keyed(tenant, path, {"label": "FRAUD", "notes": str(n)}, key), range(50))
        )
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert len(tenant.get(f"/api/v1/events/{event_id}").json["feedback"]) == 1


def test_a_list_entry_added_twice_under_one_key_is_no_duplicate(tenant: Caller) -> None:
    key = fresh_key()
    body = {"type": "IP", "value": "100.65.0.9", "listType": "block"}
    first = keyed(tenant, "/api/v1/lists", body, key)
    assert first.status == 201
    assert keyed(tenant, "/api/v1/lists", body, key).body == first.body
    assert keyed(tenant, "/api/v1/lists", body, fresh_key()).status == 409


def test_a_secret_rotated_twice_under_one_key_is_one_secret(tenant: Caller) -> None:
    subscription = {"url": "https://example.com/hook", "eventTypes": ["EVENT_FEEDBACK_SUBMITTED"]}
    made = keyed(tenant, "/api/v1/webhooks/subscriptions", subscription, fresh_key())
    assert made.status == 201, made.body
    path, key = f"/api/v1/webhooks/subscriptions/{made.json['id']}/rotate-secret", fresh_key()
    first = keyed(tenant, path, {"phase": "prepare"}, key)
    assert first.json["signingSecret"]
    assert keyed(tenant, path, {"phase": "prepare"}, key).body == first.body
    assert keyed(tenant, path, {"phase": "prepare"}, fresh_key()).body != first.body


def test_a_refusal_stands_for_its_key(tenant: Caller) -> None:
    key = fresh_key()
    first = keyed(tenant, "/api/v1/events", {"eventName": ""}, key)
    assert first.status == 400
    assert keyed(tenant, "/api/v1/events", EVENT, key).body == first.body


def test_keys_belong_to_a_tenant_and_a_path(tenant: Caller, other: Caller) -> None:
    key = fresh_key()
    answers = [
        keyed(tenant, "/api/v1/events", EVENT, key),
        keyed(other, "/api/v1/events", EVENT, key),
        keyed(tenant, "/api/v1/events/ingest", EVENT, key),
    ]
    assert len({answer.json["eventId"] for answer in answers}) == 3


@pytest.mark.slow
def test_a_kill_leaves_each_key_with_its_effect_and_answer_or_with_neither(own_service: Service) -> None:
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    answered: dict[str, bytes] = {}

    def ask(number: int) -> None:
        try:
            answer = keyed(
                caller, "/api/v1/events", {"eventName": "e", "sessionId": f"s{number}"}, f"k{number}"
            )
        except OSError:
            return
        if answer.status == 201:
            answered[f"k{number}"] = answer.body

    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(ask, number) for number in range(400)]
        while len(answered) < 60:
            assert not all(one.done() for one in asked), "the service was too fast for this test"
        own_service.stop(signal.SIGKILL)
    own_service.start()
    before = dict(answered)
    for number in range(400):
        ask(number)
    assert len(answered) == 400
    assert {key: answered[key] for key in before} == before
    ids = set(answered.values())
    assert len(ids) == 400
