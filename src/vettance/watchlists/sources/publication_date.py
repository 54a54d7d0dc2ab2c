"""The day of a list's data, as its publisher states it in the files: not the day they were imported.

Source of each form: the samples and schemas named in the modules that read the lists. OFAC's CSV files, the
Consolidated Screening List, the Denied Persons List, DFAT's workbook and OpenSanctions' tables state none.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.sources.formats import open_bytes
from vettance.wire.payload import read_timestamp

#: Publishers state the date at the beginning. OFAC's advanced XML has a long first line before it.
_HEAD_BYTES: Final = 16_384
_DAY: Final = r"([0-9]{1,2}/[0-9]{1,2}/[0-9]{4})"
_UN: Final = (re.compile(r'<CONSOLIDATED_LIST\b[^>]*\bdateGenerated="([^"]{8,40})"'),)
_EU: Final = (
    re.compile(r'<export\b[^>]*\bgenerationDate="([^"]{8,40})"'),
    # The CSV states it in the first column of every row.
    re.compile(rf'\A"?fileGenerationDate"?;[^\n]*\n"?{_DAY}', re.IGNORECASE),
)
_UK: Final = (
    re.compile(rf'\A"?Last Updated"?,"?{_DAY}'),
    re.compile(r'\A"?Report Date: *([0-9]{1,2}-[A-Za-z]{3}-[0-9]{4})'),
    re.compile(r"<DateGenerated>([^<]{8,40})</DateGenerated>"),
)
_OFAC: Final = (
    # The month is first; it is turned round by the names of the groups.
    re.compile(r"<Publish_Date>(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})/(?P<year>[0-9]{4})</Publish_Date>"),
    re.compile(
        r"<DateOfIssue\b[^>]*>\s*<Year>(?P<year>[0-9]{4})</Year>\s*<Month>(?P<month>[0-9]{1,2})</Month>"
        r"\s*<Day>(?P<day>[0-9]{1,2})</Day>"
    ),
)
_FORMS: Final = {"un_sc": _UN, "eu_fsf": _EU, "uk_ofsi": _UK, "us_ofac_sdn": _OFAC, "us_ofac_cons": _OFAC}


def data_as_of_ms(source: str, paths: Sequence[Path]) -> int | None:
    """Return the moment that the files say their data is of, the earliest of several; None when none does."""
    found = [moment for path in paths if (moment := _stated(source, path)) is not None]
    return min(found, default=None)


def _stated(source: str, path: Path) -> int | None:
    forms = _FORMS.get(source, ())
    if not forms:
        return None
    with open_bytes(path) as file:
        head = file.read(_HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    for form in forms:
        if (match := form.search(head)) is not None:
            parts = match.groupdict()
            if parts:
                return read_timestamp(f"{parts['year']}-{parts['month']:0>2}-{parts['day']:0>2}")
            return _moment(match[1])
    return None


def _moment(text: str) -> int | None:
    """Read ISO 8601, or a day as people write it, the day before the month."""
    if (moment := read_timestamp(text)) is not None:
        return moment
    day = read_birth(text)
    return read_timestamp(day.first) if day is not None and not day.last and not day.approximate else None
