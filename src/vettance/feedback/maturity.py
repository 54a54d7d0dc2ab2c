"""When an event that nobody has labelled counts as legitimate: once it is older than labels take to come."""

import statistics
from collections.abc import Sequence
from typing import Final

from vettance.clock import DAY_MS

#: Without a setting: so many median delays of labels, and seven days at least.
DELAYS: Final = 4
_MS_MIN: Final = 7 * DAY_MS
#: From this share of labelled events on, those that nobody labelled are not missed.
LABELLED_SHARE: Final = 0.5


def maturity_of(days: int, delays_ms: Sequence[int]) -> int:
    """Return the age in milliseconds from which on no label is expected any more.

    `days` is what the tenant has set, 0 for what the delays of its labels say.
    """
    if days:
        return days * DAY_MS
    return max(int(DELAYS * statistics.median(delays_ms)) if delays_ms else 0, _MS_MIN)
