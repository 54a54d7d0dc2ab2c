"""All clients call every endpoint of the real service, and meet every row of its error table.

What an endpoint refuses is compared with what the service says to a plain HTTP request. An endpoint that is
new needs one more step of a walk, in which it succeeds. Rows of the error table that the service cannot be
brought to on every endpoint (a fault, a conflict) are read from a stand-in as well.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from clients.generate.endpoints import Endpoint
from tests.clients.contract_walks import (
    AML_RULES,
    DOCUMENT,
    ENDPOINTS,
    Calls,
    Walk,
    rule_key,
    walk_aml,
    walk_aml_rules,
    walk_aml_settings,
    walk_features,
    walk_fraud,
    walk_jobs_of_rules,
    walk_lists,
    walk_reviews,
    walk_rule_sets,
    walk_snoozes,
    walk_webhooks_and_browser,
)
from tests.clients.three_clients import TYPESCRIPT, AsyncCalls, Given, NodeCalls, SyncCalls
from tests.learning.conftest import learner  # noqa: F401 - a fixture
from tests.live import Caller, Service, started
from tests.reviews.conftest import RULES, held
from tests.suggestions.test_suggestions_api import labelled  # noqa: F401 - a fixture
from vettance_client.errors import BY_STATUS
from vettance_client.testing import StandIn

OPERATIONS = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}


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
    def assert_refused(one: Endpoint) -> None:
        given = Given(unknown(one), example(one), token="x" if one.credential == "token" else None)
        assert_refused_alike(calls, live, one, given, None)

    # The service holds back each answer for a tenth of a second, and these hold for it together.
    with ThreadPoolExecutor(8) as together:
        guarded = (one for one in ENDPOINTS.values() if one.credential != "none")
        list(together.map(assert_refused, guarded))


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


#: Each endpoint with each refusal that the document has for it.
ROWS = [
    (one, int(status))
    for one in ENDPOINTS.values()
    for status in OPERATIONS[one.id]["responses"]
    if status >= "400"
]


def test_every_row_of_every_endpoint_is_read_alike(calls: Calls) -> None:
    assert {status for _, status in ROWS} == BY_STATUS.keys() - {405}
    with StandIn() as stand_in:
        # What no method of a client brings about: the wrong method.
        for one, status in (*ROWS, *((one, 405) for one in ENDPOINTS.values())):
            stand_in.fails(one.name, status, times=1, details={"requestId": "req_9", "retryAfter": 1000})
            given = Given(unknown(one), example(one), token="x" if one.credential == "token" else None)
            result = calls.call(stand_in.url, "key", one, given)
            kind = BY_STATUS[status]
            assert (result.error, result.status, result.code) == (kind.__name__, status, kind.code), one.name
            assert result.request_id == "req_9"
        assert len(stand_in.requests) == len(ROWS) + len(ENDPOINTS)


def key_of(service: Service, tenant: str, *scopes: str) -> str:
    """Make a key of some scopes, and wait until the service knows it."""
    options = [part for scope in scopes for part in ("--scope", scope)]
    key: str = service.cli("key", "create", "--tenant", tenant, *options, "--json")["apiKey"]
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).status != 401)
    return key


def test_a_key_without_the_scope_is_403_on_every_endpoint_that_has_one(calls: Calls, live: Service) -> None:
    keys = [key_of(live, live.tenant_id, scope) for scope in ("read", "review", "decide", "rules", "manage")]
    for one in ENDPOINTS.values():
        if one.credential == "key" and "403" in OPERATIONS[one.id]["responses"]:
            given = Given(unknown(one), example(one))
            closed = (key for key in keys if asked_plainly(live, one, given, key).status == 403)
            assert_refused_alike(calls, live, one, given, next(closed))


def test_a_full_throttle_is_429_on_every_endpoint(calls: Calls, live: Service) -> None:
    tenant, _ = live.new_tenant("Full", throttle=1)
    live.cli("tenant", "set", tenant, "--aml", "on")
    key = key_of(live, tenant, "decide", "rules", "review", "read", "manage")
    live.wait_for(lambda: live.get("/api/v1/aml/alerts", key=key).status == 429)
    asked = [one for one in ENDPOINTS.values() if one.credential == "key"]

    def is_open(one: Endpoint) -> bool:
        return calls.call(live.base_url, key, one, Given(unknown(one), example(one))).status != 429

    # The service holds back each answer for a tenth of a second, and these hold for it together.
    with ThreadPoolExecutor(8) as together:
        open_ = [one for one, found in zip(asked, together.map(is_open, asked), strict=True) if found]
    # Now and then there is room for one again.
    again = [one.name for one in open_ if is_open(one)]
    assert len(open_) < 5, open_
    assert not again


@pytest.fixture(scope="module")
def with_list(live: Service) -> Service:
    live.cli("watchlist", "import", "--source", "sample", "--json")
    given = Given(body={"inputName": "Nobody", "externalId": "n-1"})
    live.wait_for(lambda: asked_plainly(live, ENDPOINTS["screen"], given, live.api_key).status == 200, 20)
    return live


@pytest.mark.timeout(600)
def test_every_endpoint_succeeds(
    calls: Calls,
    with_list: Service,
    labelled: Caller,  # noqa: F811
    learner: Caller,  # noqa: F811
) -> None:
    kind = type(calls).__name__.lower()
    walk = Walk(calls, with_list, with_list.api_key)
    walk_fraud(walk, kind)
    walk_lists(walk, kind)
    walk_webhooks_and_browser(walk, kind)
    for name in ("get_health", "get_readiness", "get_openapi"):
        walk(name)
    walk_aml(walk, kind)
    walk_aml_settings(walk.by(key_of(with_list, with_list.tenant_id, "read", "manage")))
    steward = walk.by(rule_key(with_list, with_list.tenant_id))
    walk_rule_sets(steward, "aml_", AML_RULES, rule_key(with_list, with_list.tenant_id))
    walk_snoozes(steward, "aml_", "structuring")
    walk_aml_rules(steward)
    own = walk.of(labelled)
    walk_reviews(own, held(labelled))
    walk_rule_sets(own, "", RULES, rule_key(labelled.service, labelled.id))
    walk_snoozes(own, "", "large")
    walk_jobs_of_rules(own)
    model = walk.of(learner)
    version = model("list_models")["data"][0]["version"]
    assert model("list_models", rows=True)
    assert model("get_model", str(version))["version"] == version
    walk_features(model)
    assert walk.done == ENDPOINTS.keys()
