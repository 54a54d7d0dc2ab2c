"""What a key may do: each scope reaches its endpoints and no others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live import Answer, Caller, Service
from vettance.tenants.key_scope import SCOPES, KeyScope, lacking, read_scopes, stored_scopes

PAYMENT = {"eventName": "payment.attempt", "customer": {"externalId": "c-1"}}


@pytest.fixture(scope="module")
def tenant_id(service: Service) -> str:
    return service.new_tenant("Scopes")[0]


def caller(service: Service, tenant_id: str, *scopes: str) -> Caller:
    options = [part for scope in scopes for part in ("--scope", scope)]
    made = service.cli("key", "create", "--tenant", tenant_id, *options, "--json")
    return Caller(service, tenant_id, made["apiKey"])


def refused(answer: Answer) -> Any:
    """The scope that a refusal names."""
    assert answer.status == 403, answer.body
    error = answer.json["error"]
    assert error["code"] == "FORBIDDEN"
    assert error["details"]["reason"] == "insufficient_scope"
    assert "x-quota-remaining" in answer.headers
    return error["details"]["scope"]


def test_a_key_without_scopes_decides_as_every_key_did(service: Service, tenant_id: str) -> None:
    one = caller(service, tenant_id)
    assert one.post("/api/v1/decisions/evaluate", PAYMENT).status == 200
    for path in ("decisions", "lists", "reviews", "webhooks/subscriptions"):
        assert one.get(f"/api/v1/{path}").status == 200


def test_a_reading_key_changes_nothing(service: Service, tenant_id: str) -> None:
    one = caller(service, tenant_id, "read")
    for path in ("decisions", "lists", "reviews", "webhooks/subscriptions", "decisions/stats"):
        assert one.get(f"/api/v1/{path}").status == 200
    assert refused(one.post("/api/v1/decisions/evaluate", PAYMENT)) == "decide"
    assert refused(one.post("/api/v1/lists", {})) == "decide"
    assert refused(one.delete("/api/v1/lists/lst_1")) == "decide"
    assert refused(one.post("/api/v1/reviews/evt_1/settle", {})) == "review"


def test_scopes_add_up_and_reach_nothing_else(service: Service, tenant_id: str) -> None:
    reviewer = caller(service, tenant_id, "review")
    assert reviewer.get("/api/v1/reviews").status == 200
    assert refused(reviewer.get("/api/v1/decisions")) == "decide"
    manager = caller(service, tenant_id, "manage", "review")
    for path in ("lists", "webhooks/subscriptions", "reviews"):
        assert manager.get(f"/api/v1/{path}").status == 200
    assert refused(manager.post("/api/v1/events", PAYMENT)) == "decide"
    assert refused(caller(service, tenant_id, "rules").get("/api/v1/lists")) == "decide"


def test_a_refused_call_costs_nothing_and_a_key_keeps_its_scopes(service: Service, tenant_id: str) -> None:
    one = caller(service, tenant_id, "review")
    left = one.get("/api/v1/reviews").headers["x-ratelimit-remaining"]
    assert one.get("/api/v1/lists").headers["x-ratelimit-remaining"] == left
    listed = service.cli("key", "list", "--tenant", tenant_id, "--json")
    key = next(each for each in listed if each["scopes"] == ["review"] and each["revokedAt"] is None)
    rotated = service.cli("key", "rotate", key["keyId"], "--json")
    again = Caller(service, tenant_id, rotated["apiKey"])
    assert refused(again.get("/api/v1/lists")) == "decide"


@given(st.frozensets(st.sampled_from(KeyScope)))
def test_stored_scopes_are_read_as_they_were(scopes: frozenset[KeyScope]) -> None:
    assert read_scopes(stored_scopes(scopes)) == scopes


def test_what_was_never_said_is_decide_and_an_unknown_word_opens_nothing() -> None:
    assert read_scopes(None) == {KeyScope.DECIDE}
    assert read_scopes("later rules") == {KeyScope.RULES}
    assert lacking(read_scopes("later"), (KeyScope.REVIEW, KeyScope.DECIDE), "GET") is KeyScope.REVIEW
    assert set(SCOPES) == set(KeyScope)
