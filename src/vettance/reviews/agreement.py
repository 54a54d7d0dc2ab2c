"""Agreement: how often two people decide a review alike, and how much of that is more than chance."""

from collections.abc import Mapping
from typing import NamedTuple


class Agreement(NamedTuple):
    """Reviews seen twice, the share decided alike, and Cohen's κ (None where chance alone would agree)."""

    seen_twice: int
    share: float
    kappa: float | None


def agreement_of(counted: Mapping[tuple[str, str], int]) -> Agreement | None:
    """Return the agreement of counts by both outcomes; None where nothing was seen twice.

    κ = (share − chance) / (1 − chance), with chance from how often each of the two says what (Cohen 1960).
    """
    count = sum(counted.values())
    if not count:
        return None
    share = sum(times for (first, second), times in counted.items() if first == second) / count
    words = {word for pair in counted for word in pair}
    chance = sum(
        sum(times for (first, _), times in counted.items() if first == word)
        * sum(times for (_, second), times in counted.items() if second == word)
        for word in words
    ) / (count * count)
    return Agreement(count, share, (share - chance) / (1 - chance) if chance < 1 else None)
