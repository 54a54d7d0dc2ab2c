"""Moments of ISO 8601: which texts are one, and which millisecond each of them is."""

import datetime as dt
import re
from typing import Final

#: Extended and basic format, of dates of the calendar. Digits alone may be Unix seconds.
_ISO: Final = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2}|\d{8}(?=[Tt]))"
    r"(?:[Tt ](?P<hour>\d{2})"
    r"(?:(?P<colon>:?)(?P<minute>\d{2})(?:(?P=colon)(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<ahead_h>\d{2})(?::?(?P<ahead_min>[0-5]\d))?)?)?",
    re.ASCII,
)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_DAY_S: Final = 24 * 60 * 60


def read_iso(text: str) -> int | None:
    """Read a moment as Unix milliseconds, cut to whole ones; without an offset it is UTC. None if it is none.

    A day ends at 24:00, the first moment of the next (ISO 8601:2019, amendment 1, section 4.3.8). A leap
    second ends a day in UTC (RFC 3339, section 5.7), and is the first second of the next, as
    Unix time counts. Clocks write both; what `datetime` takes of them differs between versions of Python.
    """
    if (found := _ISO.fullmatch(text)) is None:
        return None
    try:
        day = dt.date.fromisoformat(found["date"]).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    ahead_h, ahead_min = int(found["ahead_h"] or 0), int(found["ahead_min"] or 0)
    millis = int((found["fraction"] or "0")[:3].ljust(3, "0"))
    is_end_of_day = hour == 24 and minute == second == int(found["fraction"] or 0) == 0
    if (hour > 23 and not is_end_of_day) or minute > 59 or second > 60 or ahead_h > 23:
        return None
    ahead_s = (ahead_h * 60 + ahead_min) * 60 * (-1 if found["sign"] == "-" else 1)
    moment_s = day * _DAY_S + (hour * 60 + minute) * 60 + second - ahead_s
    if second == 60 and moment_s % _DAY_S:
        return None
    return moment_s * 1000 + millis
