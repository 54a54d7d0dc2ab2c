"""What a limit says about a request: whether it is let in, and what is left."""

from typing import NamedTuple


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
