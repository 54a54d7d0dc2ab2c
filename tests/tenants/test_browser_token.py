"""Tokens and origins by themselves."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.tenants.browser_token import (
    FIRST_KID,
    LIFE_S,
    SigningKey,
    TokenClaims,
    TokenIssuer,
    TokenRefused,
    normal_origin,
    signing_key,
)

SECRET = b"s" * 32
NOW_S = 1_800_000_000


def claims(**more: str) -> TokenClaims:
    return TokenClaims(
        tenant="ten_1",
        key="key_1",
        sdk_session="s-1",
        issued_at_s=NOW_S,
        expires_at_s=NOW_S + LIFE_S,
        id="jti_1",
        **more,
    )


def test_what_is_minted_is_read_back_until_it_expires() -> None:
    desk = TokenIssuer(SECRET)
    minted = claims(origin="https://shop.example", tenant_session="t", flow="f", user="u")
    token = desk.mint(minted)
    assert desk.read(token, NOW_S + LIFE_S - 1) == minted
    assert TokenIssuer(SECRET).read(token, NOW_S) == minted
    for reader in (desk, TokenIssuer(SECRET)):
        with pytest.raises(TokenRefused, match="expired"):
            reader.read(token, NOW_S + LIFE_S)


def test_the_tokens_read_lately_are_remembered_and_no_more_than_those() -> None:
    desk = TokenIssuer(SECRET, remembered=3)
    minted = [claims(user=f"u-{number}") for number in range(20)]
    tokens = [desk.mint(one) for one in minted]
    first = [desk.read(token, NOW_S) for token in tokens]
    assert first == minted
    # What is remembered is the very same; what had to be read anew is only equal.
    assert all(desk.read(token, NOW_S) is one for token, one in zip(tokens[-3:], first[-3:], strict=True))
    again = [desk.read(token, NOW_S) for token in tokens[:14]]
    assert again == minted[:14]
    assert not any(one is other for one, other in zip(again, first, strict=False))


def test_another_deployments_token_is_refused() -> None:
    with pytest.raises(TokenRefused, match="not valid"):
        TokenIssuer(b"t" * 32).read(TokenIssuer(SECRET).mint(claims()), NOW_S)


def test_a_process_that_has_not_heard_of_a_rotation_reads_the_new_tokens() -> None:
    ahead, behind = TokenIssuer(SECRET), TokenIssuer(SECRET)
    ahead.replace([SigningKey(FIRST_KID), SigningKey("second")])
    assert behind.read(ahead.mint(claims()), NOW_S) == claims()


def test_a_retired_key_is_believed_until_its_moment() -> None:
    desk = TokenIssuer(SECRET)
    token = desk.mint(claims())
    desk.read(token, NOW_S)
    desk.replace([SigningKey(FIRST_KID, refused_from_ms=(NOW_S + 10) * 1000), SigningKey("second")])
    assert desk.read(token, NOW_S + 9) == claims()
    with pytest.raises(TokenRefused, match="out of use"):
        desk.read(token, NOW_S + 10)


def test_every_kid_gives_a_key_of_its_own_of_32_bytes() -> None:
    keys = {signing_key(secret, kid) for secret in (SECRET, b"t" * 32) for kid in (FIRST_KID, "second")}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fail_otherwise_than_by_refusing(text: str) -> None:
    with pytest.raises(TokenRefused):
        TokenIssuer(SECRET).read(text, NOW_S)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://shop.example", "https://shop.example"),
        ("HTTPS://Shop.Example:443/", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:08080", "http://127.0.0.1:8080"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://münchen.example", "https://xn--mnchen-3ya.example"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("null", None),
        ("", None),
        ("shop.example", None),
        ("https://", None),
        ("https://a b", None),
        ("https://shop.example/path", None),
        ("https://shop.example?x", None),
        ("https://u:p@shop.example", None),
        ("https://shop.example:70000", None),
    ],
)
def test_origins_are_compared_as_browsers_write_them(text: str, origin: str | None) -> None:
    assert normal_origin(text) == origin


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_normal_origin_stays_as_it_is(text: str) -> None:
    origin = normal_origin(text)
    assert origin is None or normal_origin(origin) == origin


@pytest.mark.parametrize("letter", ["😀", "語", "ü", "\x01", '"', "a"])
def test_a_token_of_the_longest_claims_is_believed(letter: str) -> None:
    longest = letter * 1_024
    said = msgspec.structs.replace(
        claims(tenant_session=longest, flow=longest, user=longest), sdk_session=longest
    )
    desk = TokenIssuer(SECRET)
    assert desk.read(desk.mint(said), said.issued_at_s) == said
