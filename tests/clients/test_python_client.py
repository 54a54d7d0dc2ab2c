"""The Python client against the real service, and what it does when there is none, against its stand-in."""

import asyncio
import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from standardwebhooks.webhooks import Webhook

import vettance_client
from tests.live import Caller
from vettance_client import (
    NO_RETRY,
    AsyncClient,
    BadSignature,
    Client,
    Conflict,
    ConnectionFailed,
    InternalServerError,
    NotFound,
    QuotaExceeded,
    Retry,
    ServiceUnavailable,
    TimedOut,
    Unauthorized,
    Unprocessable,
    UnreadableAnswer,
    ValidationError,
    sign_webhook,
    verify_webhook,
)
from vettance_client.bodies import EventBody
from vettance_client.models import Severity
from vettance_client.testing import StandIn

LOGIN: EventBody = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "anna", "email": "anna@example.com"},
    "ip": "203.0.113.9",
}
QUICK = Retry(attempts=3, first_wait_s=0.001)
SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


@pytest.fixture(scope="module")
def client(tenant: Caller) -> Iterator[Client]:
    with Client(tenant.service.base_url, tenant.key) as client:
        yield client


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as service:
        yield service


def test_a_decision_is_a_value_and_can_be_read_again(client: Client) -> None:
    decision = client.evaluate(LOGIN)
    assert decision.approved
    assert not decision.is_fallback
    assert decision.risk_level == "low"
    record = client.get_decision(decision.correlation_ids.event_id)
    assert record.outputs.decision == decision.decision


def test_a_path_parameter_may_hold_any_characters(client: Client) -> None:
    entry = client.add_device_entry({"fingerprint": "a/b?c=%2F d+é", "listType": "block"})
    assert client.remove_device_entry("a/b?c=%2F d+é").success
    with pytest.raises(NotFound):
        client.remove_entry(entry.id)


def test_rows_of_all_pages_are_iterated_once(client: Client) -> None:
    made = {client.add_ip_entry({"ip": f"198.51.100.{n}"}).id for n in range(7)}
    seen = [entry.id for entry in client.iterate_entries(limit=3, type="IP")]
    assert sorted(seen) == sorted(made)


def test_refusals_are_classes_with_code_details_and_request_id(client: Client) -> None:
    with pytest.raises(ValidationError) as wrong:
        client.evaluate({"ip": "1.2.3.4"})  # type: ignore[typeddict-item]
    assert (wrong.value.code, wrong.value.http_status) == ("VALIDATION_ERROR", 400)
    assert list(wrong.value.details) == ["eventName"]
    assert wrong.value.request_id is not None
    assert wrong.value.request_id.startswith("req_")
    assert "eventName" in str(wrong.value)
    with pytest.raises(Unprocessable):
        client.add_ip_entry({"ip": "no address"})
    client.add_entry({"type": "EMAIL", "value": "twice@example.com", "listType": "block"})
    with pytest.raises(Conflict) as twice:
        client.add_entry({"type": "EMAIL", "value": "twice@example.com", "listType": "block"})
    assert twice.value.reason == "duplicate_entry"


def test_a_wrong_key_is_raised_even_if_the_service_may_be_away(client: Client, tenant: Caller) -> None:
    with Client(tenant.service.base_url, "vtc_live_wrong") as other, pytest.raises(Unauthorized):
        other.evaluate(LOGIN, on_unavailable="approve")


def test_a_repeated_idempotency_key_has_one_effect(client: Client) -> None:
    first = client.create_event(LOGIN, idempotency_key="once")
    assert client.create_event(LOGIN, idempotency_key="once").event_id == first.event_id
    assert client.create_event(LOGIN).event_id != first.event_id


async def test_the_async_client_gives_the_same_answers(tenant: Caller) -> None:
    async with AsyncClient(tenant.service.base_url, tenant.key) as client:
        decisions = await asyncio.gather(*(client.evaluate(LOGIN) for _ in range(20)))
        assert {decision.decision for decision in decisions} == {"approve"}
        ids = {decision.correlation_ids.event_id for decision in decisions}
        rows = [row.id async for row in client.iterate_decisions(limit=7, customer="anna")]
        assert ids <= set(rows)
        assert len(rows) == len(set(rows))
        with pytest.raises(NotFound) as unknown:
            await client.get_decision("evt_" + "0" * 32)
        assert unknown.value.code == "NOT_FOUND"


def test_a_fault_is_tried_again_with_the_same_idempotency_key(stand_in: StandIn) -> None:
    stand_in.fails("evaluate", 503, details={"retryAfter": 0}, times=1)
    stand_in.fails("evaluate", 0, times=1)
    with Client(stand_in.url, "key", retry=QUICK) as client:
        assert client.evaluate(LOGIN).approved
    keys = [request.headers["idempotency-key"] for request in stand_in.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("status", "sent", "error"), [(500, 1, InternalServerError), (504, 1, None), (0, 1, None), (429, 3, None)]
)
def test_a_screening_is_never_sent_twice_blindly(
    stand_in: StandIn, status: int, sent: int, error: type[Exception] | None
) -> None:
    stand_in.fails("screen", status, details={"retryAfter": 0})
    with (
        Client(stand_in.url, "key", retry=QUICK) as client,
        pytest.raises(error or vettance_client.VettanceError),
    ):
        client.screen({"inputName": "Anna", "externalId": "a"})
    assert len(stand_in.requests) == sent


def test_a_refusal_of_the_request_is_not_tried_again(stand_in: StandIn) -> None:
    stand_in.fails("create_event", 422)
    with Client(stand_in.url, "key", retry=QUICK) as client, pytest.raises(Unprocessable):
        client.create_event(LOGIN)
    assert len(stand_in.requests) == 1


def test_the_wait_that_429_asks_for_is_kept_or_left_to_the_caller(stand_in: StandIn) -> None:
    stand_in.fails("list_entries", 429, details={"limit": 300, "window": 60, "retryAfter": 40})
    with Client(stand_in.url, "key") as client, pytest.raises(QuotaExceeded) as full:
        client.list_entries()
    assert full.value.retry_after_s == 40
    assert full.value.details["limit"] == 300
    assert len(stand_in.requests) == 1


@pytest.mark.parametrize("word", ["approve", "review", "deny"])
def test_a_shop_goes_on_when_nobody_answers(stand_in: StandIn, word: str) -> None:
    stand_in.answers("evaluate", {}, delay_s=20)
    with Client(stand_in.url, "key") as client:
        began = time.monotonic()
        decision = client.evaluate(LOGIN, deadline_ms=50, on_unavailable=word)  # type: ignore[arg-type]
        assert time.monotonic() - began < 10
        assert decision.decision == word
        assert decision.is_fallback
        assert isinstance(decision.cause, TimedOut)
        with pytest.raises(TimedOut):
            client.evaluate(LOGIN, deadline_ms=50)


async def test_a_shop_goes_on_when_nobody_answers_async(stand_in: StandIn) -> None:
    stand_in.answers("evaluate", {}, delay_s=20)
    async with AsyncClient(stand_in.url, "key") as client:
        decision = await client.evaluate(LOGIN, deadline_ms=50, on_unavailable="review")
        assert decision.needs_review
        assert isinstance(decision.cause, TimedOut)


@pytest.mark.parametrize("kind", [500, 502, 503, 429, 0])
def test_a_shop_goes_on_when_the_service_is_at_fault_or_full(stand_in: StandIn, kind: int) -> None:
    stand_in.fails("evaluate", kind)
    with Client(stand_in.url, "key", retry=QUICK) as client:
        assert client.evaluate(LOGIN, deadline_ms=2000, on_unavailable="deny").denied


async def test_no_connection_is_an_error_of_its_own(unused_port: int) -> None:
    address = f"http://127.0.0.1:{unused_port}"
    with Client(address, "key", retry=QUICK) as client:
        with pytest.raises(ConnectionFailed):
            client.list_entries()
        assert client.evaluate(LOGIN, on_unavailable="approve").is_fallback
    async with AsyncClient(address, "key", retry=NO_RETRY) as client:
        with pytest.raises(ConnectionFailed) as refused:
            await client.list_entries()
        assert not refused.value.sent


@pytest.fixture
def unused_port() -> int:
    with StandIn() as gone:
        return int(gone.url.rpartition(":")[2])


def test_what_is_not_the_service_is_said_to_be_so(stand_in: StandIn) -> None:
    stand_in.answers("get_job", {"status": 7})
    with Client(stand_in.url, "key", retry=NO_RETRY) as client, pytest.raises(UnreadableAnswer):
        client.get_job("job_1")


def test_a_word_that_is_new_is_taken_as_it_is() -> None:
    assert Severity("HIGH") is Severity.HIGH
    assert Severity("ABSURD") == "ABSURD"


@pytest.mark.parametrize(
    "wrong", [{"base_url": "risk.example.com"}, {"base_url": "http://x", "timeout_s": 0}]
)
def test_a_wrong_setting_is_said_at_once(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"base_url|timeout_s"):
        Client(**wrong)  # type: ignore[arg-type]


def envelope() -> bytes:
    data = {"id": "evt_1", "decision": "deny"}
    return json.dumps(
        {"eventType": "EVENT_RISK_EVALUATED", "timestamp": "2026-01-01T00:00:00.000Z", "data": data}
    ).encode()


def test_a_signed_webhook_is_read() -> None:
    body = envelope()
    event = verify_webhook(body, {"X-Webhook-Signature": sign_webhook(body, SECRET)}, SECRET)
    assert (event.event_type, event.id) == ("EVENT_RISK_EVALUATED", "evt_1")
    assert sign_webhook(body, "s") == "sha256=" + hmac.new(b"s", body, hashlib.sha256).hexdigest()


def test_a_standard_webhook_is_read_while_it_is_fresh() -> None:
    body, now_s = envelope(), 1_767_225_600
    from datetime import UTC, datetime

    signature = Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(now_s, UTC), body.decode())
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,no {signature}",
    }
    assert verify_webhook(body, headers, [SECRET], tolerance_s=300, now_s=now_s + 300).id == "evt_1"
    with pytest.raises(BadSignature):
        verify_webhook(body, headers, SECRET, tolerance_s=300, now_s=now_s + 301)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Webhook-Signature": ""},
        {"X-Webhook-Signature": "sha256=" + "0" * 64},
        {"X-Webhook-Signature": "sha256=é"},
        {"webhook-id": "m", "webhook-timestamp": "x", "webhook-signature": "v1,AAAA"},
    ],
)
def test_a_webhook_with_a_wrong_signature_is_not_read(headers: dict[str, str]) -> None:
    with pytest.raises(BadSignature):
        verify_webhook(envelope(), headers, SECRET)


def test_a_changed_body_is_not_read() -> None:
    body = envelope()
    with pytest.raises(BadSignature):
        verify_webhook(body + b" ", {"x-webhook-signature": sign_webhook(body, SECRET)}, SECRET)
    with pytest.raises(TypeError):
        verify_webhook(body.decode(), {}, SECRET)  # type: ignore[arg-type]


def test_importing_the_client_imports_no_http_library() -> None:
    late = ("aiohttp", "urllib3", "asyncio", "ssl")  # `asyncio` alone is a third of the time of the import.
    code = f"import sys, vettance_client; print(*(n for n in {late} if n in sys.modules))"
    folder = vettance_client.__path__[0].removesuffix("vettance_client")
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": folder}, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == ""


def test_the_stand_in_refuses_what_the_service_refuses(stand_in: StandIn) -> None:
    with Client(stand_in.url, "key") as client, pytest.raises(ValidationError) as wrong:
        client.create_event({"eventName": 7, "eventCategory": "NONE"})  # type: ignore[typeddict-item]
    assert set(wrong.value.details) == {"eventName", "eventCategory"}
    with Client(stand_in.url) as client, pytest.raises(Unauthorized):
        client.list_entries()


def test_the_stand_in_answers_every_endpoint_as_the_client_expects(stand_in: StandIn) -> None:
    from vettance_client import endpoints
    from vettance_client.endpoint import Endpoint

    with Client(stand_in.url, "key") as client:
        assert client.list_decisions().data == []
        assert client.add_ip_entry({"ip": "198.51.100.1"}).list_type in ("allow", "block")
        known = [one for one in vars(endpoints).values() if isinstance(one, Endpoint)]
        for one in known:
            assert hasattr(client, one.name)
            if one.method == "GET":
                arguments = ["x"] * one.path.count("{")
                getattr(client, one.name)(*arguments)
    assert isinstance(stand_in.requests[0].name, str)
    with pytest.raises(ValueError, match="no method"):
        stand_in.fails("nothing", 500)
    assert ServiceUnavailable.status == 503
