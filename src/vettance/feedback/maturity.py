"""When an event that nobody has labelled counts as legitimate: once it is older than labels take to come."""

import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.clock import DAY_MS

#: Without a setting: so many median delays of labels, and seven days at least.
_DELAYS: Final = 4
_MS_MIN: Final = 7 * DAY_MS
#: From this share of labelled events on, those that nobody labelled are not missed.
LABELLED_SHARE: Final = 0.5


class LabelTiming(NamedTuple):
    """How far a tenant's events have come (event time), and how long its labels take; all in milliseconds.

    `maturity_ms` is the age from which on no label is expected any more.
    """

    reached_ms: int
    delay_ms: int
    maturity_ms: int

    @property
    def mature_ms(self) -> int:
        """The moment (event time) up to which no label is expected any more."""
        return self.reached_ms - self.maturity_ms


def timing_of(reached_ms: int, delays_ms: Sequence[int], days: int = 0) -> LabelTiming:
    """Return the timing by the delays of labels; `days` is the maturity that is set, 0 for none."""
    delay_ms = int(statistics.median(delays_ms)) if delays_ms else 0
    return LabelTiming(reached_ms, delay_ms, days * DAY_MS or max(_DELAYS * delay_ms, _MS_MIN))
