"""The clock of this machine, and units of time. The core takes the time as an argument, from here."""

import time
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
#: How much the clocks of the machines of a deployment may differ; those kept by the network differ by
#: milliseconds.
CLOCKS_APART_MS: Final = 5_000


def now_ms() -> int:
    """Return the moment, in Unix milliseconds."""
    return time.time_ns() // 1_000_000
