"""The peers of a customer: how much money customers of the same kind and declared income receive in a month.

Each group counts the turnover of its customers in steps of half a power of two. A customer counts once a
day, so that the busy ones do not speak for all; counts are halved as they grow, so that old ones fade.
"""

from math import exp, log2
from typing import Final

import msgspec

from vettance.clock import DAY_MS

MONTH_MS: Final = 30 * DAY_MS
STEPS_MAX: Final = 64
TURNOVER_MAX: Final = 2.0**32  # In the currency of the group; higher ones count as this.
GROUPS_MAX: Final = 512  # Of one tenant; customers of further groups have no peers.
SAMPLES_MAX: Final = 8_192
SAMPLES_MIN: Final = 200  # Fewer tell nothing of what is rare.
MEMBERS_MIN: Final = 20


class PeerGroup(msgspec.Struct, array_like=True, gc=False):
    """The customers of one kind and band of income: how often each step of turnover was seen."""

    steps: list[int]
    samples: int = 0
    members: int = 0

    def share_above(self, turnover: float) -> float | None:
        """Return the share of samples at least as high as a turnover; None while there are few."""
        if self.samples < SAMPLES_MIN or self.members < MEMBERS_MIN:
            return None
        return sum(self.steps[_step(turnover) :]) / self.samples

    def add(self, turnover: float) -> None:
        """Count one more turnover."""
        self.steps[_step(turnover)] += 1
        self.samples += 1
        if self.samples >= SAMPLES_MAX:
            self.steps = [count // 2 for count in self.steps]
            self.samples = sum(self.steps)


class Peers:
    """The groups of one tenant."""

    def __init__(self) -> None:
        self.groups: dict[str, PeerGroup] = {}

    def hold(self) -> dict[str, PeerGroup]:
        """Return copies of all groups."""
        return {
            name: PeerGroup(group.steps.copy(), group.samples, group.members)
            for name, group in self.groups.items()
        }

    def group(self, segment: str | None, currency: str | None, income: float | None) -> PeerGroup | None:
        """Return the group of customers of a kind, currency and income; None beyond the bound of groups."""
        band = "" if income is None or income <= 0 else str(round(2 * log2(income)))
        name = f"{segment or ''}:{currency or ''}:{band}"
        found = self.groups.get(name)
        if found is None and len(self.groups) < GROUPS_MAX:
            found = self.groups[name] = PeerGroup([0] * STEPS_MAX)
        return found


def grown(turnover: float, since_ms: int, amount: float) -> float:
    """Return a turnover after so many milliseconds, in which it faded, and one more amount."""
    left = turnover * exp(-since_ms / MONTH_MS) if since_ms > 0 else turnover
    return min(left + amount, TURNOVER_MAX)


def _step(turnover: float) -> int:
    return int(min(STEPS_MAX - 1, 2 * log2(turnover))) if turnover > 1 else 0
