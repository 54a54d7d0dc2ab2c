"""What a request says of the browser's address, with and without proxies in front."""

import pytest

from vettance.web.cors import client_address, is_preflight, sharing_headers

PEER = ("203.0.113.9", 5000)
Headers = list[tuple[bytes, bytes]]


def forwarded(*values: str) -> Headers:
    return [(b"host", b"x"), *((b"x-forwarded-for", value.encode()) for value in values)]


@pytest.mark.parametrize(
    ("headers", "proxies", "address"),
    [
        ([], 0, "203.0.113.9"),
        (forwarded("198.51.100.1"), 0, "203.0.113.9"),
        (forwarded("198.51.100.1"), 1, "198.51.100.1"),
        (forwarded("6.6.6.6, 198.51.100.1"), 1, "198.51.100.1"),
        (forwarded("6.6.6.6", "198.51.100.1"), 1, "198.51.100.1"),
        (forwarded("198.51.100.1, 10.0.0.1"), 2, "198.51.100.1"),
        (forwarded("198.51.100.1:4711"), 1, "198.51.100.1"),
        (forwarded("[2001:DB8::1]:4711"), 1, "2001:db8::1"),
        (forwarded("2001:db8::1"), 1, "2001:db8::1"),
        (forwarded("unknown"), 1, None),
        (forwarded("198.51.100.1"), 2, None),
        ([], 1, None),
    ],
)
def test_what_the_caller_wrote_itself_is_never_believed(
    headers: Headers, proxies: int, address: str | None
) -> None:
    assert client_address(PEER, headers, proxies) == address


def test_a_connection_without_an_address_has_none() -> None:
    assert client_address(None, [], 0) is None


def test_a_preflight_says_what_it_asks_for() -> None:
    asking = {b"origin": b"https://a.example", b"access-control-request-method": b"POST"}
    assert is_preflight("OPTIONS", asking)
    assert not is_preflight("POST", asking)
    assert not is_preflight("OPTIONS", {b"origin": b"https://a.example"})


def test_an_origin_beyond_all_measure_is_not_echoed() -> None:
    assert sharing_headers({b"origin": b"https://" + b"a" * 1000}) == [(b"vary", b"Origin")]
