"""POST /websdk/signals: batches are queued once, and later evaluations of the session see them."""

import signal
import time
from typing import Any

import pytest

from tests.live import Caller, Service
from tests.websdk.conftest import Page

ROBOT = {"webdriver": True, "keystrokeIntervals": [10] * 20, "mouseMoves": 0}
EVALUATE = "/api/v1/decisions/evaluate"


def evaluated(tenant: Caller, session: str, **more: Any) -> dict[str, Any]:
    answer = tenant.post(EVALUATE, {"eventName": "user.login", "sessionId": session, **more})
    assert answer.status == 200, answer.body
    return answer.json


def features(tenant: Caller, result: dict[str, Any]) -> dict[str, Any]:
    record = tenant.get(f"/api/v1/decisions/{result['correlationIds']['eventId']}").json
    return record["inputs"]["features"]


def test_a_batch_is_queued_and_acknowledged_by_its_id(page: Page) -> None:
    answer = page.queue(
        batchId="first",
        tenantSessionId="t",
        anonymousId="a",
        identity={"userExternalId": "u"},
        page={"url": "https://shop.example/pay", "referrer": ""},
        signals={"mouseMoveCount": 12, "keystrokeIntervals": [80, 120], "timezoneOffset": -60},
        surprise={"unknown": "members"},
    )
    assert answer.status == 202, answer.body
    assert answer.json == {"status": "queued", "batchId": "first"}


@pytest.mark.parametrize("by", ["sdkSessionId", "tenantSessionId"])
def test_later_evaluations_of_the_session_see_what_was_queued(tenant: Caller, by: str) -> None:
    page = Page(tenant, tenantSessionId=f"mine-{by}")
    session = page.session if by == "sdkSessionId" else f"mine-{by}"
    assert evaluated(tenant, session)["decision"] == "approve"
    page.queue(signals=ROBOT)
    after = evaluated(tenant, session)
    assert after["decision"] != "approve"
    assert features(tenant, after)["signals.webdriver"] is True
    record = tenant.get(f"/api/v1/decisions/{after['correlationIds']['eventId']}").json
    assert record["inputs"]["sessionSignals"]["webdriver"] is True
    # The session may also stand in the metadata.
    in_metadata = {"eventName": "user.login", "metadata": {"sessionId": session}}
    assert tenant.post(EVALUATE, in_metadata).json["decision"] != "approve"


def test_a_session_that_only_the_page_names_is_not_joined(tenant: Caller) -> None:
    """A page could plant signals in, or blur those of, any session whose name it learns."""
    page = Page(tenant)
    page.queue(signals=ROBOT, tenantSessionId="named-by-the-page")
    untouched = evaluated(tenant, "named-by-the-page")
    assert untouched["decision"] == "approve"
    assert features(tenant, untouched)["signals.webdriver"] is None
    own = evaluated(tenant, page.session)
    assert own["decision"] != "approve"
    record = tenant.get(f"/api/v1/decisions/{own['correlationIds']['eventId']}").json
    assert record["inputs"]["sessionSignals"]["tenantSessionId"] == "named-by-the-page"


def test_signals_of_a_session_are_not_blurred_by_a_page_that_names_it(tenant: Caller) -> None:
    Page(tenant, tenantSessionId="the-victims").queue(signals={"fingerprint": "true", "mouseMoveCount": 7})
    Page(tenant).queue(
        signals={"fingerprint": "forged", "mouseMoveCount": 1000}, tenantSessionId="the-victims"
    )
    seen = evaluated(tenant, "the-victims")
    record = tenant.get(f"/api/v1/decisions/{seen['correlationIds']['eventId']}").json
    assert record["inputs"]["sessionSignals"] == {"fingerprint": "true", "mouseMoveCount": 7}


def test_a_page_cannot_speak_for_another_session_than_that_of_its_token(tenant: Caller) -> None:
    page = Page(tenant, tenantSessionId="attackers")
    page.queue(signals=ROBOT, tenantSessionId="victims")
    assert evaluated(tenant, "victims")["decision"] == "approve"
    assert evaluated(tenant, "attackers")["decision"] != "approve"


def test_another_tenants_session_of_the_same_name_is_another_session(tenant: Caller, other: Caller) -> None:
    Page(tenant, sdkSessionId="shared-name").queue(signals=ROBOT)
    assert evaluated(other, "shared-name")["decision"] == "approve"
    assert evaluated(tenant, "shared-name")["decision"] != "approve"


def test_batches_add_up_and_a_repeated_one_does_not(tenant: Caller, page: Page) -> None:
    typed = {"keystrokeIntervals": [100, 200], "mouseMoveCount": 5}
    batch = page.batch(signals=typed)
    answers = [page.post("/websdk/signals", batch) for _ in range(3)]
    # The same id with other content is still the same batch.
    answers.append(page.post("/websdk/signals", {**batch, "signals": {"mouseMoveCount": 1000}}))
    assert [answer.status for answer in answers] == [202] * 4
    assert len({answer.body for answer in answers}) == 1
    page.queue(signals={"keystrokeIntervals": [300], "mouseMoveCount": 2})
    seen = features(tenant, evaluated(tenant, page.session))
    assert seen["signals.keystroke_count"] == 3
    assert seen["signals.mouse_moves"] == 7


def test_a_repeated_batch_is_acknowledged_whatever_its_time(page: Page) -> None:
    batch = page.batch()
    first = page.post("/websdk/signals", batch)
    again = page.post("/websdk/signals", {**batch, "sentAt": batch["sentAt"] - 3_600_000})
    assert (first.status, again.status) == (202, 202)
    assert first.body == again.body


@pytest.mark.parametrize("skew_s", [-3600, -301, 301, 1_000_000_000])
def test_a_wrong_clock_is_told_the_time(page: Page, skew_s: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    answer = page.queue(sentAt=now_ms + skew_s * 1000)
    assert answer.status == 422
    details = answer.json["error"]["details"]
    assert "sentAt" in details
    assert abs(details["serverTime"] - now_ms) < 5000
    assert page.queue(sentAt=details["serverTime"]).status == 202


@pytest.mark.parametrize("skew_s", [-290, 290])
def test_a_clock_that_is_a_little_wrong_is_taken(page: Page, skew_s: int) -> None:
    assert page.queue(sentAt=time.time_ns() // 1_000_000 + skew_s * 1000).status == 202


@pytest.mark.parametrize(
    ("change", "status", "fields"),
    [
        (
            {"schemaVersion": None, "batchId": None, "sentAt": None, "sdkSessionId": None},
            400,
            {"schemaVersion", "batchId", "sentAt", "sdkSessionId"},
        ),
        ({"batchId": ""}, 400, {"batchId"}),
        ({"sentAt": "2026-01-01T00:00:00Z"}, 400, {"sentAt"}),
        ({"sentAt": 1.5}, 400, {"sentAt"}),
        ({"sentAt": True}, 400, {"sentAt"}),
        ({"signals": [], "identity": 5, "page": "x"}, 400, {"signals", "identity", "page"}),
        (
            {"identity": {"userExternalId": 5}, "page": {"url": []}},
            400,
            {"identity.userExternalId", "page.url"},
        ),
        ({"schemaVersion": "websdk.v2"}, 422, {"schemaVersion"}),
        ({"sdkSessionId": "another"}, 422, {"sdkSessionId"}),
        ({"signals": {"a": "x" * 33_000}}, 422, {"signals"}),
    ],
)
def test_every_fault_is_named(page: Page, change: Any, status: int, fields: set[str]) -> None:
    answer = page.queue(**change)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]["details"]) == fields


def test_the_queued_signals_survive_a_restart_and_what_was_decided_by_them_too(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    page = Page(tenant, tenantSessionId="long")
    page.queue(signals=ROBOT)
    before = evaluated(tenant, "long", customer={"externalId": "c"})
    own_service.stop(9)
    own_service.start()
    after = evaluated(tenant, "long", customer={"externalId": "c"})
    assert before["decision"] == after["decision"] != "approve"
    assert features(tenant, before)["signals.webdriver"] is True


def test_an_event_of_no_device_gets_the_fingerprint_of_its_session(tenant: Caller) -> None:
    tenant.post("/api/v1/lists/device", {"fingerprint": "fp-queued", "listType": "block"})
    page = Page(tenant)
    page.queue(signals={"fingerprint": "fp-queued"})
    assert evaluated(tenant, page.session)["decision"] == "deny"
    named = evaluated(tenant, page.session, device={"fingerprint": "fp-of-the-event"})
    assert named["decision"] != "deny"


def test_a_flag_that_was_queued_is_not_taken_back_by_the_event(tenant: Caller, page: Page) -> None:
    page.queue(signals={"clipboardPaste": True, "mouseEntropy": 0.2})
    result = evaluated(tenant, page.session, sdkSignals={"clipboardPaste": False, "mouseEntropy": 0.9})
    seen = features(tenant, result)
    assert seen["signals.paste"] is True
    assert seen["signals.mouse_entropy"] == 0.9


def test_one_batch_of_huge_numbers_ends_nothing(own_service: Service) -> None:
    service = own_service
    page = Page(Caller(service, service.tenant_id, service.api_key))
    huge = dict.fromkeys(("inserted", "scripted", "silent"), 1.7e308)
    for _ in range(2):
        signals = {"fields": huge, "mouseMoves": 2**64 - 1, "clickCount": 1.7e308, "jumpCount": -(2**63)}
        assert page.queue(signals=signals).status == 202
    answer = page.collect(sdkSignals={"fields": huge})
    assert answer.status == 200, answer.body
    for number in (signal.SIGKILL, signal.SIGTERM):
        service.stop(number)
        service.start()
        answer = service.post("/api/v1/decisions/evaluate", {"eventName": "x", "sessionId": page.session})
        assert answer.status == 200, answer.body
        record = service.get(f"/api/v1/decisions/{answer.json['correlationIds']['eventId']}").json
        assert record["inputs"]["features"]["signals.fields_injected"] > 1e299
        assert "unknown" not in record["outputs"]
        assert "degraded" not in record["outputs"]
