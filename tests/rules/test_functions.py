"""The words of the language, one by one."""

import ipaddress
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.words import SCHEMA
from vettance.rules.functions import WORDS
from vettance.rules.language import check

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("lower", ("ÄBC",), "äbc"),
    ("upper", ("abc",), "ABC"),
    ("trim", ("  a b\t",), "a b"),
    ("length", ("héllo",), 5),
    ("length", ([1, 2],), 2),
    ("length", ({"a": 1},), None),
    ("contains", ("cat", "a"), True),
    ("contains", ("cat", 1), None),
    ("contains", (["a", 1], "a"), True),
    ("contains", ([True], 1), False),
    ("contains", ([1.0], 1), True),
    ("contains", (5, 1), None),
    ("starts_with", ("payment.attempt", "payment."), True),
    ("ends_with", ("a@b.invalid", ".invalid"), True),
    ("prefix", ("4111111111", 6), "411111"),
    ("prefix", ("41", 6), "41"),
    ("matches", ("user.login_failed", r"login.?failed$"), True),
    ("matches", ("x", "^y"), False),
    ("domain", ("Some.One@Example.COM ",), "example.com"),
    ("domain", ("a@b@c.org",), "c.org"),
    ("domain", ("nobody",), None),
    ("domain", ("nobody@",), None),
    ("similarity", ("night", "nacht"), 0.25),
    ("similarity", ("Anna", "ANNA"), 1.0),
    ("similarity", ("a", "b"), 0.0),
    ("similarity", ("", ""), 1.0),
    ("number", ("12.50",), 12.5),
    ("number", (" -3 ",), -3.0),
    ("number", (7,), 7),
    ("number", ("twelve",), None),
    ("number", ("nan",), None),
    ("number", ("inf",), None),
    ("number", ("1e400",), None),
    ("number", ("1_000",), None),
    ("number", (True,), None),
    ("abs", (-5,), 5),
    ("round", (2.5,), 2),
    ("round", (2.345, 2), 2.35),
    ("floor", (-1.5,), -2),
    ("ceil", (1.2,), 2),
    ("min_of", (3, 1, 2), 1),
    ("max_of", (3, 1, 2), 3),
    ("in_network", ("10.1.2.3", "10.0.0.0/8"), True),
    ("in_network", ("11.1.2.3", ("10.0.0.0/8", "2001:db8::/32")), False),
    ("in_network", ("2001:db8::1", ("10.0.0.0/8", "2001:db8::/32")), True),
    ("in_network", ("::ffff:10.1.2.3", "10.0.0.0/8"), True),
    ("in_network", ("10.1.2.3", "10.1.2.3"), True),
    ("in_network", ("10.1.2.3", "0.0.0.0/0"), True),
    ("in_network", ("not an address", "10.0.0.0/8"), None),
    ("in_network", ("10.0.0.1\x00", "10.0.0.0/8"), None),
    ("subnet", ("203.0.113.77", 24, 64), "203.0.113.0/24"),
    ("subnet", ("2001:db8:1:2:3::4", 24, 64), "2001:db8:1:2::/64"),
    ("subnet", ("elsewhere", 24, 64), None),
    ("distance_km", (91, 0, 0, 0), None),
    ("distance_km", (0, 0, 0, 181), None),
    ("hour_of", (0,), 0),
    ("hour_of", (1_768_478_400_000,), 12),  # 2026-01-15T12:00:00Z
    ("weekday_of", (0,), 4),  # a Thursday
    ("weekday_of", (1_768_478_400_000,), 4),
    ("weekday_of", (1_768_478_400_000 + 3 * 86_400_000,), 7),
    ("missing", (None,), True),
    ("present", (None,), False),
    ("default", (None, 5), 5),
    ("default", (4, 5), 4),
]


@pytest.mark.parametrize(("word", "arguments", "expected"), CASES)
def test_a_word_gives_what_its_manual_says(word: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert WORDS[word].function(*arguments) == expected


def test_every_word_has_a_case() -> None:
    assert {word for word, _, _ in CASES} | {"distance_km"} == set(WORDS)


def test_distances_are_those_of_the_globe() -> None:
    distance = WORDS["distance_km"].function
    # London to Paris, 343.6 km on the sphere (computed by hand with the haversine formula).
    assert distance(51.5074, -0.1278, 48.8566, 2.3522) == pytest.approx(343.6, abs=0.5)
    assert distance(10, 20, 10, 20) == 0
    assert distance(0, 0, 0, 180) == pytest.approx(math.pi * 6371.0088)
    assert distance(0, 179.5, 0, -179.5) == pytest.approx(111.195, abs=0.01)


latitudes, longitudes = st.floats(-90, 90), st.floats(-180, 180)


@given(latitudes, longitudes, latitudes, longitudes)
def test_distances_are_symmetric_and_bounded(a: float, b: float, c: float, d: float) -> None:
    distance = WORDS["distance_km"].function
    assert 0 <= distance(a, b, c, d) <= math.pi * 6371.0088 + 1e-6
    assert distance(a, b, c, d) == pytest.approx(distance(c, d, a, b), abs=1e-6)


@given(st.ip_addresses(), st.ip_addresses(v=4), st.integers(0, 32), st.ip_addresses(v=6), st.integers(0, 128))
def test_networks_agree_with_the_standard_library(
    address: Any, base4: Any, size4: int, base6: Any, size6: int
) -> None:
    network4 = ipaddress.ip_network(f"{base4}/{size4}", strict=False)
    network6 = ipaddress.ip_network(f"{base6}/{size6}", strict=False)
    if network6.network_address.ipv4_mapped is not None:
        return
    inside = WORDS["in_network"].prepare
    assert inside is not None
    test = inside((str(network4), str(network6)))
    mapped = address.ipv4_mapped if address.version == 6 else None
    own = mapped or address
    assert test(str(address)) is (own in (network4 if own.version == 4 else network6))
    assert test(str(network4.network_address)) is True


@given(st.ip_addresses(v=4), st.integers(1, 32))
def test_subnets_agree_with_the_standard_library(address: Any, size: int) -> None:
    expected = str(ipaddress.ip_network(f"{address}/{size}", strict=False))
    assert WORDS["subnet"].function(str(address), size, 64) == expected


@given(st.text(max_size=80), st.text(max_size=80))
def test_similarity_is_symmetric_and_within_zero_and_one(a: str, b: str) -> None:
    similarity = WORDS["similarity"].function
    assert 0 <= similarity(a, b) <= 1
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, a) == 1


def test_a_pattern_takes_time_proportional_to_its_text() -> None:
    found = WORDS["matches"].prepare
    assert found is not None
    assert found(r"(a+)+$")("a" * 30_000 + "b") is False
    assert found(r"é+$")("caféé") is True
    assert found(r"a")("\ud800") is False


ANYTHING = st.one_of(
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
    st.booleans(),
    st.lists(st.integers(), max_size=3),
)
STRATEGIES = {
    "number": st.one_of(st.integers(-(2**64), 2**64), st.floats(allow_nan=False, allow_infinity=False)),
    "text": st.text(max_size=30),
    "any": ANYTHING,
    "list": st.lists(ANYTHING, max_size=3),
    "true/false": st.booleans(),
}


@pytest.mark.parametrize("name", sorted(name for name, word in WORDS.items() if word.prepare is None))
@given(data=st.data())
def test_no_word_raises_on_values_of_its_types(name: str, data: st.DataObject) -> None:
    word = WORDS[name]
    arguments = [
        data.draw(ANYTHING if len(parameter.types) > 1 else STRATEGIES[parameter.types[0].value])
        for parameter in word.parameters
    ]
    result = word.function(*arguments)
    if word.total and name != "default":
        assert result is not None


def test_words_with_the_names_of_builtins_are_entered_under_the_plain_name() -> None:
    assert {"abs", "round"} <= set(WORDS)
    assert check("round(metadata.amount, 2) == abs(metadata.amount)", SCHEMA).cost > 0
