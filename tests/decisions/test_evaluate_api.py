"""Evaluate, ingest, and look up: called as a product calls them."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.live import Caller, Service

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
EVENT_ID = re.compile(r"evt_[0-9a-f]{32}")

LOGIN: dict[str, Any] = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "c-1", "email": "Anna@Example.com", "metadata": {"tier": "gold"}},
    "device": {"externalId": "d-1", "fingerprint": "fp-1"},
    "ip": "203.0.113.9",
    "userAgent": "Mozilla/5.0",
    "country": "DE",
    "sessionId": "s-1",
    "metadata": {"channel": "web"},
    "custom_fields": {"campaign": "spring"},
    "surprise": {"deep": [1, 2]},
    "tenantId": "ten_somebody_else",
}


def test_evaluate_answers_the_decision_result_of_the_specification(tenant: Caller) -> None:
    answer = tenant.post("/api/v1/decisions/evaluate", LOGIN, headers={"X-Request-Id": "my-request.1"})
    assert answer.status == 200, answer.body
    result = answer.json
    assert result["decision"] == "approve"
    assert isinstance(result["riskScore"], int)
    assert result["riskLevel"] == "low"
    assert result["reasonCodes"] == []
    assert result["recommendedActions"] == []
    assert result["ruleVersion"] == {"version": "1"}
    assert MOMENT.fullmatch(result["evaluatedAt"])
    ids = result["correlationIds"]
    assert EVENT_ID.fullmatch(ids.pop("eventId"))
    assert ids == {"requestId": "my-request.1", "customerId": "c-1", "deviceFingerprint": "fp-1"}


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/events/ingest"])
def test_ingest_answers_the_synchronous_result_of_the_specification(tenant: Caller, path: str) -> None:
    answer = tenant.post(path, LOGIN)
    assert answer.status == 201, answer.body
    result = answer.json
    assert set(result) == {
        "eventId",
        "decision",
        "score",
        "eventCategory",
        "rulesEvaluated",
        "receivedAt",
        "processingTimeMs",
    }
    assert result["decision"] == "ALLOW"
    assert result["eventCategory"] == "AUTHENTICATION"
    assert result["rulesEvaluated"] >= 40
    assert MOMENT.fullmatch(result["receivedAt"])
    if path.endswith("ingest"):
        assert "deprecation" in answer.headers
        assert 'rel="successor-version"' in answer.headers["link"]


def test_the_smallest_event_is_a_name_alone(tenant: Caller) -> None:
    answer = tenant.post("/api/v1/events", {"eventName": "anything"})
    assert answer.status == 201
    assert answer.json["eventCategory"] == "OTHER"


def test_a_decision_can_be_looked_up_and_explained(tenant: Caller) -> None:
    made = tenant.post("/api/v1/decisions/evaluate", LOGIN).json
    event_id = made["correlationIds"]["eventId"]
    record = tenant.get(f"/api/v1/decisions/{event_id}").json
    assert set(record) == {"id", "inputs", "outputs", "linkedEntities", "feedback", "evaluatedAt", "review"}
    assert record["id"] == event_id
    assert record["evaluatedAt"] == made["evaluatedAt"]
    assert record["inputs"]["eventName"] == "user.login"
    assert record["inputs"]["event"]["surprise"] == {"deep": [1, 2]}
    assert "tenantId" not in record["inputs"]
    assert record["inputs"]["features"]["ip"] == "203.0.113.9"
    outputs = record["outputs"]
    assert outputs["decision"] == made["decision"]
    assert outputs["riskScore"] == made["riskScore"]
    assert outputs["riskLevel"] == made["riskLevel"]
    assert outputs["reasonCodes"] == made["reasonCodes"]
    assert outputs["recommendedActions"] == made["recommendedActions"]
    assert outputs["ruleVersion"] == made["ruleVersion"]
    assert set(outputs["rules"][0]) == {"ruleId", "ruleName", "matched", "score", "mode"}
    assert outputs["lists"] == []
    assert outputs["model"] is None


def test_an_event_is_shown_as_sent_with_what_was_decided(tenant: Caller) -> None:
    made = tenant.post("/api/v1/events", LOGIN).json
    event = tenant.get(f"/api/v1/events/{made['eventId']}").json
    sent = {key: value for key, value in LOGIN.items() if key != "tenantId"}
    assert {key: event[key] for key in sent} == sent
    assert event["id"] == made["eventId"]
    assert event["source"] == "events"
    assert event["decision"] == made["decision"]
    assert event["score"] == made["score"]
    assert event["receivedAt"] == made["receivedAt"]
    assert event["processingTimeMs"] == made["processingTimeMs"]
    assert event["outputs"] == {"model": None}, "without a model, as the decision says it"
    assert event["feedback"] == []
    assert tenant.get(f"/api/v1/decisions/{made['eventId']}").status == 200


@pytest.mark.parametrize("sent", [{}, {"eventCategory": None}])
def test_an_event_without_a_category_is_shown_with_the_default(tenant: Caller, sent: dict[str, None]) -> None:
    made = tenant.post("/api/v1/events", {"eventName": "page.view", **sent}).json
    assert made["eventCategory"] == "OTHER"
    assert tenant.get(f"/api/v1/events/{made['eventId']}").json["eventCategory"] == "OTHER"


def test_linked_entities_count_what_was_seen_together(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Links"))
    for number in range(5):
        tenant.post(
            "/api/v1/events",
            {
                "eventName": "page.view",
                "customer": {"externalId": f"c-{number % 3}"},
                "device": {"fingerprint": f"fp-{number % 2}"},
                "ip": "203.0.113.50",
                "sessionId": "s",
            },
        )
    last = tenant.post(
        "/api/v1/events",
        {"eventName": "page.view", "customer": {"externalId": "c-0"}, "ip": "203.0.113.50"},
    ).json
    linked = tenant.get(f"/api/v1/decisions/{last['eventId']}").json["linkedEntities"]
    assert set(linked) == {"customer", "ip"}
    assert (linked["ip"]["id"], linked["ip"]["events"]) == ("203.0.113.50", 6)
    assert (linked["ip"]["customers"], linked["ip"]["devices"]) == (3, 2)
    assert (linked["customer"]["events"], linked["customer"]["devices"]) == (3, 2)
    assert MOMENT.fullmatch(linked["ip"]["firstSeenAt"])
    assert linked["ip"]["firstSeenAt"] <= linked["ip"]["lastSeenAt"]


def test_another_tenants_event_is_as_absent_as_one_that_never_was(tenant: Caller, other: Caller) -> None:
    made = tenant.post("/api/v1/events", LOGIN).json["eventId"]
    for path in ("decisions", "events"):
        theirs = other.get(f"/api/v1/{path}/{made}")
        nobodys = other.get(f"/api/v1/{path}/evt_{'0' * 32}")
        malformed = other.get(f"/api/v1/{path}/evt_x%2Fy")
        assert theirs.status == nobodys.status == malformed.status == 404
        assert theirs.body == nobodys.body == malformed.body


def test_velocity_does_not_see_another_tenants_events(tenant: Caller, other: Caller) -> None:
    event = {"eventName": "user.login_failed", "ip": "198.18.3.3"}
    for number in range(30):
        tenant.post("/api/v1/events", {**event, "customer": {"externalId": f"c-{number}"}})
    assert other.post("/api/v1/events", event).json["decision"] == "ALLOW"


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ({}, 400, {"eventName"}),
        ({"eventName": ""}, 400, {"eventName"}),
        ({"eventName": None}, 400, {"eventName"}),
        (
            {"eventName": 5, "ip": 5, "customer": 5, "metadata": []},
            400,
            {"eventName", "ip", "customer", "metadata"},
        ),
        ({"eventName": "x", "eventCategory": "MONEY"}, 400, {"eventCategory"}),
        ({"eventName": "x", "eventCategory": "authentication"}, 400, {"eventCategory"}),
        ({"eventName": "x" * 1025}, 400, {"eventName"}),
        (
            {"eventName": "x", "customer": {"externalId": 5, "email": []}},
            400,
            {"customer.externalId", "customer.email"},
        ),
        ({"eventName": "x", "device": {"fingerprint": {}}}, 400, {"device.fingerprint"}),
        ({"eventName": "x", "metadata": {"a": "y" * 33_000}}, 422, {"metadata"}),
        ({"eventName": "x", "custom_fields": {str(n): n for n in range(501)}}, 422, {"custom_fields"}),
        ({"eventName": "x", "occurredAt": "2001-01-01T00:00:00Z"}, 422, {"occurredAt"}),
        ({"eventName": "x", "metadata": {"occurredAt": "whenever"}}, 422, {"metadata.occurredAt"}),
    ],
)
def test_a_bad_event_is_refused_naming_every_fault(
    tenant: Caller, body: dict[str, Any], status: int, fields: set[str]
) -> None:
    for path in ("events", "decisions/evaluate"):
        answer = tenant.post(f"/api/v1/{path}", body)
        assert answer.status == status, answer.body
        assert set(answer.json["error"]["details"]) == fields


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_depth_counts_from_the_object_itself(tenant: Caller) -> None:
    assert tenant.post("/api/v1/events", {"eventName": "x", "payload": nested(10)}).status == 201
    answer = tenant.post("/api/v1/events", {"eventName": "x", "payload": nested(11)})
    assert answer.status == 422
    assert set(answer.json["error"]["details"]) == {"payload"}
    deep = b'{"eventName":"x","payload":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"
    answer = tenant.post("/api/v1/events", deep)
    assert answer.status == 422
    assert set(answer.json["error"]["details"]) == {"payload"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b'{"eventName":"x"} {}',
        b'\xef\xbb\xbf{"eventName":"x"}',
        b'{"eventName":"\\u0000"}',
        b'{"eventName":"x","metadata":{"a\\u0000":1}}',
        b'{"eventName":"\\ud800"}',
        b'{"eventName":"\xff"}',
        b'{"eventName":"x","metadata":{"a":NaN}}',
        b'{"eventName":"x","metadata":{"a":Infinity}}',
        b'{"eventName":"x","metadata":{"a":18446744073709551616}}',
        b'{"eventName":"x","metadata":{"a":-9223372036854775809}}',
        b'{"eventName":"x","metadata":{"a":1e400}}',
        b"{'eventName':'x'}",
    ],
)
def test_what_no_store_can_keep_is_400(tenant: Caller, body: bytes) -> None:
    answer = tenant.post("/api/v1/events", body)
    assert answer.status == 400, answer.body
    assert answer.json["error"]["code"] == "VALIDATION_ERROR"


def test_of_duplicate_members_the_last_wins(tenant: Caller) -> None:
    made = tenant.post("/api/v1/events", b'{"eventName":"first","eventName":"last"}').json
    assert tenant.get(f"/api/v1/events/{made['eventId']}").json["eventName"] == "last"


def test_the_session_may_stand_in_the_metadata(tenant: Caller) -> None:
    event = {"eventName": "x", "metadata": {"sessionId": "inner"}}
    made = tenant.post("/api/v1/events", event).json
    linked = tenant.get(f"/api/v1/decisions/{made['eventId']}").json["linkedEntities"]
    assert linked["session"]["id"] == "inner"


def test_twenty_failed_logins_from_one_address_do_not_go_through(tenant: Caller) -> None:
    decisions = [
        tenant.post(
            "/api/v1/decisions/evaluate",
            {"eventName": "user.login_failed", "ip": "198.18.5.5", "customer": {"externalId": f"v-{number}"}},
        ).json["decision"]
        for number in range(20)
    ]
    assert decisions[0] == "approve"
    assert decisions[-1] in ("review", "deny")


def test_the_memory_survives_a_restart_and_a_kill(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)

    def attack(start: int, count: int) -> list[str]:
        return [
            tenant.post(
                "/api/v1/events",
                {"eventName": "user.login_failed", "ip": "198.18.6.6", "customer": {"externalId": f"v-{n}"}},
            ).json["decision"]
            for n in range(start, start + count)
        ]

    through = attack(0, 25)
    assert through[-1] != "ALLOW"
    assert own_service.stop() == 0
    own_service.start()
    assert attack(25, 1) != ["ALLOW"]
    own_service.stop(9)
    own_service.start()
    assert attack(26, 1) != ["ALLOW"]


def test_simultaneous_events_of_one_key_see_each_other_exactly_once(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    rules = own_service.data / "rules.yaml"
    rules.write_text(
        """
name: counting
rules:
  - id: seen-before
    name: Seen before
    when: count(by=customer.external_id, within="1h") >= 0
    score: 0
    reason: SEEN
    explanation: Counts.
    tests:
      - name: always
        event: {eventName: x, customer: {externalId: c}}
        fires: true
      - name: nobody
        event: {eventName: x}
        fires: false
""",
        "utf-8",
    )
    own_service.cli("rules", "push", str(rules), "--yes", "--tenant", own_service.tenant_id)

    def version() -> str:
        answer = tenant.post("/api/v1/decisions/evaluate", {"eventName": "x"})
        return str(answer.json["ruleVersion"]["version"])

    own_service.wait_for(lambda: version() == "2")
    body = {"eventName": "x", "customer": {"externalId": "hot"}}
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: tenant.post("/api/v1/events", body).json["eventId"], range(100)))
    counts = []
    for event_id in made:
        features = tenant.get(f"/api/v1/decisions/{event_id}").json["inputs"]["features"]
        counts += [value for name, value in features.items() if name.startswith("count(")]
    assert sorted(counts) == list(range(100))


def test_event_time_goes_by_what_the_caller_says(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    now = time.time()
    for number in range(25):
        answer = tenant.post(
            "/api/v1/events",
            {
                "eventName": "user.login_failed",
                "ip": "198.18.9.9",
                "customer": {"externalId": f"v-{number}"},
                "occurredAt": now - (25 - number) * 86_400,
            },
        )
        assert answer.json["decision"] == "ALLOW", "one failed login a day is no attack"


@pytest.mark.parametrize("path", ["decisions/evaluate", "events", "events/async"])
def test_undeclared_members_are_kept_whatever_they_hold(tenant: Caller, path: str) -> None:
    basket = [{"sku": f"s-{line}", "price": 4.5, "count": 1} for line in range(1_000)]
    for member in (nested(100), "y" * 150_000, basket):
        for body in ({"note": member}, {"customer": {"note": member}}):
            answer = tenant.post(f"/api/v1/{path}", {"eventName": "x", **body})
            assert answer.status < 300, answer.body
    for member in ([[]] * 200_000, {str(key): key for key in range(50_000)}, nested(300)):
        answer = tenant.post(
            f"/api/v1/{path}", {"eventName": "x", "note": member, "customer": {"note": [1]}, "tiny": 1}
        )
        assert answer.status < 300, answer.body
        said = answer.json
        if event_id := said.get("eventId") or said.get("correlationIds", {}).get("eventId"):
            stored = tenant.get(f"/api/v1/events/{event_id}").json
            assert (json.loads(stored["note"]), stored["tiny"]) == (member, 1)
            assert stored["customer"] == {"note": [1]}


def test_blanks_and_overwritten_members_are_not_kept(tenant: Caller) -> None:
    padded = b'{"eventName":"x","ballast":"' + b"y" * 400_000 + b'",' + b" " * 400_000 + b'"ballast":[1.5]}'
    answer = tenant.post("/api/v1/events", padded)
    assert answer.status == 201, answer.body
    stored = tenant.get(f"/api/v1/events/{answer.json['eventId']}")
    assert stored.json["ballast"] == [1.5]
    sizes = tenant.service.rows("SELECT length(sent) FROM event ORDER BY id DESC LIMIT 1")
    assert sizes[0][0] < 300_000
