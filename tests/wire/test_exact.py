"""Numbers that come as text are read as documented, at every place where they come from outside."""

import re
from collections.abc import Callable
from typing import Annotated, Any

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.aml.screening.screening_request import read_screen_request
from vettance.commands import read_time
from vettance.decisions.network import _autonomous_system
from vettance.errors import Invalid, Refusal
from vettance.exchange.columns import _typed, read_row
from vettance.exchange.labels import Labels
from vettance.exchange.row_files import FormatFault
from vettance.lists.entry import EntryType, canonical_value
from vettance.option_types import Decimal, Whole
from vettance.rules.functions import number
from vettance.rules.place_functions import in_network
from vettance.rules.windows import read_window
from vettance.settings.settings import SettingsError, read_settings
from vettance.web.paging import PageNumber
from vettance.web.query import UnixSeconds, read_query
from vettance.webhooks.api import _read_cursor
from vettance.webhooks.webhook import SignatureInvalid, verify
from vettance.wire.numbers import is_decimal, read_whole
from vettance.wire.payload import read_timestamp

NOW_MS = 1_790_000_000_000

#: What `int` takes, or `float`, or a pattern with `\d`, and nobody means.
NASTY = [
    "٢",
    "²",
    "２",
    "1_0",
    "+1",
    "01",
    "00",
    " 1",
    "1 ",
    "1\n",
    "-0",
    "0x1",
    "nan",
    "inf",
    "1e1",
    "",
    "9" * 5000,
]
NASTY_DECIMALS = [*NASTY, "1.", ".5", "1,5", "-0.0", "٢.٥", "1_0.5", "01.5", "infinity", "-nan"]


class Asked(msgspec.Struct):
    page: PageNumber = 1
    at_ms: UnixSeconds | None = msgspec.field(name="from", default=None)
    least: Annotated[int, msgspec.Meta(ge=-5, le=9)] | None = None


def asked(name: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        from urllib.parse import quote

        return read_query(f"{name}={quote(text)}".encode(), Asked)

    return read


def setting(name: str) -> Callable[[str], Any]:
    # A setting without a text is one that is not set.
    return lambda text: read_settings({name: text or "?"})


def address(name: str, before: str) -> Callable[[str], Any]:
    return lambda text: read_settings({name: before + (text or "?")})


def option(kind: click.ParamType[Any]) -> Callable[[str], Any]:
    return lambda text: kind.convert(text, None, None)


def label_line(text: str) -> None:
    # An empty cell says nothing, so the line counts on which the label stands.
    if (fault := Labels().add(7, {"label": "FRAUD", "line": text or "?"})) is not None:
        raise FormatFault(fault)


def signed_at(text: str) -> None:
    headers = {"webhook-timestamp": text, "webhook-signature": "v1,x", "webhook-id": "1"}
    verify("whsec_" + "A" * 44, headers, b"{}", 1)


def found(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader that says None for what it refuses."""

    def insist(text: str) -> None:
        if read(text) is None:
            raise ValueError(text)

    return insist


def kept_as_text(text: str) -> None:
    if _typed("metadata.amount", text) == text:
        raise ValueError(text)


#: Place → (how it reads a text, a text it takes, what it refuses the others with).
WHOLE_NUMBERS: dict[str, tuple[Callable[[str], Any], str, type[Exception]]] = {
    "query page": (asked("page"), "10", Invalid),
    "query bounded": (asked("least"), "-5", Invalid),
    "VETTANCE_SEARCHERS": (setting("VETTANCE_SEARCHERS"), "1", SettingsError),
    "VETTANCE_PROXIES": (setting("VETTANCE_PROXIES"), "1", SettingsError),
    "VETTANCE_KEEP_EVENTS": (setting("VETTANCE_KEEP_EVENTS"), "400", SettingsError),
    "VETTANCE_METRICS": (address("VETTANCE_METRICS", "127.0.0.1:"), "9464", SettingsError),
    "VETTANCE_DATABASE_URL": (
        lambda text: read_settings({"VETTANCE_DATABASE_URL": f"postgresql://db:{text or '?'}/vettance"}),
        "5432",
        SettingsError,
    ),
    "VETTANCE_REDIS_URL": (address("VETTANCE_REDIS_URL", "redis://cache:6379/"), "3", SettingsError),
    "VETTANCE_NAME_SERVERS": (
        address("VETTANCE_NAME_SERVERS", "10.0.0.53:"),
        "53",
        SettingsError,
    ),
    "option": (option(Whole(0, 100)), "10", click.BadParameter),
    "line of a label": (label_line, "10", FormatFault),
    "cursor of deliveries": (_read_cursor, "10", Refusal),
    "webhook-timestamp": (signed_at, "-", SignatureInvalid),
    "prefix of a list entry": (
        found(lambda text: canonical_value(EntryType.IP, f"10.0.0.0/{text}")), "8", ValueError,
    ),
    "prefix in a rule": (lambda text: in_network("10.0.0.1", f"10.0.0.0/{text}"), "8", ValueError),
    "window": (found(lambda text: read_window(text + "d")), "10", ValueError),
    "number of a network": (
        found(lambda text: _autonomous_system({"asn": f"AS{text}"})[0]), "64500", ValueError,
    ),
}  # fmt: skip

DECIMALS: dict[str, tuple[Callable[[str], Any], str, type[Exception]]] = {
    "query moment": (asked("from"), "1700000000.5", Invalid),
    "option": (option(Decimal(0, 0.5)), "0.25", click.BadParameter),
    "option moment": (lambda text: read_time(None, None, text), "1700000000.5", click.BadParameter),  # type: ignore[arg-type]
    "number in a table": (kept_as_text, "12.5", ValueError),
}


@pytest.mark.parametrize("place", WHOLE_NUMBERS)
@pytest.mark.parametrize("text", NASTY, ids=lambda text: repr(text)[:12])
def test_a_whole_number_is_read_exactly(place: str, text: str) -> None:
    read, good, refusal = WHOLE_NUMBERS[place]
    if place == "VETTANCE_REDIS_URL" and not text:
        return  # A Redis without a number is its database 0.
    if place == "VETTANCE_NAME_SERVERS" and text.strip() != text:
        return  # Spaces may stand around the commas of a list.
    if good != "-":
        read(good)
    with pytest.raises(refusal):
        read(text)


@pytest.mark.parametrize("place", DECIMALS)
@pytest.mark.parametrize("text", NASTY_DECIMALS, ids=lambda text: repr(text)[:12])
def test_a_decimal_number_is_read_exactly(place: str, text: str) -> None:
    read, good, refusal = DECIMALS[place]
    read(good)
    with pytest.raises(refusal):
        read(text)


@pytest.mark.parametrize("text", ["٢", "²", "1_7", "nan", "inf", "1e9", "01700000000", "+1700000000"])
def test_a_time_in_a_table_that_is_none_is_refused_by_its_column(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_row({"eventName": "login", "customer.external_id": "c1", "occurredAt": text}, NOW_MS)
    assert "occurredAt" in caught.value.details


def test_a_time_in_a_table_may_be_unix_seconds() -> None:
    row = {"eventName": "login", "customer.external_id": "c1", "occurredAt": "1780000000.5"}
    assert read_row(row, NOW_MS).event.occurred_at_ms == 1_780_000_000_500


@pytest.mark.parametrize(
    "text", ["٢٠٢٦-01-01", "2026-1-1", "+2026-01-01", " 2026-01-01", "20260101", "2026-W01-1"]
)
def test_a_date_is_read_exactly(text: str) -> None:
    assert read_timestamp(text) is None
    with pytest.raises(Refusal) as caught:
        read_screen_request({"inputName": "Ann Example", "inputDob": text})
    assert "inputDob" in caught.value.details


@pytest.mark.parametrize("text", ["٢", "1_0", "nan", "inf", "0x1", "1e1", "1.", ".5", "²"])
def test_the_number_of_a_text_in_a_rule_has_decimal_digits(text: str) -> None:
    assert number(text) is None


def test_the_number_of_a_text_in_a_rule_may_have_a_sign_and_zeros() -> None:
    assert [number(text) for text in ("12.50", "+5", "-5", "007", " 1 ")] == [12.5, 5, -5, 7, 1]


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_back(value: int) -> None:
    assert read_whole(str(value), -(2**63)) == value
    assert is_decimal(str(value))


@given(st.text(max_size=8))
def test_what_is_read_is_written_so(text: str) -> None:
    value = read_whole(text, -(2**63))
    assert value is None or str(value) == text
    assert not is_decimal(text) or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text, re.ASCII)
