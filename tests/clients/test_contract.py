"""All clients call every endpoint of the real service, and meet every row of its error table.

What an endpoint refuses is compared with what the service says to a plain HTTP request. An endpoint that is
new is called with the example of the document; that it succeeds in earnest is one more step of a walk.
"""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from clients.generate.endpoints import Endpoint, endpoints_of
from tests.clients.three_clients import TYPESCRIPT, AsyncCalls, Given, NodeCalls, Result, SyncCalls
from tests.live import Service, started
from vettance_client.errors import BY_STATUS
from vettance_client.testing import StandIn

DOCUMENT = json.loads((Path(__file__).parents[2] / "clients" / "openapi.json").read_bytes())
ENDPOINTS = {one.name: one for one in endpoints_of(DOCUMENT)}
OPERATIONS = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}
#: Rows of the error table that no method of a client brings about, or that need a fault of the service.
BY_STAND_IN = {405: "wrong_method", 415: "wrong_type", 500: "bug", 503: "store", 504: "engine"}
Calls = SyncCalls | AsyncCalls | NodeCalls


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = started(tmp_path_factory.mktemp("contract"))
    running.cli("tenant", "set", running.tenant_id, "--aml", "on")
    running.wait_for(lambda: running.get("/api/v1/aml/alerts").status == 200)
    yield running
    running.stop()


@pytest.fixture(scope="module", params=["sync", "async", "typescript"])
def calls(request: pytest.FixtureRequest) -> Iterator[Calls]:
    if request.param == "typescript":
        if shutil.which("node") is None or not (TYPESCRIPT / "dist" / "index.js").exists():
            pytest.skip("the TypeScript client is not built: `make typescript` (needs Node 20 with npm)")
        made: Calls = NodeCalls()
    else:
        made = SyncCalls() if request.param == "sync" else AsyncCalls()
    yield made
    made.close()


def example(one: Endpoint) -> Any:
    body = OPERATIONS[one.id].get("requestBody")
    return body["content"]["application/json"].get("example", {}) if body else None


def unknown(one: Endpoint) -> tuple[str, ...]:
    return tuple(
        {"email": "nobody@example.com", "ip": "192.0.2.77"}.get(name, "none") for name in one.path_names
    )


def asked_plainly(service: Service, one: Endpoint, given: Given, key: str | None) -> Any:
    """What the service says to the same request without a client."""
    path = one.path
    for name, value in zip(one.path_names, given.path, strict=True):
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if given.query:
        path += "?" + "&".join(f"{name}={value}" for name, value in given.query.items())
    headers = {"Authorization": f"Bearer {given.token}"} if given.token else {}
    body = ({} if given.body is None else given.body) if one.body else None
    return service.call(one.method, path, body, key=key if one.credential == "key" else None, headers=headers)


def assert_refused_alike(
    calls: Calls, service: Service, one: Endpoint, given: Given, key: str | None
) -> None:
    plain = asked_plainly(service, one, given, key)
    result = calls.call(service.base_url, key, one, given)
    assert plain.status >= 400, (one.name, plain.json)
    said = plain.json["error"]
    assert result.status == plain.status, (one.name, result, said)
    assert result.error == BY_STATUS[plain.status].__name__, one.name
    assert (result.code, result.details) == (said["code"], said["details"]), one.name
    assert result.request_id is not None
    assert result.request_id.startswith("req_")


def test_no_credential_is_401_on_every_endpoint(calls: Calls, live: Service) -> None:
    for one in ENDPOINTS.values():
        if one.credential != "none":
            given = Given(unknown(one), example(one), token="x" if one.credential == "token" else None)
            assert_refused_alike(calls, live, one, given, None)


def test_what_is_not_there_is_404_on_every_endpoint_that_names_one(calls: Calls, live: Service) -> None:
    for one in ENDPOINTS.values():
        if "404" in OPERATIONS[one.id]["responses"] and one.path_names:
            assert_refused_alike(calls, live, one, Given(unknown(one), example(one)), live.api_key)


def test_a_body_that_is_no_object_is_refused_by_every_endpoint_that_takes_one(
    calls: Calls, live: Service
) -> None:
    for one in ENDPOINTS.values():
        if one.body is not None and one.credential == "key":
            assert_refused_alike(calls, live, one, Given(unknown(one), ["x"]), live.api_key)


def test_a_wrong_page_is_400_on_every_list(calls: Calls, live: Service) -> None:
    for one in ENDPOINTS.values():
        if any(parameter.wire_name == "limit" for parameter in one.query):
            given = Given(unknown(one), query={"limit": 0})
            assert_refused_alike(calls, live, one, given, live.api_key)


def test_a_product_that_is_off_is_403(calls: Calls, live: Service) -> None:
    _, key = live.new_tenant("No AML")
    for one in ENDPOINTS.values():
        if one.path.startswith("/api/v1/aml/"):
            assert_refused_alike(calls, live, one, Given(unknown(one), example(one)), key)


def test_the_other_rows_of_the_error_table(calls: Calls, live: Service) -> None:
    def refused(name: str, given: Given, status: int, key: str | None = None) -> None:
        chosen = key or live.api_key
        assert calls.call(live.base_url, chosen, ENDPOINTS[name], given).status == status
        assert_refused_alike(calls, live, ENDPOINTS[name], given, chosen)

    kind = type(calls).__name__
    entry = {"type": "IP", "value": "192.0.2.1", "listType": "block"}
    calls.call(live.base_url, live.api_key, ENDPOINTS["add_entry"], Given(body=entry))
    refused("add_entry", Given(body=entry), 409)
    event = {"eventName": "transfer", "externalEventId": f"same-{kind}"}
    assert (
        calls.call(live.base_url, live.api_key, ENDPOINTS["create_aml_event"], Given(body=event)).error
        is None
    )
    refused("create_aml_event", Given(body={**event, "reference": "other"}), 409)
    refused("add_entry", Given(body={**entry, "value": "no address"}), 422)
    refused(
        "create_subscription",
        Given(body={"url": "https://127.0.0.1/", "eventTypes": ["EVENT_RISK_EVALUATED"]}),
        422,
    )
    refused("create_event", Given(body={"eventName": "x", "payload": {"text": "x" * (1 << 20)}}), 413)
    refused("list_events", Given(query={"from": 2, "to": 1}), 400)
    _, slow = live.new_tenant("Slow", throttle=2)
    for _ in range(3):
        full = calls.call(live.base_url, slow, ENDPOINTS["list_entries"], Given())
    assert (full.error, full.code) == ("QuotaExceeded", "QUOTA_EXCEEDED")
    assert set(full.details) == {"limit", "window", "retryAfter"}


def test_screening_without_a_list_is_502(calls: Calls, tmp_path: Path) -> None:
    if not isinstance(calls, SyncCalls):
        pytest.skip("one more service for each client is not worth the time: what reads errors is the same")
    empty = started(tmp_path)
    empty.cli("tenant", "set", empty.tenant_id, "--aml", "on")
    one = ENDPOINTS["screen"]
    given = Given(body={"inputName": "Anna", "externalId": "a"})
    empty.wait_for(lambda: asked_plainly(empty, one, given, empty.api_key).status == 502)
    assert_refused_alike(calls, empty, one, given, empty.api_key)
    empty.stop()


@pytest.mark.parametrize("status", BY_STAND_IN)
def test_rows_that_need_a_fault_are_read_alike(calls: Calls, status: int) -> None:
    with StandIn() as stand_in:
        stand_in.fails("screen", status, details={"requestId": "req_9"})
        result = calls.call(
            stand_in.url, "key", ENDPOINTS["screen"], Given(body=example(ENDPOINTS["screen"]))
        )
        kind = BY_STATUS[status]
        assert (result.error, result.status, result.code) == (kind.__name__, status, kind.code)
        assert result.request_id == "req_9"
        assert len(stand_in.requests) == 1


class Walk:
    """Calls endpoint after endpoint, and remembers which ones succeeded."""

    def __init__(self, calls: Calls, service: Service) -> None:
        self.calls = calls
        self.service = service
        self.done: set[str] = set()

    def __call__(self, name: str, *path: str, rows: bool = False, **given: Any) -> Any:
        result: Result = self.calls.call(
            self.service.base_url, self.service.api_key, ENDPOINTS[name], Given(path, **given), rows=rows
        )
        assert result.error is None, (name, result)
        self.done.add(name)
        return result.value


def walk_fraud(walk: Walk, kind: str) -> None:
    login = {"eventName": "user.login", "customer": {"externalId": f"c-{kind}", "email": "c@example.com"}}
    decided = walk("evaluate", body=login)
    event = decided["correlationIds"]["eventId"]
    assert decided["decision"] == "approve"
    assert walk("get_decision", event)["outputs"]["decision"] == "approve"
    assert walk("get_event", event)["eventName"] == "user.login"
    made = [walk("create_event", body=login, idempotency_key=f"k-{kind}")["eventId"] for _ in range(2)]
    assert made[0] == made[1]
    walk("ingest_event", body=login)
    job = walk("queue_event", body=login)["jobId"]
    assert walk("get_job", job)["jobId"] == job
    assert walk("list_events", query={"limit": 1, "customer": f"c-{kind}"})["hasMore"]
    for name in ("list_events", "list_decisions"):
        rows = walk(name, rows=True, query={"limit": 2, "customer": f"c-{kind}", "from": 0})
        assert len({row["id"] for row in rows}) == len(rows) >= 3
    walk("list_decisions", query={"decision": "approve", "sortOrder": "asc"})
    assert walk("get_decision_stats", query={"from": int(time.time()) - 60})["totals"]["evaluated"] >= 1
    walk("get_event_stats")
    label = {"label": "FALSE_POSITIVE", "notes": "É ✓"}
    assert walk("label_decision", event, body=label)["notes"] == "É ✓"
    walk("label_event", event, body={"label": "LEGIT"})


def walk_lists(walk: Walk, kind: str) -> None:
    entry = walk("add_entry", body={"type": "DEVICE", "value": f"d/{kind}?é", "listType": "block"})
    assert entry["id"] in {row["id"] for row in walk("list_entries", rows=True, query={"limit": 1})}
    walk("list_entries", query={"type": "DEVICE"})
    assert walk("remove_entry", entry["id"])["success"] is True
    walk("add_device_entry", body={"fingerprint": f"d/{kind}?é"})
    walk("remove_device_entry", f"d/{kind}?é")
    walk("add_customer_entry", f"{kind}+x@example.com", body={"listType": "allow"})
    walk("remove_customer_entry", f"{kind}+x@example.com", query={"listType": "allow"})
    walk("add_ip_entry", body={"ip": "2001:db8::/48"})
    walk("remove_ip_entry", "2001:db8::/48")


def walk_webhooks_and_browser(walk: Walk, kind: str) -> None:
    made = walk(
        "create_subscription", body={"url": "https://example.com/h", "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}
    )
    hook = made["id"]
    assert made["signingSecret"].startswith("whsec_")
    assert hook in {row["id"] for row in walk("list_subscriptions")["subscriptions"]}
    walk("get_subscription", hook)
    walk("test_subscription", hook)
    walk("rotate_secret", hook, body={"phase": "prepare"})
    walk("replay_deliveries", hook)
    walk("add_ip_entry", body={"ip": "192.0.2.200"})
    until = time.monotonic() + 20
    while not (found := walk("list_deliveries", hook)["data"]):
        assert time.monotonic() < until
    walk("list_deliveries", hook, rows=True)
    walk("remove_ip_entry", "192.0.2.200")
    replay = walk.calls.call(
        walk.service.base_url, walk.service.api_key, ENDPOINTS["replay_delivery"], Given((found[0]["id"],))
    )
    # While the first attempts are not over there is nothing to replay, and the service says so.
    assert replay.error in (None, "Conflict"), replay
    walk.done.add("replay_delivery")
    walk("delete_subscription", hook)
    token = walk("create_token", body={})
    session = {"sessionId": token["sdkSessionId"], "category": "AUTHENTICATION"}
    assert walk("collect", body=session, token=token["token"])["decision"] == "ALLOW"
    batch = {"schemaVersion": "websdk.v1", "batchId": f"b-{kind}", "sdkSessionId": token["sdkSessionId"]}
    batch["sentAt"] = time.time_ns() // 1_000_000
    assert walk("send_signals", body=batch, token=token["token"])["status"] == "queued"


def walk_aml(walk: Walk, kind: str) -> None:
    transfer = {
        "eventName": "transfer.sent",
        "externalEventId": f"tx/{kind} 1",
        "customer": {"externalId": f"a-{kind}"},
        "metadata": {
            "amount": "12500.00",
            "currency": "EUR",
            "direction": "out",
            "counterpartyCountry": "KP",
        },
    }
    assert walk("create_aml_event", body=transfer)["status"] == "ALERTED"
    assert walk("get_aml_event", f"tx/{kind} 1")["externalEventId"] == f"tx/{kind} 1"
    assert walk("list_alerts", rows=True, query={"limit": 1, "customer": f"a-{kind}"})
    walk("list_alerts")
    case = walk("list_cases", query={"customer": f"a-{kind}"})["data"][0]["id"]
    assert [row["id"] for row in walk("list_cases", rows=True, query={"customer": f"a-{kind}"})] == [case]
    walk("get_case", case)
    walk("add_case_note", case, body={"notes": "Looked at."})
    walk("assign_case", case, body={"assignee": "grace", "officer": "grace"})
    assert walk("export_case", case, query={"format": "html"}).lstrip().lower().startswith("<!doctype")
    assert walk("export_case", case)["id"] == case
    walk("resolve_case", case, body={"resolution": "TRUE_MATCH", "notes": "Reported.", "officer": "grace"})
    assert "sample" in str(walk("list_watchlists")).lower()
    screened = walk("screen", body={"inputName": "Sergey Lavrow", "externalId": f"s-{kind}"})
    assert screened["matches"]
    assert walk("get_screening", screened["id"])["id"] == screened["id"]


#: Endpoints whose success needs more than one key or person; their refusals are compared all the same.
NOT_WALKED = {"reject_case": "a resolution that waits for a second officer is needed"}


@pytest.fixture(scope="module")
def with_list(live: Service) -> Service:
    live.cli("watchlist", "import", "--source", "sample", "--json")
    given = Given(body={"inputName": "Nobody", "externalId": "n-1"})
    live.wait_for(lambda: asked_plainly(live, ENDPOINTS["screen"], given, live.api_key).status == 200, 20)
    return live


def test_every_endpoint_succeeds(calls: Calls, with_list: Service) -> None:
    walk, kind = Walk(calls, with_list), type(calls).__name__.lower()
    walk_fraud(walk, kind)
    walk_lists(walk, kind)
    walk_webhooks_and_browser(walk, kind)
    walk_aml(walk, kind)
    for name in ("get_health", "get_readiness", "get_openapi"):
        walk(name)
    for name in ENDPOINTS.keys() - walk.done - NOT_WALKED.keys():
        one = ENDPOINTS[name]
        given = Given(unknown(one), example(one))
        plain = asked_plainly(with_list, one, given, with_list.api_key)
        result = calls.call(with_list.base_url, with_list.api_key, one, given)
        assert (result.status or 200) == (plain.status if plain.status >= 400 else 200), (name, result)
