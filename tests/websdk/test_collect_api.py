"""POST /collect: a page asks for a decision."""

from typing import Any

import pytest

from tests.live import Caller, Service
from tests.websdk.conftest import ORIGIN, Page, without

PATH = "/api/v1/collect"
ROBOT = {"keystrokeIntervals": [10] * 20, "mouseEntropy": 0.0, "clipboardPaste": False, "webdriver": True}


def test_collect_answers_the_decision_with_the_score_as_a_fraction(page: Page) -> None:
    answer = page.collect(
        category="TRANSACTION",
        customerId="c-1",
        deviceId="d-1",
        payload={"amount": 20, "currency": "EUR"},
        sdkSignals={"clipboardPaste": True, "keystrokeIntervals": [120, 95, 180], "mouseEntropy": 0.8},
    )
    assert answer.status == 200, answer.body
    result = answer.json
    assert set(result) == {"eventId", "decision", "score", "eventCategory", "rulesEvaluated"}
    assert result["decision"] == "ALLOW"
    assert result["eventCategory"] == "TRANSACTION"
    assert result["rulesEvaluated"] >= 40
    record = page.tenant.get(f"/api/v1/events/{result['eventId']}").json
    assert record["source"] == "collect"
    assert record["sessionId"] == page.session
    assert record["customer"] == {"externalId": "c-1"}
    assert record["device"] == {"externalId": "d-1"}
    assert record["payload"] == {"amount": 20, "currency": "EUR"}
    assert record["sdkSignals"]["mouseEntropy"] == 0.8
    assert record["eventName"] == "websdk.collect"
    assert result["score"] == record["score"] / 100


def test_the_payload_may_name_the_event_and_the_token_the_customer(tenant: Caller) -> None:
    page = Page(tenant, userExternalId="u-7", tenantSessionId="t-7", flow="login")
    made = page.collect(category="AUTHENTICATION", payload={"eventName": "user.login"}).json
    record = tenant.get(f"/api/v1/events/{made['eventId']}").json
    assert record["eventName"] == "user.login"
    assert record["customer"] == {"externalId": "u-7"}
    assert record["metadata"] == {"tenantSessionId": "t-7", "flow": "login", "userExternalId": "u-7"}


def test_a_fingerprint_among_the_signals_is_that_of_the_device(tenant: Caller) -> None:
    tenant.post("/api/v1/lists/device", {"fingerprint": "fp-stolen", "listType": "block"})
    made = Page(tenant).collect(sdkSignals={"fingerprint": "fp-stolen"}).json
    assert (made["decision"], made["score"]) == ("BLOCK", 1.0)


def test_a_script_and_a_person_get_different_decisions(page: Page) -> None:
    person = {"keystrokeIntervals": [90, 160, 70, 240, 130, 95, 310, 120, 80], "mouseEntropy": 0.8}
    assert page.collect(category="AUTHENTICATION", sdkSignals=person).json["decision"] == "ALLOW"
    assert page.collect(category="AUTHENTICATION", sdkSignals=ROBOT).json["decision"] != "ALLOW"


def test_what_a_browser_sends_along_is_kept_with_the_event(page: Page) -> None:
    headers = {"User-Agent": "Mozilla/5.0 Test", "Accept-Language": "de-DE,de;q=0.9"}
    body = {"sessionId": page.session, "category": "OTHER", "sdkSignals": {"acceptLanguage": "xx"}}
    made = page.post("/collect", body, **headers).json
    record = page.tenant.get(f"/api/v1/events/{made['eventId']}").json
    assert record["userAgent"] == "Mozilla/5.0 Test"
    assert record["sdkSignals"] == {"acceptLanguage": "de-DE,de;q=0.9"}
    assert "ip" not in record, "an address of this machine says nothing of a browser"


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ({}, 400, {"sessionId", "category"}),
        ({"sessionId": "", "category": ""}, 400, {"sessionId", "category"}),
        ({"sessionId": 5, "category": 5}, 400, {"sessionId", "category"}),
        ({"category": "ACCOUNT"}, 400, {"category"}),
        ({"category": "authentication"}, 400, {"category"}),
        ({"customerId": {}, "deviceId": 1}, 400, {"customerId", "deviceId"}),
        ({"payload": [], "sdkSignals": "x"}, 400, {"payload", "sdkSignals"}),
        ({"payload": {"x": "y" * 33_000}}, 422, {"payload"}),
        ({"sdkSignals": {str(n): n for n in range(501)}}, 422, {"sdkSignals"}),
        ({"sessionId": "another"}, 422, {"sessionId"}),
    ],
)
def test_every_fault_is_named(page: Page, body: Any, status: int, fields: set[str]) -> None:
    whole = {"sessionId": page.session, "category": "OTHER", **body} if body else {}
    answer = page.post("/collect", whole)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]["details"]) == fields


def test_ten_levels_are_taken_and_eleven_are_not(page: Page) -> None:
    def nested(depth: int) -> dict[str, Any]:
        return {"a": nested(depth - 1)} if depth > 1 else {}

    assert page.collect(payload=nested(10), sdkSignals=nested(10)).status == 200
    assert page.collect(payload=nested(11)).status == 422


def test_no_credential_and_a_key_alone_are_refused(service: Service, tenant: Caller, page: Page) -> None:
    body = {"sessionId": page.session, "category": "OTHER"}
    for answer in (service.call("POST", PATH, body, key=None), tenant.post(PATH, body)):
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_mode_c_takes_a_key_where_the_tenant_allows_it(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Proxy"))
    service.cli("tenant", "set", tenant.id, "--collect-key", "on")
    body = {"sessionId": "any", "category": "OTHER"}
    service.wait_for(lambda: tenant.post(PATH, body).status == 200)
    answer = tenant.post(PATH, body, headers={"Origin": "https://anywhere.example"})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "https://anywhere.example"
    assert tenant.post("/api/v1/websdk/signals", Page(tenant).batch()).status == 401
    service.cli("tenant", "set", tenant.id, "--collect-key", "off")
    service.wait_for(lambda: tenant.post(PATH, body).status == 401)


def test_a_session_is_throttled_by_itself_and_a_refusal_costs_nothing(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Throttled", throttle=8))
    first, second = Page(tenant), Page(tenant)
    statuses = [first.collect().status for _ in range(5)] + [first.queue().status for _ in range(4)]
    assert statuses == [200] * 5 + [202] * 3 + [429]
    refused = first.collect()
    assert refused.status == 429
    assert refused.json["error"]["code"] == "QUOTA_EXCEEDED"
    assert refused.json["error"]["details"]["limit"] == 8
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert second.collect().headers["x-ratelimit-remaining"] == "7"
    # Minting counts against the key, and what the sessions did does not.
    assert tenant.post("/api/v1/websdk/tokens", {}).headers["x-ratelimit-remaining"] != "0"


def test_what_pages_ask_counts_towards_the_quota_of_the_tenant(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Quota", quota=1000))
    page = Page(tenant)
    before = int(page.collect().headers["x-quota-remaining"])
    page.queue()
    assert int(page.collect().headers["x-quota-remaining"]) == before - 2


def test_a_retry_of_one_session_is_not_answered_to_another(tenant: Caller) -> None:
    first, second = Page(tenant), Page(tenant)

    def ask(page: Page) -> str:
        body = {"sessionId": page.session, "category": "OTHER"}
        return page.post("/collect", body, **{"Idempotency-Key": "same"}).json["eventId"]

    assert ask(first) == ask(first)
    assert ask(second) != ask(first)


PREFLIGHT = {
    "Origin": "https://any.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.mark.parametrize("path", ["/api/v1/collect", "/api/v1/websdk/signals"])
def test_a_preflight_needs_no_token_and_names_what_may_be_sent(service: Service, path: str) -> None:
    answer = service.call("OPTIONS", path, key=None, headers=PREFLIGHT)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "https://any.example"
    assert answer.headers["access-control-allow-methods"] == "POST"
    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "x-request-id"} <= set(allowed)
    assert int(answer.headers["access-control-max-age"]) >= 600
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/api/v1/websdk/tokens", "/api/v1/decisions/evaluate", "/api/v1/lists"])
def test_no_other_path_is_open_to_other_origins(service: Service, path: str) -> None:
    assert service.call("OPTIONS", path, key=None, headers=PREFLIGHT).status == 405
    answer = service.call("POST", path, {}, headers={"Origin": "https://any.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_may_be_read_by_the_page_that_asked(page: Page) -> None:
    body = {"sessionId": page.session, "category": "OTHER"}
    call = page.tenant.service.call
    answers = {
        200: page.post("/collect", body),
        400: page.post("/collect", b"{"),
        401: page.post("/collect", body, Authorization="Bearer x"),
        405: call("GET", PATH, key=None, headers=page.headers),
        413: page.post("/collect", b" " * 1_100_000),
        415: page.post("/collect", b"x", **{"Content-Type": "text/plain"}),
        422: page.post("/collect", {**body, "sessionId": "x"}),
    }
    for status, answer in answers.items():
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["vary"] == "Origin"
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"Date", "Retry-After", "X-RateLimit-Reset", "X-Quota-Remaining"} <= set(exposed)


def test_caches_are_told_of_the_origin_even_when_none_was_sent(page: Page) -> None:
    answer = page.tenant.service.call("POST", PATH, {}, key=None, headers=without(page.headers, "Origin"))
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in answer.headers
