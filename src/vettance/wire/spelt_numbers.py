"""Numbers of free-form objects, however a tenant writes them: grouped, with a decimal comma, in an object."""

import math
import re
from typing import Any, Final

_PLAIN_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_GROUPED_NUMBER: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,9})?", re.ASCII)
_COMMA_NUMBER: Final = re.compile(r"[+-]?\d{1,15},\d{1,2}", re.ASCII)
_NUMBER_CHARS: Final = 32


def read_number(value: Any) -> float | int | None:
    """Read a number, or a text that is one: `12.50`, `1,234.50` (groups), `12,50` (decimal comma)."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is int:
        return value
    if type(value) is str and len(value) <= _NUMBER_CHARS:
        text = value.strip()
        if _PLAIN_NUMBER.fullmatch(text):
            return float(text)
        if _GROUPED_NUMBER.fullmatch(text):
            return float(text.replace(",", ""))
        if _COMMA_NUMBER.fullmatch(text):
            return float(text.replace(",", "."))
    return None


def read_amount(value: Any) -> float | int | None:
    """Read an amount: a number, or an object such as `{"value": 12.5, "currency": "EUR"}`."""
    if type(value) is dict:
        inner = {name.lower(): one for name, one in value.items()}
        value = inner.get("value", inner.get("amount"))
    return read_number(value)
