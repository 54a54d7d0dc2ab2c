"""Wilson: the interval of a share that a sample gave."""

from typing import NamedTuple

#: The 97.5 % quantile of the standard normal distribution.
Z95 = 1.959964


class Share(NamedTuple):
    """A share with its 95 % interval, each 0 to 1."""

    value: float
    low: float
    high: float


def share_of(part: float, whole: float) -> Share | None:
    """Return a share with its interval (Wilson 1927); None of nothing."""
    if whole <= 0:
        return None
    value = min(max(part / whole, 0.0), 1.0)
    wide = Z95 * Z95 / whole
    middle = (value + wide / 2) / (1 + wide)
    half = Z95 * (value * (1 - value) / whole + wide / (4 * whole)) ** 0.5 / (1 + wide)
    return Share(value, max(middle - half, 0.0), min(middle + half, 1.0))
