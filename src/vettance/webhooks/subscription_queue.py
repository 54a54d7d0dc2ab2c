"""Lanes: one queue for each subscription, so that a receiver that hangs holds up nobody but itself."""

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from vettance.limits.shares import DynamicShares, RateShares
from vettance.webhooks.retry_policy import RetryPolicy

LIMIT_START: Final = 8.0
LIMIT_MAX: Final = 64.0
#: An answer within this time speaks for letting more deliveries go at once, anything slower against it.
FAST_MS: Final = 2000
IN_FLIGHT_MAX: Final = 512
# Receivers that hang may together hold half of what goes at once; the other half is for those that answer.
_SLOW_SHARE: Final = 0.5
#: So many attempts a second of one tenant go to receivers whose last one failed, and so many at once after a
#: while without. An attempt that fails costs the processor and the store as much as one that arrives, six
#: times over: a hundred subscriptions that fail must not take both cores from those who are decided for.
#: What is beyond waits; a receiver that answers again has its usual place with its first success.
FAILING_PER_S: Final = 200.0
FAILING_BURST: Final = 1000.0
#: A tenant that has used these up waits until it may make so many again, and makes them together: one at a
#: time they are claimed in a hundred commits a second, each with a wait for the disk that everybody shares.
FAILING_ROUND: Final = 50
#: What a lane keeps in memory. Beyond this the store remembers, and the lane is filled again from there.
READY_MAX: Final = 1000
READY_LOW: Final = 250
RETRIES_MAX: Final = 10_000


class SubscriptionQueue:
    """The deliveries of one subscription, by their number in the store.

    `limit` is how many may go at once. It grows by one for each full round of quick answers and is halved by
    each slow one or time-out, as TCP does with its window (additive increase, multiplicative decrease).
    """

    __slots__ = (
        *("_ahead_ms_max", "failing", "fresh", "held_until_ms", "in_flight", "known", "limit", "more"),
        *("retries", "subscription", "tenant"),
    )

    def __init__(
        self, tenant: str, subscription: str, ahead_ms_max: int = RetryPolicy().ahead_ms_max
    ) -> None:
        """Nothing waits for a moment that is further ahead than `ahead_ms_max` (see `RetryPolicy`)."""
        self.tenant = tenant
        self.subscription = subscription
        self._ahead_ms_max = ahead_ms_max
        self.fresh: deque[int] = deque()
        self.retries: list[tuple[int, int]] = []
        self.known: set[int] = set()
        self.in_flight = 0
        self.limit = LIMIT_START
        self.more = False
        #: Whether the last attempt failed.
        self.failing = False
        #: Until when nothing of it goes, whatever is due; None when nothing holds it.
        self.held_until_ms: int | None = None

    @property
    def slow(self) -> bool:
        """Whether the receiver has hung so often that it is down to a trickle."""
        return self.limit < 2

    @property
    def hungry(self) -> bool:
        """Whether the store has more of this lane and there is room for it."""
        return self.more and len(self.fresh) < READY_LOW and len(self.retries) < RETRIES_MAX

    def _waits(self, due_at_ms: int, now_ms: int) -> bool:
        return now_ms < due_at_ms <= now_ms + self._ahead_ms_max

    def add(self, seq: int, due_at_ms: int, now_ms: int) -> None:
        """Take in a delivery, unless it is known or there is no room; then the store keeps it for later."""
        if seq in self.known:
            return
        if self._waits(due_at_ms, now_ms):
            if len(self.retries) >= RETRIES_MAX:
                self.more = True
                return
            heapq.heappush(self.retries, (due_at_ms, seq))
        elif len(self.fresh) >= READY_MAX:
            self.more = True
            return
        else:
            self.fresh.append(seq)
        self.known.add(seq)

    def has_ready(self, now_ms: int) -> bool:
        """Tell whether something can go now: it is due, not held, and the limit allows it."""
        if self.held_until_ms is not None and self._waits(self.held_until_ms, now_ms):
            return False
        if self.in_flight + 1 > self.limit:
            return False
        return bool(self.fresh) or bool(self.retries and not self._waits(self.retries[0][0], now_ms))

    def pop(self, now_ms: int) -> int:
        """Return the next delivery to send. Retries go first, because their moment was promised."""
        if self.retries and not self._waits(self.retries[0][0], now_ms):
            seq = heapq.heappop(self.retries)[1]
        else:
            seq = self.fresh.popleft()
        self.in_flight += 1
        return seq

    def done(self, seq: int) -> None:
        """Note that a delivery is under way no more, whatever becomes of it."""
        self.in_flight -= 1
        self.known.discard(seq)

    def learn(self, duration_ms: int, *, failed: bool, unreached: bool) -> None:
        """Adapt the limit to how the receiver did; `unreached` says that it hung or its name did."""
        self.failing = failed
        if unreached or duration_ms > FAST_MS:
            self.limit = max(1.0, self.limit / 2)
        else:
            self.limit = min(LIMIT_MAX, self.limit + 1 / self.limit)


class SubscriptionQueues:
    """All lanes. Tenants take turns, and so do the lanes of each. Nothing waits here: time is an argument.

    What goes at once is shared by tenants (see `DynamicShares`), and so is its part for receivers that hang;
    what goes in a second to receivers that fail is bounded for each tenant.
    """

    def __init__(
        self, in_flight_max: int = IN_FLIGHT_MAX, ahead_ms_max: int = RetryPolicy().ahead_ms_max
    ) -> None:
        self._ahead_ms_max = ahead_ms_max
        self._shares = DynamicShares(in_flight_max)
        self._slow_max = max(1, int(in_flight_max * _SLOW_SHARE))
        self._failing = RateShares(FAILING_PER_S, FAILING_BURST)
        #: Tenants that wait until they may make a round of attempts at failing receivers.
        self._resting: set[str] = set()
        self._lanes: dict[str, SubscriptionQueue] = {}
        # Tenants whose lanes have something in them, and these; who was served goes to the end.
        self._waiting: OrderedDict[str, OrderedDict[str, SubscriptionQueue]] = OrderedDict()
        self._busy: dict[str, SubscriptionQueue] = {}
        self.in_flight = 0

    def lane(self, tenant: str, subscription: str) -> SubscriptionQueue:
        """Return the lane of a subscription, making it where there is none."""
        lane = self._lanes.get(subscription)
        if lane is None:
            lane = self._lanes[subscription] = SubscriptionQueue(tenant, subscription, self._ahead_ms_max)
        return lane

    def add(self, lane: SubscriptionQueue, seq: int, due_at_ms: int, now_ms: int) -> None:
        """Take a delivery into a lane."""
        lane.add(seq, due_at_ms, now_ms)
        self._waiting.setdefault(lane.tenant, OrderedDict()).setdefault(lane.subscription, lane)

    def hungry(self) -> Iterable[SubscriptionQueue]:
        """Return the lanes that the store has more for."""
        return [lane for lane in self._lanes.values() if lane.hungry]

    def take(self, now_ms: int, most: int = READY_MAX) -> list[tuple[SubscriptionQueue, int]]:
        """Return (lane, delivery) pairs to send now, a turn for each tenant until the limits are reached, or
        there are as many as may be."""
        taken: list[tuple[SubscriptionQueue, int]] = []
        slow = DynamicShares(self._slow_max)
        for lane in self._busy.values():
            if lane.slow:
                slow.count(lane.in_flight, lane.tenant)
        idle = 0
        while self._waiting and idle < len(self._waiting) and self._shares.free > 0 and len(taken) < most:
            tenant = next(iter(self._waiting))
            self._waiting.move_to_end(tenant)
            next_lane = self._next_lane(tenant, slow, now_ms)
            if next_lane is None:
                if self._waiting[tenant]:
                    idle += 1
                else:
                    del self._waiting[tenant]
                continue
            idle = 0
            if next_lane.slow:
                slow.count(1, tenant)
            if next_lane.failing:
                self._failing.count(tenant, now_ms)
            self._shares.count(1, tenant)
            self.in_flight += 1
            self._busy[next_lane.subscription] = next_lane
            taken.append((next_lane, next_lane.pop(now_ms)))
        return taken

    def _next_lane(self, tenant: str, slow: DynamicShares, now_ms: int) -> SubscriptionQueue | None:
        """Return the next lane of a tenant that something can go to; forgets those with nothing in them."""
        if not self._shares.fits(1, tenant):
            return None
        lanes = self._waiting[tenant]
        may_fail = self._may_fail(tenant, now_ms)
        for _ in range(len(lanes)):
            subscription, lane = next(iter(lanes.items()))
            if not lane.fresh and not lane.retries:
                del lanes[subscription]
                continue
            lanes.move_to_end(subscription)
            if (
                (may_fail or not lane.failing)
                and lane.has_ready(now_ms)
                and not (lane.slow and not slow.fits(1, tenant))
            ):
                return lane
        return None

    def _may_fail(self, tenant: str, now_ms: int) -> bool:
        """Tell whether a tenant may have an attempt at a receiver whose last one failed."""
        fits = self._failing.fits(tenant, now_ms, FAILING_ROUND if tenant in self._resting else 1)
        (self._resting.discard if fits else self._resting.add)(tenant)
        return fits

    def done(self, lane: SubscriptionQueue, seq: int) -> None:
        """Note that a delivery that was taken is under way no more; saying so twice does no harm."""
        if seq not in lane.known:
            return
        lane.done(seq)
        self._shares.give(1, lane.tenant)
        self.in_flight -= 1
        if not lane.in_flight:
            del self._busy[lane.subscription]

    def next_due_at_ms(self) -> int | None:
        """Return when the next retry of any lane is due, Unix milliseconds; None when none waits."""
        waiting = (lane for lanes in self._waiting.values() for lane in lanes.values())
        return min((lane.retries[0][0] for lane in waiting if lane.retries), default=None)

    def drop(self, lane: SubscriptionQueue) -> None:
        """Forget what waits for a subscription that is gone; what is under way ends by itself."""
        lane.known.difference_update(lane.fresh, (seq for _, seq in lane.retries))
        lane.fresh.clear()
        lane.retries.clear()
        lane.more = False
        self._waiting.get(lane.tenant, OrderedDict()).pop(lane.subscription, None)
        if not lane.in_flight:
            self._lanes.pop(lane.subscription, None)
