"""The first row of a CSV file: what can be wrong with the names of its columns."""

from collections.abc import Sequence
from typing import Final

_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def doubled_name(header: Sequence[str]) -> str | None:
    """Return the first name that two columns have: of their values one would be lost. Many may have none."""
    known: set[str] = set()
    for name in header:
        if name and name in known:
            return name
        known.add(name)
    return None


def other_separator(header: Sequence[str]) -> str | None:
    """Name what separates the cells of a header that was read as one cell, where it is no comma."""
    only = header[0] if len(header) == 1 else ""
    return next((word for sign, word in _SEPARATORS.items() if sign in only), None)
