"""Windows of aggregates as rules write them, and the bounds of what an aggregate may ask."""

import re
from typing import Final

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.velocity.aggregates import WINDOW_MS_MAX

SECOND_MS: Final = 1_000
KEY_PARTS_MAX: Final = 5  # A key is stored for each event; more parts would only make keys that never repeat.
AGGREGATE_COST: Final = 250  # About 5 µs of the velocity engine's time, in units of 20 ns.

_WINDOW = re.compile(r"([1-9][0-9]{0,6})([smhd])", re.ASCII)
_UNITS_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS}


def read_window(text: str) -> int | None:
    """Read a window such as "10m" or "30d" as milliseconds; None when it is not one of 1 s to 90 days."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        return None
    window_ms = int(match[1]) * _UNITS_MS[match[2]]
    return window_ms if window_ms <= WINDOW_MS_MAX else None


def window_text(window_ms: int) -> str:
    """Write a window with the largest unit that divides it, so that "60m" and "1h" are one."""
    for unit, unit_ms in _UNITS_MS.items():
        if window_ms % unit_ms == 0:
            return f"{window_ms // unit_ms}{unit}"
    raise AssertionError("windows are whole seconds")
