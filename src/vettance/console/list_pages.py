"""List pages: which rows of a list a page shows, and where its other pages are."""

from collections.abc import Callable
from typing import Any, Final

from vettance.console.page import Visit, url_of
from vettance.console.shown_values import ValueFormatter

#: The field of an address that says the number of a page's first row. A cursor says only where to read on.
ROW: Final = "row"
_DIGITS_MAX: Final = 12


def rows_shown(
    show: ValueFormatter, first: int, shown: int, total: int, noun: str, *, is_cut: bool = False
) -> dict[str, Any]:
    """Return which rows are shown, as the macro `pager` says it: "51–100 of 10,000 decisions".

    `first` is the number of the first row, from 1. `is_cut` says that there are more than `total`, which
    nobody counted.
    """
    last = first + shown - 1
    return {
        "rows": f"{show.number(first)}–{show.number(last)}" if shown and (is_cut or shown < total) else "",
        "total": show.count(max(total, last) if shown else total, noun),
        "is_cut": is_cut,
    }


def list_page(
    visit: Visit, url: Callable[..., str], found: dict[str, Any], noun: str, *, cursor: str = "cursor"
) -> dict[str, Any]:
    """Return what the macro `pager` shows of a page of the API, with the addresses of other pages.

    `url` makes an address of the list with its filters and more fields; `cursor` is the field that says where
    a page begins. Where `found` has no `total`, nobody counted all rows.
    """
    is_first = not visit.query.get(cursor)
    row, shown = 1 if is_first else number_of(visit.query.get(ROW)), len(found["data"])
    total = found.get("total", row - 1 + shown)
    is_cut = "total" not in found and found["hasMore"]
    following = {cursor: found["nextCursor"], ROW: row + shown} if found["hasMore"] else {}
    return {
        **rows_shown(visit.show, row, shown, total, noun, is_cut=is_cut),
        "first": "" if is_first else url(),
        "next": url(**following) if following else "",
    }


def filtered_by(path: str, asked: dict[str, Any]) -> Callable[..., str]:
    """Return what makes addresses of a list with its filters."""
    return lambda **more: url_of(path, **asked, **more)


def number_of(text: str) -> int:
    """Return the number of a row that an address names; 1 for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return max(int(text), 1) if is_number else 1
