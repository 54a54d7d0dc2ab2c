"""Queues of a deployment, simulated: requests wait for a web process, for Redis, and for a commit.

Each process is a queue with one server, whose service times are drawn from what was measured; commits gather
what waits, one batch at a time in the whole database, as the store does. Parts fail at set moments: what a
process that dies was working on is lost to its caller, who asks another one; a store that fails over holds
everything up, and what waits longer than a request may is refused. Nothing here knows the service: the model
holds as far as its queues are those of the service, which `capacity` says where it prints the figures.
"""

import functools
import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.client.open_loop import quantile

#: A write that waits longer is refused (`db.engine.ANSWER_S_MAX`).
PATIENCE_S: Final = 10.0


class Failure(NamedTuple):
    """Something that stops working: a part ("web", "redis", "database"), from when, for how many seconds."""

    part: str
    at_s: float
    lasts_s: float


class Parts(NamedTuple):
    """What a deployment has, and what its parts take; times are seconds.

    `web_s` are service times of a web process, to draw from; `redis_s` is one call's time of a shard.
    """

    webs: int
    shards: int
    web_s: Sequence[float]
    redis_s: float
    commit_fixed_s: float
    commit_write_s: float


class Simulated(NamedTuple):
    """What a run gave: latencies in seconds by the second of their arrival, and how many were refused."""

    latencies: list[tuple[float, float]]
    refused: int
    lost: int
    longest_queue: int

    def quantile_ms(self, part: float, begin_s: float = 0.0, end_s: float = float("inf")) -> float:
        """Return a quantile of the latencies of those that arrived in a span."""
        found = [took for at, took in self.latencies if begin_s <= at < end_s]
        return quantile(found, part) * 1000 if found else float("nan")


class Simulation:
    """One run: an agenda of moments at which something happens, in their order."""

    def __init__(self, parts: Parts, failures: Sequence[Failure], seed: int) -> None:
        self._parts = parts
        self._rng = random.Random(seed)
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._web: list[deque[float]] = [deque() for _ in range(parts.webs)]
        self._web_busy = [False] * parts.webs
        self._down_until = [0.0] * parts.webs
        self._turn = [0] * parts.webs  # Raised when a process dies: what it was at is void.
        self._shard_free = [0.0] * parts.shards
        self._waiting: deque[float] = deque()
        self._committing = False
        self._database_until = 0.0
        self._latencies: list[tuple[float, float]] = []
        self._refused = self._lost = self._longest = 0
        for failure in failures:
            self._at(failure.at_s, functools.partial(self._fail, failure))

    def run(self, rate: float, seconds: float) -> Simulated:
        """Have requests arrive at random at a rate for so long, and go on until all are answered."""
        at = 0.0
        while (at := at + self._rng.expovariate(rate)) < seconds:
            self._at(at, self._arrive)
        while self._agenda:
            at, _, act = heapq.heappop(self._agenda)
            act(at)
        return Simulated(sorted(self._latencies), self._refused, self._lost, self._longest)

    def _at(self, moment: float, act: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (moment, self._number, act))

    def _fail(self, failure: Failure, now: float) -> None:
        if failure.part == "web":
            # Its connections are reset: callers ask the others at once.
            self._down_until[0] = now + failure.lasts_s
            self._turn[0] += 1
            again = [*self._web[0], *([now] if self._web_busy[0] else [])]
            self._web[0].clear()
            self._web_busy[0] = False
            self._lost += len(again)
            for arrived in again:
                self._enter(arrived, now)
        elif failure.part == "redis":
            self._shard_free[0] = max(self._shard_free[0], now + failure.lasts_s)
        else:
            self._database_until = now + failure.lasts_s

    def _arrive(self, now: float) -> None:
        self._enter(now, now)

    def _enter(self, arrived: float, now: float) -> None:
        """Give a request to some process that is up, as a load balancer does that knows no queues."""
        up = [place for place, until in enumerate(self._down_until) if until <= now]
        if not up:
            self._refused += 1
            return
        place = self._rng.choice(up)
        self._web[place].append(arrived)
        self._longest = max(self._longest, len(self._web[place]))
        self._serve(place, now)

    def _serve(self, place: int, now: float) -> None:
        if self._web_busy[place] or not self._web[place]:
            return
        arrived, turn = self._web[place].popleft(), self._turn[place]
        self._web_busy[place] = True

        def done(at: float) -> None:
            if self._turn[place] == turn:
                self._web_busy[place] = False
                self._observe(arrived, at)
                self._serve(place, at)

        self._at(now + self._rng.choice(self._parts.web_s), done)

    def _observe(self, arrived: float, now: float) -> None:
        """Ask the shard that a request's keys lie on; one after the other, each shard."""
        if not self._parts.shards:
            self._store(arrived, now)
            return
        shard = self._rng.randrange(self._parts.shards)
        ready = max(now, self._shard_free[shard]) + self._parts.redis_s
        if ready - arrived > PATIENCE_S:
            self._refused += 1
            return
        self._shard_free[shard] = ready
        self._at(ready, lambda at: self._store(arrived, at))

    def _store(self, arrived: float, now: float) -> None:
        self._waiting.append(arrived)
        self._commit(now)

    def _commit(self, now: float) -> None:
        if self._committing or not self._waiting:
            return
        while self._waiting and now - self._waiting[0] > PATIENCE_S:
            self._waiting.popleft()
            self._refused += 1
        batch, self._waiting = self._waiting, deque()
        self._committing = True
        began = max(now, self._database_until)
        took = self._parts.commit_fixed_s + len(batch) * self._parts.commit_write_s

        def done(at: float) -> None:
            self._committing = False
            for arrived in batch:
                if at - arrived > PATIENCE_S:
                    self._refused += 1
                else:
                    self._latencies.append((arrived, at - arrived))
            self._commit(at)

        self._at(began + took, done)


def simulate(
    parts: Parts, rate: float, seconds: float, failures: Sequence[Failure] = (), seed: int = 1
) -> Simulated:
    """Run a deployment at a rate (requests a second) and return what was seen."""
    return Simulation(parts, failures, seed).run(rate, seconds)
