"""How query parameters are read, and what is said of each faulty one."""

import contextlib
import enum
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.errors import Invalid
from vettance.web.paging import PageLimit, PageNumber
from vettance.web.query import UnixSeconds, any_case, parameters_of, read_query


class Outcome(enum.Enum):
    ALLOW = "approve"
    REVIEW = "review"
    BLOCK = "deny"


class Order(enum.Enum):
    ASCENDING = "asc"
    DESCENDING = "desc"


class Search(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    page: PageNumber = 1
    limit: PageLimit = 50
    outcome: Annotated[Outcome | None, any_case(allow="approve", block="deny")] = None
    sort_order: Order = Order.DESCENDING
    from_ms: UnixSeconds | None = msgspec.field(name="from", default=None)
    to_ms: UnixSeconds | None = msgspec.field(name="to", default=None)
    customer: Annotated[str | None, msgspec.Meta(description="External id or e-mail.")] = None
    exact: bool = False


class Strict(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    count: int


def faults(raw: bytes, shape: type[msgspec.Struct] = Search) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        read_query(raw, shape)
    return caught.value.details


def test_an_empty_query_gives_the_defaults():
    assert read_query(b"", Search) == Search()
    assert read_query(b"&&", Search) == Search()


def test_every_kind_of_parameter_is_read():
    raw = b"page=3&limit=100&outcome=deny&sortOrder=asc&from=1700000000&to=1700000000.5"
    assert read_query(raw + b"&customer=a%40b.c&exact=true", Search) == Search(
        page=3,
        limit=100,
        outcome=Outcome.BLOCK,
        sort_order=Order.ASCENDING,
        from_ms=1_700_000_000_000,
        to_ms=1_700_000_000_500,
        customer="a@b.c",
        exact=True,
    )


@pytest.mark.parametrize("text", ["approve", "APPROVE", "Approve", "allow", "ALLOW", "aLLow"])
def test_an_any_case_parameter_takes_every_spelling_and_its_aliases(text):
    assert read_query(f"outcome={text}".encode(), Search).outcome is Outcome.ALLOW


def test_an_ordinary_enum_takes_its_own_spelling_only():
    assert faults(b"sortOrder=ASC") == {"sortOrder": "must be one of asc, desc"}


def test_letters_that_only_fold_to_ascii_are_refused():
    assert list(faults("outcome=bloc\u212a".encode())) == ["outcome"]


@pytest.mark.parametrize("text", ["0", "-1", "1.0", "1e3", "", "x", "٣", "1_0", " 1", "9" * 400])
def test_an_integer_outside_its_bounds_or_form_is_refused(text):
    assert list(faults(b"page=" + quote(text).encode())) == ["page"]


@pytest.mark.parametrize(
    "text", ["x", "", "-1", "nan", "inf", "1e9", "1700000000000", "2026-01-01", "1.", ".5"]
)
def test_a_moment_that_is_no_unix_time_in_seconds_is_refused(text):
    assert list(faults(f"from={text}".encode())) == ["from"]


@given(st.integers(0, 10**14 - 1))
def test_a_decimal_moment_keeps_its_milliseconds(moment_ms):
    seconds, millis = divmod(moment_ms, 1000)
    assert read_query(f"from={seconds}.{millis:03d}".encode(), Search).from_ms == moment_ms


def test_a_start_after_the_end_is_refused():
    assert faults(b"from=2&to=1") == {"from": "must not be later than `to`"}
    assert read_query(b"from=1&to=1", Search).from_ms == 1000


def test_every_fault_is_named_at_once():
    assert set(faults(b"page=0&limit=101&outcome=maybe&from=x&exact=yes")) == {
        "page",
        "limit",
        "outcome",
        "from",
        "exact",
    }


def test_of_a_repeated_parameter_the_last_wins():
    assert read_query(b"page=x&page=2", Search).page == 2


def test_unknown_parameters_are_ignored():
    assert read_query(b"tenantId=ten_1&utm=1", Search) == Search()


def test_a_plus_is_a_space_and_an_empty_text_is_none():
    assert read_query(b"customer=a+b%2Bc", Search).customer == "a b+c"
    assert read_query(b"customer=", Search).customer is None


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        *((b"customer=" + text, "customer") for text in (b"%", b"%zz", b"%ff", b"%00")),
        (b"%ff=1", "query"),
        (b"x=%0", "query"),
    ],
)
def test_text_that_cannot_be_decoded_or_kept_is_refused(raw, place):
    assert list(faults(raw)) == [place]


def test_a_text_is_at_most_1024_characters_long():
    assert len(read_query(b"customer=" + b"x" * 1024, Search).customer) == 1024
    assert faults(b"customer=" + b"x" * 1025) == {"customer": "must not be longer than 1024 characters"}


def test_a_missing_parameter_without_default_is_named():
    assert faults(b"name=", Strict) == {"name": "is required", "count": "is required"}
    assert read_query(b"name=a&count=-4", Strict) == Strict(name="a", count=-4)


def test_messages_never_echo_what_was_sent():
    assert "SECRET" not in str(faults(b"page=SECRET&outcome=SECRET&from=SECRET&exact=SECRET&SECRET=%00"))


@given(st.binary(max_size=200))
def test_no_query_string_causes_anything_but_a_refusal(raw):
    with contextlib.suppress(Invalid):
        read_query(raw, Search)


@given(
    st.integers(1, 1_000_000),
    st.integers(1, 100),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=1024),
)
def test_what_a_client_encodes_is_what_is_read(page, limit, customer):
    raw = urlencode({"page": page, "limit": limit, "customer": customer}).encode()
    assert read_query(raw, Search) == Search(page=page, limit=limit, customer=customer or None)


def test_the_declaration_documents_the_parameters():
    documented = {parameter.name: parameter for parameter in parameters_of(Search)}
    assert list(documented) == ["page", "limit", "outcome", "sortOrder", "from", "to", "customer", "exact"]
    assert documented["page"].schema == {"type": "integer", "minimum": 1, "maximum": 10**15, "default": 1}
    assert documented["sortOrder"].schema == {"type": "string", "enum": ["asc", "desc"], "default": "desc"}
    assert documented["from"].schema["type"] == "number"
    assert documented["customer"].description == "External id or e-mail."
    assert documented["outcome"].schema["examples"] == ["approve", "review", "deny"]


def test_a_declaration_of_an_unknown_kind_is_refused_at_the_start():
    class Odd(msgspec.Struct):
        when: list[int]

    with pytest.raises(TypeError, match="when"):
        parameters_of(Odd)
