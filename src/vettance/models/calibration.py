"""The log-odds that the sum of the trees means: the points of a rising line."""

import bisect
import itertools
from typing import Final

#: Points (log-odds of the trees, log-odds meant), both rising.
Calibration = tuple[tuple[float, float], ...]
NOT_CALIBRATED: Final[Calibration] = ()


def calibrated(points: Calibration, log_odds: float) -> float:
    """Return the log-odds meant: on the line between two points, beyond them as far off as the nearest is.

    The order of events stays, as the line rises everywhere.
    """
    if not points:
        return log_odds
    place = bisect.bisect_left(points, (log_odds,))
    if place in (0, len(points)):
        nearest, meant = points[min(place, len(points) - 1)]
        return meant + (log_odds - nearest)
    (low, low_meant), (high, high_meant) = points[place - 1], points[place]
    return low_meant + (log_odds - low) * (high_meant - low_meant) / (high - low)


def check_calibration(points: Calibration) -> None:
    """Raise `ValueError` for points that do not rise, or are no numbers."""
    for (low, low_meant), (high, high_meant) in itertools.pairwise(points):
        if not (low < high and low_meant < high_meant):
            raise ValueError("the calibration of the model does not rise")
    if not all(-1e6 < value < 1e6 for point in points for value in point):
        raise ValueError("the calibration of the model has what is no number")
