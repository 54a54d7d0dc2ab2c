"""Lanes: one queue for each subscription, so that a receiver that hangs holds up nobody but itself."""

import heapq
import itertools
from collections import OrderedDict, deque
from typing import Final, NamedTuple

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
#: Attempts at failing receivers, of all tenants, are this far apart, and those due meanwhile go together: a
#: round is claimed in a commit, for which the decisions of everybody wait.
FAILING_PAUSE_MS: Final = 50
#: What a lane keeps in memory. Beyond this the store remembers, and the lane is filled again from there.
READY_MAX: Final = 1000
READY_LOW: Final = 250
RETRIES_MAX: Final = 10_000
#: So many lanes are filled again in one round; what is due is sent in between.
REFILLS_MAX: Final = 25

#: A lane that nothing was in for so long is forgotten: what it learned is old, its subscription may be gone.
IDLE_MS_MAX: Final = 3_600_000

#: So many entries of lanes that wait for another moment by now are kept, besides one for each that waits.
_STALE_MAX: Final = 64


class LaneGroup(NamedTuple):
    """What bounds a lane that has something ready, in addition to its own limit."""

    failing: bool
    slow: bool


class SubscriptionQueue:
    """The deliveries of one subscription, by their number in the store.

    `limit` is how many may go at once. It grows by one for each full round of quick answers and is halved by
    each slow one or time-out, as TCP does with its window (additive increase, multiplicative decrease).
    """

    __slots__ = (
        *("_ahead_ms_max", "counted_slow", "failing", "fresh", "held_until_ms", "in_flight", "known"),
        *("limit", "more", "ready_in", "retries", "subscription", "tenant", "turn", "used_at_ms"),
        "wakes_at_ms",
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
        # Where `SubscriptionQueues` keeps it: in which group of lanes that can go, since which turn; or
        # when it is looked at again. And how many of those under way count as going to a receiver that hangs.
        self.ready_in: LaneGroup | None = None
        self.turn = 0
        self.wakes_at_ms: int | None = None
        self.counted_slow = 0
        #: When something was put into it or came back last.
        self.used_at_ms = 0

    @property
    def slow(self) -> bool:
        """Whether the receiver has hung so often that it is down to a trickle."""
        return self.limit < 2

    @property
    def idle(self) -> bool:
        """Whether nothing is in it or under way, and the store has no more of it."""
        return not (self.known or self.in_flight or self.more)

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

    def next_at_ms(self, now_ms: int) -> int | None:
        """Return when something can go, `now_ms` if at once; None when nothing waits, or when what is under
        way has to end first."""
        if self.in_flight + 1 > self.limit or not (self.fresh or self.retries):
            return None
        if self.held_until_ms is not None and self._waits(self.held_until_ms, now_ms):
            return self.held_until_ms
        if not self.fresh and self._waits(self.retries[0][0], now_ms):
            return self.retries[0][0]
        return now_ms

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

    A round looks at what can go now, however many lanes there are: a lane that can go is in a row of its
    tenant, one that waits for a moment in a heap, and one that waits for the end of what is under way nowhere
    until that ends. What may change where a lane belongs (a field of it, or the limit that it learns) is
    looked at when its turn comes, and whenever something is added to it or ends.
    """

    def __init__(
        self,
        in_flight_max: int = IN_FLIGHT_MAX,
        ahead_ms_max: int = RetryPolicy().ahead_ms_max,
        failing_pause_ms: int = FAILING_PAUSE_MS,
    ) -> None:
        self._ahead_ms_max = ahead_ms_max
        self._failing_pause_ms = failing_pause_ms
        self._shares = DynamicShares(in_flight_max)
        self._slow = DynamicShares(max(1, int(in_flight_max * _SLOW_SHARE)))
        self._failing = RateShares(FAILING_PER_S, FAILING_BURST)
        #: Tenants that wait until they may make a round of attempts at failing receivers.
        self._resting: set[str] = set()
        #: When attempts at failing receivers were taken last, of all tenants.
        self._failed_at_ms = 0
        self._lanes: dict[str, SubscriptionQueue] = {}
        # Lanes that can go, by tenant and group, those that came first in front; and tenants in their turns.
        self._ready: OrderedDict[str, dict[LaneGroup, OrderedDict[str, SubscriptionQueue]]] = OrderedDict()
        self._turns = itertools.count(1)
        # (moment, turn, lane): an entry counts while the lane waits for that moment.
        self._wakes: list[tuple[int, int, SubscriptionQueue]] = []
        self._waking = 0
        self._seen_ms = 0
        self._hungry: OrderedDict[str, OrderedDict[str, SubscriptionQueue]] = OrderedDict()
        self.in_flight = 0

    def lane(self, tenant: str, subscription: str) -> SubscriptionQueue:
        """Return the lane of a subscription, making it where there is none."""
        lane = self._lanes.get(subscription)
        if lane is None:
            lane = self._lanes[subscription] = SubscriptionQueue(tenant, subscription, self._ahead_ms_max)
        return lane

    def tenants(self) -> dict[str, str]:
        """Return whose the subscription of each lane is."""
        return {lane.subscription: lane.tenant for lane in self._lanes.values()}

    def add(self, lane: SubscriptionQueue, seq: int, due_at_ms: int, now_ms: int) -> None:
        """Take a delivery into a lane."""
        lane.add(seq, due_at_ms, now_ms)
        lane.used_at_ms = now_ms
        self._place(lane, now_ms)

    def note_more(self, lane: SubscriptionQueue, *, more: bool) -> None:
        """Note whether the store has more of a lane than is in it."""
        lane.more = more
        self._note_hunger(lane)

    def hold(self, lane: SubscriptionQueue, until_ms: int | None) -> None:
        """Let nothing of a lane go before a moment; None ends that."""
        lane.held_until_ms = until_ms
        self._place(lane, self._seen_ms)

    def hungry(self, most: int = REFILLS_MAX) -> list[SubscriptionQueue]:
        """Return lanes that the store has more for, so many at most: a turn for each tenant and each lane."""
        found: list[SubscriptionQueue] = []
        turns = deque(itertools.islice(self._hungry.items(), most))
        counts = dict.fromkeys((tenant for tenant, _ in turns), 0)
        while turns and len(found) < most:
            tenant, lanes = turns.popleft()
            subscription, lane = next(iter(lanes.items()))
            found.append(lane)
            lanes.move_to_end(subscription)
            self._hungry.move_to_end(tenant)
            counts[tenant] += 1
            if counts[tenant] < len(lanes):
                turns.append((tenant, lanes))
        return found

    def take(self, now_ms: int, most: int = READY_MAX) -> list[tuple[SubscriptionQueue, int]]:
        """Return (lane, delivery) pairs to send now, a turn for each tenant until the limits are reached, or
        there are as many as may be."""
        self._wake(now_ms)
        taken: list[tuple[SubscriptionQueue, int]] = []
        idle, has_failing = 0, False
        while self._ready and idle < len(self._ready) and self._shares.free > 0 and len(taken) < most:
            tenant = next(iter(self._ready))
            self._ready.move_to_end(tenant)
            lane = self._next_lane(tenant, now_ms)
            if lane is None:
                idle += tenant in self._ready
                continue
            idle = 0
            if lane.failing:
                self._failing.count(tenant, now_ms)
                has_failing = True
            self._shares.count(1, tenant)
            self.in_flight += 1
            taken.append((lane, lane.pop(now_ms)))
            self._unready(lane)  # To the end of its row.
            self._place(lane, now_ms)
        if has_failing and len(taken) < most:  # Else there may be more of this round.
            self._failed_at_ms = now_ms
        return taken

    def _next_lane(self, tenant: str, now_ms: int) -> SubscriptionQueue | None:
        """Return the lane of a tenant whose turn it is, of those that something can go to."""
        if not self._shares.fits(1, tenant):
            return None
        while (groups := self._ready.get(tenant)) is not None:
            may_fail = not any(group.failing for group in groups) or self._may_fail(tenant, now_ms)
            may_hang = self._slow.fits(1, tenant)
            firsts = [
                next(iter(lanes.values()))
                for group, lanes in groups.items()
                if (may_fail or not group.failing) and (may_hang or not group.slow)
            ]
            if not firsts:
                return None
            lane = min(firsts, key=_turn_of)
            group = lane.ready_in
            self._place(lane, now_ms)
            if lane.ready_in == group:
                return lane
        return None

    def _may_fail(self, tenant: str, now_ms: int) -> bool:
        """Tell whether a tenant may have an attempt at a receiver whose last one failed."""
        if self._failed_at_ms < now_ms < self._failed_at_ms + self._failing_pause_ms:
            return False
        fits = self._failing.fits(tenant, now_ms, FAILING_ROUND if tenant in self._resting else 1)
        (self._resting.discard if fits else self._resting.add)(tenant)
        return fits

    def done(self, lane: SubscriptionQueue, seq: int) -> None:
        """Note that a delivery that was taken is under way no more; saying so twice does no harm."""
        if seq not in lane.known:
            return
        lane.done(seq)
        lane.used_at_ms = self._seen_ms
        self._shares.give(1, lane.tenant)
        self.in_flight -= 1
        self._place(lane, self._seen_ms)

    def next_due_at_ms(self) -> int | None:
        """Return when the next lane that waits for a moment can go, Unix milliseconds; None without one."""
        self._skip_stale()
        return self._wakes[0][0] if self._wakes else None

    def forget_idle(self, now_ms: int) -> None:
        """Forget lanes that nothing was in for `IDLE_MS_MAX`, or that were used when a clock stood wrong."""
        for lane in tuple(self._lanes.values()):
            if lane.idle and not 0 <= now_ms - lane.used_at_ms < IDLE_MS_MAX:
                del self._lanes[lane.subscription]

    def _wake(self, now_ms: int) -> None:
        """Look again at the lanes whose moment has come; at all that wait, if the clock was set back."""
        if now_ms < self._seen_ms:
            for _, _, lane in tuple(self._wakes):
                self._place(lane, now_ms)
        self._seen_ms = now_ms
        while (due_at_ms := self.next_due_at_ms()) is not None and due_at_ms <= now_ms:
            _, _, lane = heapq.heappop(self._wakes)
            lane.wakes_at_ms = None
            self._waking -= 1
            self._place(lane, now_ms)

    def _place(self, lane: SubscriptionQueue, now_ms: int) -> None:
        """Put a lane where it belongs now."""
        self._note_hunger(lane)
        self._slow.count((lane.in_flight if lane.slow else 0) - lane.counted_slow, lane.tenant)
        lane.counted_slow = lane.in_flight if lane.slow else 0
        at_ms = lane.next_at_ms(now_ms)
        if at_ms is not None and at_ms <= now_ms:
            self._wait_until(lane, None)
            group = LaneGroup(lane.failing, lane.slow)
            if lane.ready_in != group:
                self._unready(lane)
                lane.ready_in, lane.turn = group, next(self._turns)
                groups = self._ready.setdefault(lane.tenant, {})
                groups.setdefault(group, OrderedDict())[lane.subscription] = lane
        else:
            self._unready(lane)
            self._wait_until(lane, at_ms)

    def _unready(self, lane: SubscriptionQueue) -> None:
        if lane.ready_in is None:
            return
        groups = self._ready[lane.tenant]
        del groups[lane.ready_in][lane.subscription]
        if not groups[lane.ready_in]:
            del groups[lane.ready_in]
        if not groups:
            del self._ready[lane.tenant]
        lane.ready_in = None

    def _wait_until(self, lane: SubscriptionQueue, at_ms: int | None) -> None:
        if lane.wakes_at_ms == at_ms:
            return
        self._waking += (at_ms is not None) - (lane.wakes_at_ms is not None)
        lane.wakes_at_ms = at_ms
        if at_ms is not None:
            heapq.heappush(self._wakes, (at_ms, next(self._turns), lane))
            if len(self._wakes) > 2 * self._waking + _STALE_MAX:
                live = {id(one[2]): one for one in self._wakes if one[2].wakes_at_ms == one[0]}
                self._wakes[:] = live.values()
                heapq.heapify(self._wakes)

    def _skip_stale(self) -> None:
        while self._wakes and self._wakes[0][2].wakes_at_ms != self._wakes[0][0]:
            heapq.heappop(self._wakes)

    def _note_hunger(self, lane: SubscriptionQueue) -> None:
        lanes = self._hungry.get(lane.tenant)
        if lane.hungry:
            if lanes is None:
                lanes = self._hungry[lane.tenant] = OrderedDict()
            lanes.setdefault(lane.subscription, lane)
        elif lanes is not None and lanes.pop(lane.subscription, None) is not None and not lanes:
            del self._hungry[lane.tenant]


def _turn_of(lane: SubscriptionQueue) -> int:
    return lane.turn
