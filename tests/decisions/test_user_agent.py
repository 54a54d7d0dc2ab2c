"""Families and systems of user agents, and networks around addresses stay when versions and hosts change."""

import pytest

from vettance.decisions.network import Network
from vettance.decisions.user_agent import user_agent_family, user_agent_system

_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0"


@pytest.mark.parametrize(
    ("user_agent", "family", "system"),
    [
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36", "chrome", "windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36 Edg/141.0", "edge", "windows"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME} Safari/537.36 OPR/120.0", "opera", "linux"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {_CHROME} Mobile Safari/537.36", "chrome", "android"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_CHROME} Safari/537.36", "chrome", "chromeos"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/18.6 Mobile/15E148 Safari/604.1",
            "safari",
            "ios",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Firefox/143.0", "firefox", "macos"),
        ("CornerShop/4.2 CFNetwork/1494 Darwin/23.4.0", "other", "ios"),
        ("okhttp/4.12.0", "okhttp", None),
        ("", None, None),
        ("?" * 5000, None, None),
    ],
)
def test_a_user_agent_is_read_as_family_and_system(
    user_agent: str, family: str | None, system: str | None
) -> None:
    assert user_agent_family(user_agent) == family
    assert user_agent_system(user_agent) == system


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("198.51.100.77", "198.51.100.0/24"),
        ("2a01:4f8:7:abcd::1", "2a01:4f8:7::/48"),
        ("not an address", None),
    ],
)
def test_the_network_around_an_address_is_its_first_bits(address: str, prefix: str | None) -> None:
    assert Network().facts(address).prefix == prefix
