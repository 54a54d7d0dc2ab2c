"""Dates of birth are read in the ways publishers write them, and only as precisely as they say."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import BirthDate


@pytest.mark.parametrize(
    ("text", "first", "last", "approximate"),
    [
        ("1957", "1957", "", False),
        ("1957-03", "1957-03", "", False),
        ("1957-03-12", "1957-03-12", "", False),
        ("1957-03-12T00:00:00Z", "1957-03-12", "", False),
        ("12 Mar 1957", "1957-03-12", "", False),
        ("12 March, 1957", "1957-03-12", "", False),
        ("March 12, 1957", "1957-03-12", "", False),
        ("Mar 1957", "1957-03", "", False),
        ("12/03/1957", "1957-03-12", "", False),
        ("03/25/1957", "1957-03-25", "", False),
        ("00/00/1957", "1957", "", False),
        ("circa 1957", "1957", "", True),
        ("Approximately 1957", "1957", "", True),
        ("1957-1960", "1957", "1960", True),
        ("between 1957 and 1960", "1957", "1960", True),
        ("1957 to 1960", "1957", "1960", True),
        ("01 Jan 1957 to 31 Dec 1960", "1957", "1960", True),
        ("1950s", "1950", "1959", True),
    ],
)
def test_a_date_is_read_as_precisely_as_it_is_written(
    text: str, first: str, last: str, approximate: bool
) -> None:
    assert read_birth(text) == BirthDate(first, last, approximate)


@pytest.mark.parametrize("text", ["", "unknown", "31 Feb 1957", "0001", "57", "12/13/14", "1960-1957"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_birth(text) is None


@given(st.dates(dt.date(1850, 1, 1), dt.date(2099, 12, 31)))
def test_every_day_survives_being_written(day: dt.date) -> None:
    for text in (
        day.isoformat(),
        day.strftime("%d %b %Y"),
        day.strftime("%d %B %Y"),
        day.strftime("%B %d, %Y"),
    ):
        assert read_birth(text) == BirthDate(day.isoformat())


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_none(text: str) -> None:
    read = read_birth(text)
    assert read is None or 1850 <= read.years()[0] <= read.years()[1] <= 2100
