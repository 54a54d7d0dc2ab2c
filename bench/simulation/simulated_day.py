"""What goes wrong on a simulated day of webhooks: which faults, how many, chosen by a seed."""

import random
from typing import NamedTuple

#: Faults come within so long; after them every delivery must be settled.
FAULTS_S = 6.0


class Day(NamedTuple):
    """What goes wrong in a schedule."""

    workers: int
    messages: int
    crashes: int
    stops: int
    jumps: int
    outages: int
    slow_store: float  # the share of calls that take seconds
    lying_store: float  # the share of writes that are kept although they are said to have failed
    bad_network: float
    replays: int

    @property
    def calm(self) -> bool:
        """Whether nothing excuses an attempt that is not in the books."""
        return not (
            self.crashes or self.stops or self.jumps or self.outages or self.slow_store or self.lying_store
        )


def day_of(rng: random.Random) -> Day:
    """Choose the faults: on some days one kind alone, on others all of them."""
    kinds = rng.choice(("none", "network", "crash", "stop", "clock", "store", "lies", "all"))

    def some(kind: str, most: int) -> int:
        return rng.randint(1, most) if kinds in (kind, "all") else 0

    return Day(
        workers=rng.choice((1, 1, 2, 3)),
        messages=rng.randint(1, 25),
        crashes=some("crash", 5),
        stops=some("stop", 3),
        jumps=some("clock", 4),
        outages=some("store", 3),
        slow_store=rng.choice((0.0, 0.05)) if kinds in ("store", "all") else 0.0,
        lying_store=0.05 if kinds in ("lies", "all") else 0.0,
        bad_network=0.0 if kinds == "none" else rng.choice((0.1, 0.4, 0.9)),
        replays=rng.choice((0, 0, 3)),
    )
