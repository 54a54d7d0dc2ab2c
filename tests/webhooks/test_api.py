"""The webhook endpoints, called as a tenant calls them."""

import base64
import hashlib
import hmac
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, run_cli, started
from tests.webhooks.sink import Sink, sinking

ROOT = "/api/v1/webhooks"
ALL = [
    "EVENT_RISK_EVALUATED",
    "EVENT_FEEDBACK_SUBMITTED",
    "BLOCKLIST_ENTRY_ADDED",
    "BLOCKLIST_ENTRY_REMOVED",
]


@pytest.fixture
def sink() -> Iterator[Sink]:
    with sinking() as running:
        yield running


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that may deliver to this machine."""
    running = started(tmp_path_factory.mktemp("unsafe"), VETTANCE_UNSAFE_WEBHOOKS="1")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def ours(unsafe: Service) -> Caller:
    return Caller(unsafe, *unsafe.new_tenant())


@pytest.fixture
def mine(ours: Caller) -> Iterator[Caller]:
    """A tenant without subscriptions, before and after."""
    yield ours
    for one in ours.get(f"{ROOT}/subscriptions").json["subscriptions"]:
        assert ours.delete(f"{ROOT}/subscriptions/{one['id']}").status == 200


def subscribe(caller: Caller, url: str, types: list[str] | None = None) -> dict[str, Any]:
    answer = caller.post(f"{ROOT}/subscriptions", {"url": url, "eventTypes": types or ALL})
    assert answer.status == 201, answer.body
    return answer.json


def deliveries(caller: Caller, subscription: str, query: str = "") -> list[dict[str, Any]]:
    return caller.get(f"{ROOT}/subscriptions/{subscription}/deliveries{query}").json["data"]


def settled(caller: Caller, subscription: str, count: int, state: str = "delivered") -> list[dict[str, Any]]:
    until = time.monotonic() + 10
    while True:
        found = deliveries(caller, subscription, f"?state={state}")
        if len(found) >= count:
            return found
        assert time.monotonic() < until, found
        time.sleep(0.02)


def test_subscribing_answers_the_secret_once(mine: Caller) -> None:
    made = subscribe(mine, "https://hooks.example.com/in", ["EVENT_RISK_EVALUATED", "EVENT_RISK_EVALUATED"])
    assert made["id"].startswith("whs_")
    assert made["status"] == "ACTIVE"
    assert made["eventTypes"] == ["EVENT_RISK_EVALUATED"]
    assert made["lastTriggeredAt"] is None
    secret = made.pop("signingSecret")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    listed = mine.get(f"{ROOT}/subscriptions").json
    assert listed == {"subscriptions": [made]}
    one = mine.get(f"{ROOT}/subscriptions/{made['id']}").json
    assert one.pop("rotation") == {"prepared": False, "formerSecretExpiresAt": None}
    assert one.pop("health")["state"] == "idle"
    assert one == made


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ({}, 400, {"url", "eventTypes"}),
        ({"url": "", "eventTypes": []}, 400, {"url", "eventTypes"}),
        ({"url": 7, "eventTypes": "ALL"}, 400, {"url", "eventTypes"}),
        ({"url": "https://a.example/", "eventTypes": ["EVENT"]}, 400, {"eventTypes.0"}),
        ({"url": "https://a.example/" + "x" * 1024, "eventTypes": ALL}, 400, {"url"}),
        ({"url": "ftp://a.example/", "eventTypes": ALL}, 422, {"url"}),
        ({"url": "no url", "eventTypes": ALL}, 422, {"url"}),
    ],
)
def test_a_bad_subscription_is_refused_naming_every_fault(
    mine: Caller, body: dict[str, Any], status: int, fields: set[str]
) -> None:
    answer = mine.post(f"{ROOT}/subscriptions", body)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]["details"]) == fields


@pytest.mark.parametrize(
    "url",
    ["http://hooks.example.com/", "https://127.0.0.1/", "https://localhost/", "https://169.254.169.254/"],
)
def test_http_and_local_receivers_are_refused_where_nothing_says_unsafe(tenant: Caller, url: str) -> None:
    answer = tenant.post(f"{ROOT}/subscriptions", {"url": url, "eventTypes": ALL})
    assert answer.status == 422
    assert set(answer.json["error"]["details"]) == {"url"}
    assert url not in answer.body.decode()


def test_another_tenants_subscription_is_not_found(mine: Caller, unsafe: Service) -> None:
    made = subscribe(mine, "https://hooks.example.com/in")
    stranger = Caller(unsafe, *unsafe.new_tenant("Stranger"))
    nobodys = "whs_" + "0" * 32
    for path in ("", "/deliveries"):
        theirs = stranger.get(f"{ROOT}/subscriptions/{made['id']}{path}")
        assert theirs.status == 404
        assert theirs.body == stranger.get(f"{ROOT}/subscriptions/{nobodys}{path}").body
    for path, body in (("/test", None), ("/replay", {}), ("/rotate-secret", {"phase": "prepare"})):
        assert stranger.post(f"{ROOT}/subscriptions/{made['id']}{path}", body).status == 404
    assert stranger.delete(f"{ROOT}/subscriptions/{made['id']}").status == 404
    assert mine.get(f"{ROOT}/subscriptions/{made['id']}").status == 200
    assert mine.get(f"{ROOT}/subscriptions/whs_bad").status == 404
    assert stranger.get(f"{ROOT}/subscriptions").json == {"subscriptions": []}


def test_without_a_key_nothing_is_told(service: Service) -> None:
    assert service.call("GET", f"{ROOT}/subscriptions", key=None).status == 401


def test_a_removed_subscription_is_gone_and_hears_nothing_more(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url)
    answer = mine.delete(f"{ROOT}/subscriptions/{made['id']}")
    assert answer.status == 200
    assert answer.json["success"] is True
    assert mine.delete(f"{ROOT}/subscriptions/{made['id']}").status == 404
    mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"})
    time.sleep(0.3)
    assert sink.got == []


def test_each_kind_of_event_is_told_as_specified(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url)
    entry = mine.post(
        "/api/v1/lists", {"type": "IP", "value": "198.51.100.7", "listType": "block", "reason": "bad"}
    ).json
    allowed = mine.post("/api/v1/lists", {"type": "EMAIL", "value": "a@b.example", "listType": "allow"}).json
    decided = mine.post(
        "/api/v1/decisions/evaluate",
        {"eventName": "user.login", "ip": "198.51.100.7", "customer": {"externalId": "c-1"}},
    ).json
    ingested = mine.post("/api/v1/events", {"eventName": "user.login"}).json
    mine.delete(f"/api/v1/lists/{entry['id']}")
    mine.delete(f"/api/v1/lists/{allowed['id']}")
    sink.wait(4)
    for headers, body in sink.got:
        digest = hmac.new(made["signingSecret"].encode(), body, hashlib.sha256).hexdigest()
        assert headers["x-webhook-signature"] == f"sha256={digest}"
        assert headers["content-type"] == "application/json"
        assert headers["x-webhook-attempt"] == "1"
        assert json.loads(body)["eventType"] == headers["x-webhook-event-type"]
    (added,) = sink.of("BLOCKLIST_ENTRY_ADDED")
    wanted = ("id", "type", "value", "listType", "reason", "createdAt")
    assert added["data"] == {name: entry[name] for name in wanted}
    (removed,) = sink.of("BLOCKLIST_ENTRY_REMOVED")
    assert set(removed["data"]) == {"id", "type", "value", "listType", "deletedAt"}
    assert removed["data"]["id"] == entry["id"]
    told = {one["data"]["id"]: one["data"] for one in sink.of("EVENT_RISK_EVALUATED")}
    assert set(told) == {decided["correlationIds"]["eventId"], ingested["eventId"]}
    one = told[decided["correlationIds"]["eventId"]]
    assert one["decision"] == decided["decision"] == "deny"
    assert (one["riskScore"], one["riskLevel"]) == (decided["riskScore"], decided["riskLevel"])
    assert one["evaluatedAt"] == decided["evaluatedAt"]
    assert [reason["code"] for reason in one["reasonCodes"]] == [
        reason["code"] for reason in decided["reasonCodes"]
    ]
    (listed,) = (reason for reason in one["reasonCodes"] if reason["code"] == "BLOCKLIST_MATCH")
    assert (listed["ruleId"], listed["ruleName"]) == ("blocklist", "Block list")
    assert one["correlationIds"] == {
        "requestId": decided["correlationIds"]["requestId"],
        "eventId": decided["correlationIds"]["eventId"],
        "customerId": "c-1",
    }
    settled(mine, made["id"], 4)
    assert mine.get(f"{ROOT}/subscriptions/{made['id']}").json["lastTriggeredAt"] is not None


def test_the_log_shows_every_attempt_and_a_replay_sends_the_same_again(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url, ["EVENT_RISK_EVALUATED"])
    sink.status = 500
    mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"})
    sink.wait(1)
    (waiting,) = settled(mine, made["id"], 1, "pending")
    until = time.monotonic() + 5
    while not waiting["attempts"]:
        assert time.monotonic() < until
        (waiting,) = deliveries(mine, made["id"])
    (attempt,) = waiting["attempts"]
    assert (attempt["statusCode"], attempt["error"], attempt["answer"]) == (500, "status", "taken")
    assert attempt["durationMs"] >= 0
    assert waiting["nextAttemptAt"] > attempt["startedAt"]
    health = mine.get(f"{ROOT}/subscriptions/{made['id']}").json["health"]
    assert (health["state"], health["pending"], health["failuresInARow"]) == ("failing", 1, 1)
    sink.status = 204
    answer = mine.post(f"{ROOT}/deliveries/{waiting['id']}/replay")
    assert answer.status == 200, answer.body
    assert answer.json["state"] == "pending"
    (done,) = settled(mine, made["id"], 1)
    assert [one["number"] for one in done["attempts"]] == list(range(1, len(done["attempts"]) + 1))
    assert done["attempts"][-1]["statusCode"] == 204
    assert len({(headers["webhook-id"], body) for headers, body in sink.got}) == 1
    again = mine.post(f"{ROOT}/deliveries/{waiting['id']}/replay")
    assert again.status == 200
    sink.wait(3)
    assert sink.got[-1][0]["x-webhook-attempt"] == "1"


def test_a_replay_of_an_unknown_delivery_is_not_found(mine: Caller) -> None:
    assert mine.post(f"{ROOT}/deliveries/dlv_{'0' * 32}/replay").status == 404
    assert mine.post(f"{ROOT}/deliveries/nothing/replay").status == 404


def test_replaying_in_bulk_takes_a_span_and_a_state(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url, ["EVENT_RISK_EVALUATED"])
    for _ in range(3):
        mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"})
    found = settled(mine, made["id"], 3)
    path = f"{ROOT}/subscriptions/{made['id']}/replay"
    assert mine.post(path, {}).json["replayed"] == 0, "all of them arrived"
    assert mine.post(path, {"state": "delivered", "until": found[-1]["createdAt"]}).json["replayed"] == 0
    answer = mine.post(path, {"state": "delivered", "since": found[0]["createdAt"]}).json
    assert answer["replayed"] >= 1
    assert answer["complete"] is True
    sink.wait(3 + answer["replayed"])
    for body, status in (
        ({"since": "soon"}, 422),
        ({"since": []}, 400),
        ({"state": "gone"}, 400),
        ({"since": 2, "until": 1}, 400),
    ):
        assert mine.post(path, body).status == status


def test_pages_of_the_log_neither_repeat_nor_skip(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url, ["EVENT_RISK_EVALUATED"])
    for _ in range(7):
        mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"})
    all_ids = [one["id"] for one in settled(mine, made["id"], 7)]
    paged = [one["id"] for page in (1, 2, 3) for one in deliveries(mine, made["id"], f"?limit=3&page={page}")]
    assert paged == all_ids
    for order, expected in (("desc", all_ids), ("asc", all_ids[::-1])):
        path, cursor, followed = (
            f"{ROOT}/subscriptions/{made['id']}/deliveries?sortOrder={order}&limit=3",
            "",
            [],
        )
        while True:
            answer = mine.get(path + cursor).json
            assert answer["total"] == 7
            followed += [one["id"] for one in answer["data"]]
            if not answer["hasMore"]:
                break
            cursor = "&cursor=" + answer["nextCursor"]
        assert followed == expected
    assert mine.get(path + "&cursor=x").status == 400
    assert mine.get(path + "&state=gone").status == 400


def test_a_test_delivery_answers_with_the_receivers_status(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url, ["BLOCKLIST_ENTRY_REMOVED", "EVENT_RISK_EVALUATED"])
    path = f"{ROOT}/subscriptions/{made['id']}/test"
    answer = mine.post(path)
    assert answer.status == 200
    assert (answer.json["success"], answer.json["statusCode"]) == (True, 200)
    sink.status = 418
    assert (mine.post(path).json["success"], mine.post(path).json["statusCode"]) == (False, 418)
    envelope = json.loads(sink.got[0][1])
    assert envelope["eventType"] == "BLOCKLIST_ENTRY_REMOVED"
    assert envelope["data"]["test"] is True
    assert len(sink.got) == 3, "sent once each"
    away = subscribe(mine, "http://127.0.0.1:1/")
    answer = mine.post(f"{ROOT}/subscriptions/{away['id']}/test")
    assert answer.status == 200
    assert (answer.json["success"], answer.json["statusCode"]) == (False, 0)


def test_a_secret_is_rotated_in_two_phases_without_a_gap(mine: Caller, sink: Sink) -> None:
    made = subscribe(mine, sink.url)
    path = f"{ROOT}/subscriptions/{made['id']}"
    assert mine.post(f"{path}/rotate-secret", {"phase": "promote"}).json["error"]["details"] == {
        "reason": "not_prepared"
    }
    for body in ({}, {"phase": "begin"}, {"phase": 1}):
        assert mine.post(f"{path}/rotate-secret", body).status == 400
    old, new = (
        made["signingSecret"],
        mine.post(f"{path}/rotate-secret", {"phase": "prepare"}).json["signingSecret"],
    )
    assert mine.get(path).json["rotation"]["prepared"] is True

    def signers() -> tuple[list[str], list[str]]:
        """Who signed the newest delivery: by the plain header, by the standard one."""
        assert mine.post(f"{path}/test").json["success"] is True
        headers, body = sink.got[-1]
        plain, standard = [], []
        for name, secret in (("old", old), ("new", new)):
            if (
                headers["x-webhook-signature"]
                == "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            ):
                plain.append(name)
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            key = base64.b64decode(secret.removeprefix("whsec_"))
            mark = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            if mark in headers["webhook-signature"].split(" "):
                standard.append(name)
        return plain, standard

    assert signers() == (["old"], ["old", "new"])
    promoted = mine.post(f"{path}/rotate-secret", {"phase": "promote"}).json
    assert "signingSecret" not in promoted
    assert promoted["formerSecretExpiresAt"] == mine.get(path).json["rotation"]["formerSecretExpiresAt"]
    assert signers() == (["new"], ["old", "new"])
    assert mine.post(f"{path}/rotate-secret", {"phase": "promote"}).status == 409


def test_secrets_are_not_stored_in_the_clear(mine: Caller, unsafe: Service) -> None:
    body, key = {"url": "https://hooks.example.com/in", "eventTypes": ALL}, {"Idempotency-Key": "once"}
    first = mine.post(f"{ROOT}/subscriptions", body, headers=key)
    assert first.status == 201
    assert mine.post(f"{ROOT}/subscriptions", body, headers=key).body == first.body
    secret = first.json["signingSecret"]
    material = base64.b64decode(secret.removeprefix("whsec_"))
    for path in unsafe.data.iterdir():
        if path.is_file():
            content = path.read_bytes()
            assert secret.encode() not in content
            assert material not in content


def test_unsafe_is_refused_in_production_and_said_loudly_elsewhere(unsafe: Service, tmp_path: Path) -> None:
    assert any("VETTANCE_UNSAFE_WEBHOOKS" in line and "WARNING" in line for line in unsafe.log)
    done = run_cli(
        tmp_path,
        "serve",
        "--port",
        "0",
        ok=False,
        env={"VETTANCE_ENV": "production", "VETTANCE_SECRET": "ab" * 32, "VETTANCE_UNSAFE_WEBHOOKS": "1"},
    )
    assert done.returncode != 0
    assert "VETTANCE_UNSAFE_WEBHOOKS" in done.stderr


def test_what_was_committed_is_delivered_after_a_kill(tmp_path: Path, sink: Sink) -> None:
    running = started(tmp_path / "killed", VETTANCE_UNSAFE_WEBHOOKS="1")
    mine = Caller(running, running.tenant_id, running.api_key)
    try:
        subscribe(mine, sink.url)
        told = [
            mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"}).json["correlationIds"][
                "eventId"
            ]
            for _ in range(20)
        ]
        running.stop(signal.SIGKILL)
        running.start()
        until = time.monotonic() + 10
        while {one["data"]["id"] for one in sink.of("EVENT_RISK_EVALUATED")} < set(told):
            assert time.monotonic() < until
            time.sleep(0.02)
        started_at = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - started_at < 15
    finally:
        if running.process is not None:
            running.stop(signal.SIGKILL)


@pytest.mark.slow
def test_a_stop_takes_no_longer_than_promised_though_a_receiver_hangs(tmp_path: Path) -> None:
    running = started(tmp_path / "hanging", VETTANCE_UNSAFE_WEBHOOKS="1")
    mine = Caller(running, running.tenant_id, running.api_key)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        hanging.settimeout(10)
        made = subscribe(mine, f"http://127.0.0.1:{hanging.getsockname()[1]}/")
        mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"})
        connection, _ = hanging.accept()
        with connection:
            started_at = time.monotonic()
            assert running.stop() == 0
            assert time.monotonic() - started_at < 15
        running.start()
        (waiting,) = deliveries(mine, made["id"])
        assert waiting["attempts"][0]["error"] == "timeout"
        assert running.stop(signal.SIGKILL) != 0
