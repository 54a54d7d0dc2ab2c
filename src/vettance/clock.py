"""The clock of this machine, and units of time. Whoever thinks takes the time as an argument, from here."""

import time
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS


def now_ms() -> int:
    """Return the moment, in Unix milliseconds."""
    return time.time_ns() // 1_000_000
