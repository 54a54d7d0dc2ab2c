"""The TypeScript client where there is no service, and its webhooks; the contract test covers the rest."""

import base64
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.three_clients import TYPESCRIPT, NodeCalls
from vettance_client import sign_webhook
from vettance_client.testing import StandIn

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (TYPESCRIPT / "dist" / "index.js").exists(),
    reason="the TypeScript client is not built: `make typescript` (needs Node 20 with npm)",
)
LOGIN = {"eventName": "user.login"}
SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


@pytest.fixture(scope="module")
def node() -> Iterator[NodeCalls]:
    node = NodeCalls()
    yield node
    node.close()


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as service:
        yield service


def ask(node: NodeCalls, url: str, method: str, *arguments: Any) -> dict[str, Any]:
    settings = {"baseUrl": url, "apiKey": "key", "retry": {"attempts": 3, "firstWaitMs": 1}}
    return node.ask({"settings": settings, "method": method, "args": list(arguments)})


@pytest.mark.parametrize("word", ["approve", "review", "deny"])
def test_a_shop_goes_on_when_nobody_answers(node: NodeCalls, stand_in: StandIn, word: str) -> None:
    stand_in.answers("evaluate", {}, delay_s=20)
    options = {"deadlineMs": 50, "onUnavailable": word}
    decision = ask(node, stand_in.url, "evaluate", LOGIN, options)["value"]
    assert (decision["decision"], decision["isFallback"]) == (word, True)
    assert decision["cause"]["error"] == "TimedOut"
    assert ask(node, stand_in.url, "evaluate", LOGIN, {"deadlineMs": 50})["error"] == "TimedOut"


def test_a_shop_goes_on_when_nobody_is_there(node: NodeCalls) -> None:
    with StandIn() as gone:
        url = gone.url
    decision = ask(node, url, "evaluate", LOGIN, {"onUnavailable": "review"})["value"]
    assert decision["cause"]["error"] == "ConnectionFailed"
    assert ask(node, url, "listEntries")["code"] == "CONNECTION_FAILED"


def test_a_wrong_key_is_thrown_all_the_same(node: NodeCalls, stand_in: StandIn) -> None:
    stand_in.fails("evaluate", 401)
    assert ask(node, stand_in.url, "evaluate", LOGIN, {"onUnavailable": "approve"})["error"] == "Unauthorized"


def test_a_fault_is_tried_again_with_the_same_idempotency_key(node: NodeCalls, stand_in: StandIn) -> None:
    stand_in.fails("evaluate", 503, details={"retryAfter": 0}, times=1)
    stand_in.fails("evaluate", 0, times=1)
    assert ask(node, stand_in.url, "evaluate", LOGIN)["value"]["isFallback"] is False
    keys = [request.headers["idempotency-key"] for request in stand_in.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(("status", "sent"), [(500, 1), (504, 1), (0, 1), (429, 3)])
def test_a_screening_is_never_sent_twice_blindly(
    node: NodeCalls, stand_in: StandIn, status: int, sent: int
) -> None:
    stand_in.fails("screen", status, details={"retryAfter": 0})
    assert "error" in ask(node, stand_in.url, "screen", {"inputName": "Anna", "externalId": "a"})
    assert len(stand_in.requests) == sent


def test_a_long_wait_is_left_to_the_caller(node: NodeCalls, stand_in: StandIn) -> None:
    stand_in.fails("list_entries", 429, details={"limit": 300, "retryAfter": 40})
    refused = ask(node, stand_in.url, "listEntries")
    assert (refused["error"], refused["retryAfterSeconds"], refused["details"]["limit"]) == (
        "QuotaExceeded",
        40,
        300,
    )
    assert len(stand_in.requests) == 1


def test_webhooks_are_verified(node: NodeCalls) -> None:
    body = json.dumps({"eventType": "E", "timestamp": "t", "data": {"id": "evt_1"}}).encode()
    headers = {"X-Webhook-Signature": sign_webhook(body, SECRET)}

    def verified(content: bytes, headers: dict[str, str], *options: Any) -> dict[str, Any]:
        arguments = [base64.b64encode(content).decode(), headers, SECRET, *options]
        return node.ask({"method": "verifyWebhook", "args": arguments})

    assert verified(body, headers)["value"]["id"] == "evt_1"
    assert verified(body + b" ", headers)["error"] == "BadSignature"
    assert verified(body, {})["error"] == "BadSignature"
    assert verified(body, headers, {"toleranceSeconds": 300})["error"] == "BadSignature"
