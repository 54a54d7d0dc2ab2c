"""Dates of birth in the many ways in which publishers write them."""

import datetime as dt
import re

from vettance.watchlists.entity import BirthDate, clean

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("jan", "january"),
            ("feb", "february"),
            ("mar", "march"),
            ("apr", "april"),
            ("may",),
            ("jun", "june"),
            ("jul", "july"),
            ("aug", "august"),
            ("sep", "sept", "september"),
            ("oct", "october"),
            ("nov", "november"),
            ("dec", "december"),
        ),
        1,
    )
    for name in names
}
_YEAR_MIN = 1850
_YEAR_MAX = 2100

_ISO = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[t ].*)?$")
_DAY_MONTH_NAME = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?[ \-/.]+([a-z]+)\.?,?[ \-/.]+(\d{4})$")
_MONTH_NAME_DAY = re.compile(r"([a-z]+)\.?[ \-/.]+(\d{1,2})(?:st|nd|rd|th)?,?[ \-/.]+(\d{4})$")
_MONTH_YEAR = re.compile(r"([a-z]+)\.?,?[ \-/.]+(\d{4})$")
_NUMERIC = re.compile(r"(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4})$")
_CIRCA = re.compile(
    r"\b(?:circa|approximately|approx|about|around|probably|possibly|est(?:imated)?|c)\b\.?|^~", re.I
)
_RANGE = re.compile(r"(?:between |from )?(\d{4})\s*(?:-|–|/|to|and|or)\s*(\d{4})$")
_RANGE_DATES = re.compile(r"(?:between |from )?(.+?\d{4})\s+(?:to|and)\s+(.+?\d{4})$")
_DECADE = re.compile(r"(early |mid-? ?|late )?(\d{3})0'?s$")


def read_birth(text: str) -> BirthDate | None:
    """Read one date of birth, or None when the text is not one.

    Understands ISO 8601 (also cut short), `12 Mar 1957`, `March 12, 1957`, `Mar 1957`, `12/03/1957` (day
    first; `00/00/1957` is a year), ranges of years, decades and "circa". Only the precision that is stated
    is kept.
    """
    text = clean(text).casefold().strip(" .;,")
    bare = _CIRCA.sub("", text).strip(" .;,:")
    approximate = bare != text
    if decade := _DECADE.fullmatch(bare):
        start = int(decade[2]) * 10
        return _range(start, start + 9)
    if years := _RANGE.fullmatch(bare):
        return _range(int(years[1]), int(years[2]))
    if (single := _single(bare)) is not None:
        return BirthDate(single, "", approximate)
    if ends := _RANGE_DATES.fullmatch(bare):
        first, last = _single(ends[1].strip()), _single(ends[2].strip())
        if first and last:
            return _range(int(first[:4]), int(last[:4]))
    return None


def _range(first: int, last: int) -> BirthDate | None:
    if not _YEAR_MIN <= first <= last <= _YEAR_MAX:
        return None
    return BirthDate(str(first), str(last) if last != first else "", last != first)


def _single(text: str) -> str | None:
    if match := _ISO.fullmatch(text):
        return _date(int(match[1]), int(match[2] or 0), int(match[3] or 0))
    if match := _DAY_MONTH_NAME.fullmatch(text):
        return _named(match[3], match[2], match[1])
    if match := _MONTH_NAME_DAY.fullmatch(text):
        return _named(match[3], match[1], match[2])
    if match := _MONTH_YEAR.fullmatch(text):
        return _named(match[2], match[1], "0")
    if match := _NUMERIC.fullmatch(text):
        day, month = int(match[1]), int(match[2])
        if month > 12 >= day:
            day, month = month, day
        return _date(int(match[3]), month, day)
    return None


def _named(year: str, month: str, day: str) -> str | None:
    number = _MONTHS.get(month)
    return _date(int(year), number, int(day)) if number else None


def _date(year: int, month: int, day: int) -> str | None:
    if not _YEAR_MIN <= year <= _YEAR_MAX:
        return None
    if not month:
        return f"{year:04d}"
    if month > 12:
        return None
    if not day:
        return f"{year:04d}-{month:02d}"
    try:
        return dt.date(year, month, day).isoformat()
    except ValueError:
        return None
