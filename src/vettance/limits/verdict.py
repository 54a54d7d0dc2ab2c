"""What a limit says about a request: whether it is let in, and what is left."""

from typing import NamedTuple, Protocol


class Verdict(NamedTuple):
    """What a limit says about one request.

    `reset_s` is, for the throttle, the seconds until a slot that is taken becomes free again (0 when none is
    taken); for the quota, the Unix second at which the next hour begins. `retry_after_s` is 0 when admitted,
    else the seconds after which the same request would be admitted if nobody else asks.
    """

    admitted: bool
    limit: int
    remaining: int
    reset_s: float
    retry_after_s: float


class Charge(NamedTuple):
    """What both limits say about one request; it was counted when both admit it."""

    rate: Verdict
    use: Verdict


class LimitCounters(Protocol):
    """Counts throttle and quota, in this process or in Redis."""

    async def charge(
        self, tenant: str, caller: str, throttle: int, quota: int, *, looking: bool = False
    ) -> Charge:
        """Count a request if both limits let it in. Raises `StateDown`."""

    async def refund(self, tenant: str, caller: str, throttle: int, quota: int, reset_s: float) -> Charge:
        """Take back a request counted in the hour that ends at `reset_s`. Raises `StateDown`."""
