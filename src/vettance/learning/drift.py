"""Drift: how far what is seen now is from what a model was trained on."""

import bisect
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

#: From this population stability index on, a change is worth a look (a rule of thumb of credit scoring).
WARNED_MIN: Final = 0.2
#: Fewer decisions move the index by chance alone: by about nine (degrees of freedom) over their number.
WEIGHED_ROWS_MIN: Final = 500
_SHARE_MIN: Final = 1e-4


class DriftedValue(NamedTuple):
    """The population stability index of a feature, or of the probability."""

    name: str
    psi: float

    @property
    def is_warned(self) -> bool:
        """Whether it is worth a look."""
        return self.psi >= WARNED_MIN


class MeasuredDrift(msgspec.Struct, frozen=True):
    """The drift of the probability and of each feature over so many decisions, the largest first."""

    version: int
    measured_at_ms: int
    rows: int
    values: list[DriftedValue]

    @property
    def is_enough(self) -> bool:
        """Whether there are enough decisions to say anything."""
        return self.rows >= WEIGHED_ROWS_MIN

    @property
    def warned(self) -> list[DriftedValue]:
        """What has moved so far that it is worth a look; nothing over few decisions."""
        return [one for one in self.values if one.is_warned] if self.is_enough else []

    @property
    def largest(self) -> float:
        """The largest index."""
        return self.values[0].psi if self.values else 0.0


def find_drift(
    distribution: dict[str, Any], names: Sequence[str], rows: Sequence[Sequence[float | None]]
) -> list[DriftedValue]:
    """Hold rows, each the values of some names, against the distribution of a card; the largest first."""
    found = []
    for place, name in enumerate(names):
        known = distribution.get(name)
        if known is not None and rows:
            found.append(DriftedValue(name, round(_index(known, [row[place] for row in rows]), 4)))
    return sorted(found, key=lambda one: (-one.psi, one.name))


def _index(known: dict[str, Any], values: Sequence[float | None]) -> float:
    bounds, unknown = known["bounds"], 0
    counts = [0] * (len(bounds) + 1)
    for value in values:
        if value is None:
            unknown += 1
        else:
            # As `numpy.histogram` does: a bound belongs to the bin above it.
            counts[bisect.bisect_right(bounds, value)] += 1
    pairs = [(known["unknown"], unknown / len(values))]
    if known["shares"]:
        shares = (count / len(values) for count in counts)
        pairs += list(zip(known["shares"], shares, strict=True))
    index = 0.0
    for was, now in pairs:
        was, now = max(was, _SHARE_MIN), max(now, _SHARE_MIN)  # noqa: PLW2901  None of them is zero.
        index += (now - was) * math.log(now / was)
    return index
