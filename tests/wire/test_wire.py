"""The wire: strict JSON in, moments in and out, bounds of free-form objects."""

import contextlib
import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.errors import Invalid, Unprocessable
from vettance.wire.payload import (
    BODY_DEPTH_MAX,
    OBJECT_BYTES_MAX,
    Faults,
    check_object,
    kept,
    parse_object,
    read_moment,
    read_timestamp,
    timestamp,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"))
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=20
)


@given(
    st.dictionaries(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00")), values)
)
def test_every_storable_object_is_read_as_it_was_written(sent: dict[str, Any]) -> None:
    body = json.dumps(sent).encode()
    if b"\\u0000" in body:
        return
    assert parse_object(body) == sent


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_refusal(body: bytes) -> None:
    with contextlib.suppress(Invalid, Unprocessable):
        assert isinstance(parse_object(body), dict)


@given(st.integers(2**64, 2**80) | st.integers(-(2**80), -(2**63) - 1))
def test_integers_beyond_64_bits_are_refused_wherever_they_stand(number: int) -> None:
    for body in (f'{{"a":{number}}}', f'{{"a":[{{"b":{number}}}]}}', f'{{"x":"1","y":[0,{number},1]}}'):
        with pytest.raises(Invalid):
            parse_object(body.encode())


def test_long_digits_inside_texts_are_no_numbers() -> None:
    assert parse_object(b'{"a":"99999999999999999999999999"}') == {"a": "9" * 26}


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert parse_object(b'{"a":"\\\\u0000"}') == {"a": "\\u0000"}


@given(st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2100, 1, 1)))  # noqa: DTZ001
def test_a_written_moment_is_read_back(moment: dt.datetime) -> None:
    ms = int(moment.replace(tzinfo=dt.UTC).timestamp() * 1000)
    assert read_timestamp(timestamp(ms)) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-31T12:00:00.123Z", 1_769_860_800_123),
        ("2026-01-31T12:00:00.123456Z", 1_769_860_800_123),
        ("2026-01-31T14:00:00+02:00", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),
        ("2026-01-31 12:00:00z", 1_769_860_800_000),
        ("2026-01-31", 1_769_817_600_000),
        ("20260131T120000Z", 1_769_860_800_000),
        ("20260131T1400+0200", 1_769_860_800_000),
        ("2026-01-31T12Z", 1_769_860_800_000),
        ("2026-01-31T12:0000Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-W05-1", None),
        ("20260131", None),
        ("yesterday", None),
        ("", None),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("9999-12-31T23:59:59-00:01", None),
        # A leap second is where Unix time counts it, and only at the end of a day in UTC.
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("2016-12-31T23:59:60.25Z", 1_483_228_800_250),
        ("2017-01-01T08:59:60+09:00", 1_483_228_800_000),
        ("20161231T235960Z", 1_483_228_800_000),
        ("2016-12-31T23:59:60+01:00", None),
        ("2016-12-31T22:59:60Z", None),
        ("2016-12-31T23:59:61Z", None),
        ("9999-12-31T23:59:60Z", None),
        ("2026-01-30T24:00:00Z", 1_769_817_600_000),
        ("2026-01-30T24Z", 1_769_817_600_000),
        ("2026-01-30T24:00:00.000+00:00", 1_769_817_600_000),
        ("2026-01-30T24:00:01Z", None),
        ("2026-01-30T24:00:00.0001Z", None),
        ("2026-01-30T25:00:00Z", None),
        ("2026-01-31T12:60:00Z", None),
        ("2026-01-31T12:00:00+01:60", None),
        ("2026-01-31T12:00:00+24:00", None),
        ("2026-01-31T12:00:00-23:59", 1_769_947_140_000),
        ("2026-01-31T12:00:00,5", 1_769_860_800_500),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_moments_are_iso_8601(text: str, ms: int | None) -> None:
    assert read_timestamp(text) == ms
    if ms is not None:
        assert read_timestamp(timestamp(ms)) == ms


def test_moments_may_be_unix_seconds() -> None:
    assert read_moment(1_769_860_800) == 1_769_860_800_000
    assert read_moment(1_769_860_800.5) == 1_769_860_800_500
    assert read_moment(value=True) is None
    assert read_moment(1e300) is None
    assert read_moment(-9e10) is None, "before the year 1"


def measured(value: dict[str, Any]) -> dict[str, str]:
    faults = Faults()
    check_object(value, "metadata", faults)
    return faults.meaning


def nested(depth: int, *, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


@pytest.mark.parametrize("levels", [20, 50_000])
@pytest.mark.parametrize(
    ("head", "opening", "closing", "tail"),
    [
        (b"", b"[", b"", b""),
        (b"", b"[", b"]", b""),
        (b'{"a":', b"[", b"]", b""),
        (b'{"a":', b"[", b"}", b"}"),
        (b'{"a":', b'{"b":', b"}", b"}}"),
        (b'{"a":', b"[", b"]", b'}{"a":1}'),
    ],
)
def test_malformed_json_is_malformed_however_deep_it_is(
    levels: int, head: bytes, opening: bytes, closing: bytes, tail: bytes
) -> None:
    with pytest.raises(Invalid):
        parse_object(head + opening * levels + b"1" * bool(closing) + closing * levels + tail)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"b":', b"}"), (b'[{"b":', b"}]")])
def test_a_body_has_at_most_two_hundred_levels(opening: bytes, closing: bytes) -> None:
    each = opening.count(b"[") + opening.count(b"{")
    for levels in (200, 201, 500, 960, 1000, 5000):
        times, rest = divmod(levels - 1, each)
        inner = opening * times + b"[" * rest + b"1" + b"]" * rest + closing * times
        body = b'{"other":[{}],"a":' + inner + b"}"
        if levels <= BODY_DEPTH_MAX:
            assert parse_object(body)
            continue
        with pytest.raises(Unprocessable) as refused:
            parse_object(body)
        assert list(refused.value.details) == ["a"]
    assert parse_object(b'{"wide":[' + b"[{}]," * 5000 + b"1]}")


def test_an_object_too_deep_to_parse_is_refused_by_the_name_of_its_deepest_member() -> None:
    deep = b'{"]":' * 50_000 + b'"]"' + b"}" * 50_000
    with pytest.raises(Unprocessable) as refused:
        parse_object(b'{"eventName":"}","metadata":' + deep + b',"payload":[[1]]}')
    assert list(refused.value.details) == ["metadata"]


def test_the_bounds_of_an_object_are_exact() -> None:
    assert not measured(nested(10))
    assert measured(nested(11))
    assert not measured({"a": nested(9, lists=True)})
    assert measured({"a": nested(10, lists=True)})
    assert not measured({str(number): 0 for number in range(500)})
    assert measured({str(number): 0 for number in range(501)})
    assert measured({"a": {str(number): 0 for number in range(250)}, "b": [{str(n): 0 for n in range(249)}]})
    assert not measured({"a": "x" * (OBJECT_BYTES_MAX - 8)})
    assert measured({"a": "x" * (OBJECT_BYTES_MAX - 7)})


def test_faults_of_a_body_are_named_up_to_a_bound_of_their_own() -> None:
    body = b'{"a":[' + b"99999999999999999999," * 40_000 + b"1]}"
    with pytest.raises(Invalid) as refused:
        parse_object(body)
    assert 1 < len(refused.value.details) <= 20
    name = b"k" * 9_000
    with pytest.raises(Invalid) as refused:
        parse_object((b'{"' + name + b'":') * 90 + b"99999999999999999999" + b"}" * 90)
    assert sum(map(len, refused.value.details)) < 1000
    with pytest.raises(Invalid) as refused:
        parse_object(b'{"a":[' + b"[]," * 100_000 + b'"\\u0000"]}')
    assert list(refused.value.details) == ["body"]


@pytest.mark.parametrize("brackets", [b"[]," * 300_000 + b"[]", b"[" * 200_000 + b"]" * 200_000])
def test_a_body_of_nothing_but_brackets_is_refused_before_it_is_parsed(brackets: bytes) -> None:
    with pytest.raises(Unprocessable) as refused:
        parse_object(b'{"a":[' + brackets + b"]}")
    assert list(refused.value.details) == ["body"]


def test_an_escape_of_a_backslash_hides_no_nul() -> None:
    for escape in (b"\\u0000", b"\\\\\\u0000"):
        with pytest.raises(Invalid):
            parse_object(b'{"a":"x' + escape + b'"}')
    assert parse_object(b'{"a":"' + b"\\\\" * 3 + b'u0000"}')


def test_what_is_kept_of_a_body_holds_no_more_than_its_value() -> None:
    small, padded = b'{"a" : 1.50}', b'{"a":' + b" " * 100_000 + b'[1],"b":"\xc3\xa9"}'
    assert kept(small, parse_object(small)) == small
    assert kept(padded, parse_object(padded)) == b'{"a":[1],"b":"\xc3\xa9"}'


@given(st.integers(0, 600), st.booleans())
def test_brackets_of_a_large_body_are_counted_however_many_there_are(pairs: int, in_text: bool) -> None:
    blanks = b" " * OBJECT_BYTES_MAX
    value = b'"' + b"[{" * pairs + b'"' if in_text else b"[" * 150 + b"[]," * pairs + b"1" + b"]" * 150
    body = b'{"a":' + blanks + value + b"}"
    assert parse_object(body) == json.loads(body)
    deep = b'{"a":' + blanks + b'["' + b"{" * pairs + b'"]' + b"," + b'"b":' + b"[" * 200 + b"]" * 200 + b"}"
    with pytest.raises(Unprocessable) as refused:
        parse_object(deep)
    assert refused.value.details == {"b": "is nested too deeply"}
