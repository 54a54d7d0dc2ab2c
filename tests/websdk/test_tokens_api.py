"""POST /websdk/tokens: who may mint, what is minted, when it stops working."""

import base64
import json
import time
from typing import Any

import jwt
import pytest

from tests.live import Answer, Caller, Service
from tests.websdk.conftest import ORIGIN, Page

PATH = "/api/v1/websdk/tokens"


def claims_of(token: str) -> dict[str, Any]:
    return jwt.decode(token, options={"verify_signature": False})


def test_a_token_carries_the_claims_of_the_contract(tenant: Caller) -> None:
    sent = {
        "sdkSessionId": "s-1",
        "tenantSessionId": "t-1",
        "origin": "HTTPS://Shop.Example:443/",
        "flow": "checkout",
        "userExternalId": "u-1",
    }
    before_s = int(time.time())
    answer = tenant.post(PATH, sent)
    assert answer.status == 201, answer.body
    assert set(answer.json) == {"token", "expiresAt", "sdkSessionId"}
    assert answer.json["sdkSessionId"] == "s-1"
    header = jwt.get_unverified_header(answer.json["token"])
    assert (header["alg"], header["typ"]) == ("HS256", "JWT")
    assert header["kid"]
    claims = claims_of(answer.json["token"])
    assert claims["sub"] == tenant.id
    assert claims["origin"] == "https://shop.example"
    assert {name: claims[name] for name in ("sdkSessionId", "tenantSessionId", "flow", "userExternalId")} == {
        name: sent[name] for name in ("sdkSessionId", "tenantSessionId", "flow", "userExternalId")
    }
    assert claims["exp"] - claims["iat"] == 900
    assert before_s <= claims["iat"] <= time.time()
    expires = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(claims["exp"]))
    assert answer.json["expiresAt"] == expires


def test_everything_is_optional_and_a_session_is_made(tenant: Caller) -> None:
    first, second = (tenant.post(PATH, body).json for body in ({}, None))
    assert first["sdkSessionId"] != second["sdkSessionId"]
    page = Page(tenant, origin=None)
    for origin in ("https://anywhere.example", "null"):
        assert page.collect().status == 200
        assert (
            page.post("/collect", {"sessionId": page.session, "category": "OTHER"}, Origin=origin).status
            == 200
        )


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"origin": 5}, 400, "origin"),
        ({"sdkSessionId": []}, 400, "sdkSessionId"),
        ({"flow": "x" * 1025}, 400, "flow"),
        ({"origin": "null"}, 422, "origin"),
        ({"origin": "shop.example"}, 422, "origin"),
        ({"origin": "https://shop.example/path"}, 422, "origin"),
        ({"origin": "https://user@shop.example"}, 422, "origin"),
        ({"origin": "https://shop.example:99999"}, 422, "origin"),
    ],
)
def test_a_bad_member_is_named(tenant: Caller, body: Any, status: int, field: str) -> None:
    answer = tenant.post(PATH, body)
    assert answer.status == status, answer.body
    assert field in answer.json["error"]["details"]


def test_minting_takes_an_api_key_and_nothing_else(service: Service, page: Page) -> None:
    assert service.call("POST", PATH, {}, key=None).status == 401
    assert service.call("POST", PATH, {}, key="vtc_test_nobody").status == 401
    assert page.post("/websdk/tokens", {}).status == 401


def test_a_token_may_be_minted_again_for_the_same_session(tenant: Caller) -> None:
    for page in (Page(tenant, sdkSessionId="twice"), Page(tenant, sdkSessionId="twice")):
        assert page.session == "twice"
        assert page.collect().status == 200


def test_a_retry_with_the_same_idempotency_key_gets_the_same_token(tenant: Caller) -> None:
    first, second = (tenant.post(PATH, {}, headers={"Idempotency-Key": "mint-1"}) for _ in range(2))
    assert first.json == second.json


def forged(token: str, **changes: Any) -> str:
    head, _, signature = token.split(".")
    claims = {**claims_of(token), **changes}
    packed = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"{head}.{packed}.{signature}"


def test_a_token_that_is_not_ours_is_refused(tenant: Caller, page: Page) -> None:
    token = page.minted["token"]
    none = jwt.encode(claims_of(token), "", algorithm="none", headers={"kid": "first"})
    others_key = jwt.encode(claims_of(token), "k" * 32, algorithm="HS256", headers={"kid": "first"})
    other_method = jwt.encode(claims_of(token), "k" * 64, algorithm="HS512", headers={"kid": "first"})
    deep = base64.urlsafe_b64encode(b"[" * 5000).decode() + ".e30.x"
    for bad in (
        forged(token, sub="ten_other"),
        forged(token, sdkSessionId="other"),
        none,
        others_key,
        other_method,
        token[:-4],
        token + "A",
        "a.b.c",
        "",
        deep,
        "x" * 20_000,
    ):
        answer = page.post(
            "/collect", {"sessionId": page.session, "category": "OTHER"}, Authorization=f"Bearer {bad}"
        )
        assert answer.status == 401, bad[:40]
        assert answer.json["error"]["code"] == "UNAUTHORIZED"
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("scheme", ["", "Basic", "Token"])
def test_another_scheme_is_refused(page: Page, scheme: str) -> None:
    header = f"{scheme} {page.minted['token']}".strip()
    answer = page.post("/collect", {"sessionId": page.session, "category": "OTHER"}, Authorization=header)
    assert answer.status == 401


def test_the_scheme_is_read_in_any_case(page: Page) -> None:
    header = f"bearer {page.minted['token']}"
    body = {"sessionId": page.session, "category": "OTHER"}
    assert page.post("/collect", body, Authorization=header).status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (ORIGIN, 200),
        ("https://shop.example:443", 200),
        ("HTTPS://SHOP.EXAMPLE", 200),
        ("http://shop.example", 401),
        ("https://shop.example:8443", 401),
        ("https://evil.example", 401),
        ("https://shop.example.evil.example", 401),
        ("null", 401),
        ("", 401),
    ],
)
def test_the_origin_must_be_that_of_the_token(page: Page, origin: str, status: int) -> None:
    answer = page.post("/collect", {"sessionId": page.session, "category": "OTHER"}, Origin=origin)
    assert answer.status == status, answer.body
    assert page.queue().status == 202


def server_to_server(page: Page) -> Answer:
    return page.tenant.service.call(
        "POST",
        "/api/v1/collect",
        {"sessionId": page.session, "category": "OTHER"},
        key=None,
        headers={"Authorization": page.headers["Authorization"]},
    )


def test_a_missing_origin_is_taken_unless_the_tenant_says_otherwise(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Strict"))
    page = Page(tenant)
    assert server_to_server(page).status == 200
    service.cli("tenant", "set", tenant.id, "--require-origin", "on")
    service.wait_for(lambda: server_to_server(page).status == 401)
    assert page.collect().status == 200


def test_revoking_the_key_that_minted_a_token_kills_it(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Revoked"))
    page = Page(tenant)
    assert page.collect().status == 200
    made = service.cli("key", "create", "--tenant", tenant.id, "--json")
    service.cli(
        "key",
        "revoke",
        next(
            key["keyId"]
            for key in service.cli("key", "list", "--tenant", tenant.id, "--json")
            if key["keyId"] != made["keyId"]
        ),
    )
    service.wait_for(lambda: page.collect().status == 401)
    assert page.queue().status == 401


def test_a_rotated_signing_key_lets_its_tokens_expire_and_at_once_does_not(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    old = Page(tenant)
    kid = own_service.cli("websdk", "rotate", "--json")["kid"]
    own_service.wait_for(
        lambda: jwt.get_unverified_header(Page(tenant).minted["token"])["kid"] == kid,
    )
    assert old.collect().status == 200
    new = Page(tenant)
    own_service.cli("websdk", "rotate", "--at-once", "--json")
    own_service.wait_for(lambda: old.collect().status == 401)
    assert new.collect().status == 401
    assert Page(tenant).collect().status == 200
    own_service.stop()
    own_service.start()
    assert new.collect().status == 401
