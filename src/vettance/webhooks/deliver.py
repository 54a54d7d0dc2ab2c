"""Deliver: take what the outbox holds, send it, record how that went, and try again when it is due."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from vettance import clock
from vettance.db.engine import Statement, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.outbox import FAN_OUT_MAX
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.tenants import sql as tenants_sql
from vettance.tenants.vault import UnsealFailure, Vault
from vettance.webhooks import delivery_queue
from vettance.webhooks.attempt_results import ROUND_S, STORE_PAUSE_S, AttemptRecorder, AttemptResult
from vettance.webhooks.backlog_limit import bound_backlogs
from vettance.webhooks.delivery_queue import ClaimedDelivery
from vettance.webhooks.fan_out import FanOut
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.retry_policy import DRAIN_S_MAX, LEASE_MS, SETTLE_S_MAX, RetryPolicy
from vettance.webhooks.sql import AREA, unseal
from vettance.webhooks.subscription_queue import READY_MAX, SubscriptionQueue, SubscriptionQueues
from vettance.webhooks.takeover import DelivererTakeover, Members
from vettance.webhooks.webhook import AttemptFailure, AttemptOutcome, DeliveryState, signed_headers

# New deliveries are looked for this often. Half of it is what a delivery waits on average; a look costs a
# tenth of a millisecond.
_POLL_S: Final = 0.02
_CHANGES_S: Final = 0.25
_SWEEP_S: Final = 10.0
_OVERDUE_MS: Final = 5_000
# So many at a time are taken in, each a few microseconds; others have their turn in between.
_FEED_ROWS: Final = 250
_CANCEL_ROWS: Final = 1_000
_FORGET_ROWS: Final = 1_000

_log = logger()
Queued = tuple[SubscriptionQueue, int]


class Deliverer:
    """Sends the deliveries of every tenant. `alone` says that no other worker uses this store; with `members`
    it knows the others there are, and takes over from those that die.

    Deliveries and their attempts are forgotten when they are older than `keep_ms`; with None, never.

    A delivery is claimed (its lease is in the store) before it is sent and settled after. If this process
    dies in between, the attempt does not count and is made again; the receiver sees the same `webhook-id`.
    """

    def __init__(
        self,
        store: Store,
        postman: WebhookClient,
        vault: Vault,
        *,
        policy: RetryPolicy | None = None,
        alone: bool = True,
        members: Members | None = None,
        keep_ms: int | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
        meters: Meters | None = None,
    ) -> None:
        self._meters = meters or Meters(role="webhooks")
        self._store = store
        self._postman = postman
        self._vault = vault
        self._policy = policy or RetryPolicy()
        self._alone = alone
        self._owner = 0 if members is None else members.number
        self._succession = None if members is None else DelivererTakeover(store, members)
        self._keep_ms = keep_ms
        self._now_ms = now_ms
        self._lanes = SubscriptionQueues(
            ahead_ms_max=self._policy.ahead_ms_max, failing_pause_ms=int(self._policy.gather_s * 500)
        )
        self._settler = AttemptRecorder(store, self._policy, self._meters, self._settled)
        self._fan_out = FanOut(store, self._succession)
        self._fed_through = 0
        self._changes_seen = 0
        #: Subscriptions that somebody changed and that are still to be looked at, with their tenants.
        self._changed: dict[str, str] = {}
        self._attempts: dict[asyncio.Task[None], tuple[int, str]] = {}
        #: Leases that are not used and to be given back, with their deliveries.
        self._doubtful: dict[str, list[int]] = {}
        self._stopping = asyncio.Event()
        self._started = False
        # What fails for a subscription keeps no other waiting; a key is its tenant, a colon and its id.
        self._lane_work = Isolation("webhook_lane", _loop_s)
        self._changes_work = Isolation("webhook_change", _loop_s)
        self._rows_work = Isolation("webhook_row", _loop_s)
        self._backlog_work = Isolation("webhook_backlog", _loop_s)
        self._bounding: asyncio.Task[None] | None = None
        self._next_feed = self._next_changes = self._next_sweep = 0.0

    def stop(self) -> None:
        """Begin to drain: nothing new is claimed, what is under way may end."""
        self._stopping.set()

    async def run(self) -> None:
        """Deliver until `stop` is called and everything under way has ended or run out of time."""
        settling = asyncio.create_task(self._settler.run())
        succession = self._succession
        beside = [settling, asyncio.create_task(self._fan_out.run())]
        beside += [asyncio.create_task(succession.keep())] if succession is not None else []
        try:
            while not self._stopping.is_set():
                took = await self._turn()
                await self._pause(took=took)
            await self._drain(settling)
        finally:
            beside += [self._bounding] if self._bounding is not None else []
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            if succession is not None:
                await succession.leave()

    async def _start(self) -> None:
        if self._succession is not None:
            await self._succession.look()  # What is claimed before is taken for that of a dead one.
        if self._alone:
            await self._store.write(delivery_queue.release_all())
        self._changes_seen = (await self._store.read(tenants_sql.select_last_change()))[0][0]
        self._fed_through = (await self._store.read(delivery_queue.select_last_delivery()))[0][0]
        # What was unsubscribed while no worker looked.
        await self._cancel(delivery_queue.cancel_all_orphans(self._now_ms(), _CANCEL_ROWS))
        await self._refill_all()
        self._started = True

    async def _refill_all(self) -> None:
        """Take in what waits, of every subscription."""
        for tenant, subscription in await self._store.read(delivery_queue.select_pending_lanes()):
            await self._refill(self._lanes.lane(tenant, subscription))

    async def _turn(self) -> bool:
        """Look what is new, and send what may go; tell whether anything went."""
        try:
            if not self._started:
                await self._start()
            if self._succession is not None and self._succession.is_open:
                self._succession.is_open = False
                await self._refill_all()
            await self._release_doubtful()
            now = asyncio.get_running_loop().time()
            if now >= self._next_feed:
                self._next_feed = now + _POLL_S
                await self._feed()
                for lane in self._lanes.hungry():
                    await self._refill(lane)
            if now >= self._next_changes:
                self._next_changes = now + _CHANGES_S
                await self._follow_changes()
            if now >= self._next_sweep:
                self._next_sweep = now + _SWEEP_S
                await self._sweep()
            return await self._dispatch()
        except StoreDown:
            await asyncio.sleep(STORE_PAUSE_S)
        except Exception:  # noqa: BLE001 - a loop that died silently would stop every webhook
            _log.exception("webhooks_turn_failed")
            await asyncio.sleep(STORE_PAUSE_S)
        return False

    async def _pause(self, *, took: bool) -> None:
        """Sleep until there can be something to do: the next look, or the moment of the next retry."""
        pause_s = ROUND_S if took else _POLL_S
        due_at_ms = self._lanes.next_due_at_ms()
        if due_at_ms is not None:
            # A retry that is due already waits for its lane, not for the clock.
            until_s = (due_at_ms - self._now_ms()) / 1000
            pause_s = min(pause_s, until_s) if until_s > 0 else pause_s
        await asyncio.sleep(max(pause_s, 0.001))

    async def _release_doubtful(self) -> None:
        """Give back leases that are not used; those that cannot be run out by themselves."""
        for lease, numbers in tuple(self._doubtful.items()):
            with self._rows_work.of(f":{lease}"):
                await self._store.write(delivery_queue.release(numbers, lease))
            # What was added meanwhile is another list.
            if self._doubtful.get(lease) is numbers:
                del self._doubtful[lease]
            self._rows_work.forget(f":{lease}")

    def _doubt(self, numbers: Sequence[int], lease: str) -> None:
        self._doubtful[lease] = [*self._doubtful.get(lease, ()), *numbers]

    async def _feed(self) -> None:
        """Take in what was queued since the last look."""
        fed = 0
        while True:
            rows = await self._store.read(delivery_queue.select_feed(self._fed_through, _FEED_ROWS))
            now_ms = self._now_ms()
            for seq, tenant, subscription, due_at_ms, state in rows:
                if state == DeliveryState.PENDING:
                    with self._lane_work.of(f"{tenant}:{subscription}"):
                        self._lanes.add(self._lanes.lane(tenant, subscription), seq, due_at_ms, now_ms)
            if rows:
                self._fed_through = rows[-1][0]
            fed += len(rows)
            if len(rows) < _FEED_ROWS:
                break
        if fed >= FAN_OUT_MAX:
            self._fan_out.wake()  # No message with fewer has more.

    async def _refill(self, lane: SubscriptionQueue) -> None:
        """Take in what the store has waiting for a lane, as far as there is room."""
        key = f"{lane.tenant}:{lane.subscription}"
        self._lanes.note_more(lane, more=True)  # Until the store has said otherwise.
        if not self._lane_work.is_due(key):
            return
        with self._lane_work.of(key):
            limit = READY_MAX + len(lane.known)
            waiting = delivery_queue.select_lane(lane.subscription, self._now_ms(), LEASE_MS, limit)
            rows = await self._store.read(waiting)
            self._lanes.note_more(lane, more=len(rows) == limit)
            now_ms = self._now_ms()
            for seq, due_at_ms in rows:
                self._lanes.add(lane, seq, due_at_ms, now_ms)

    async def _follow_changes(self) -> None:
        """Look again at the lanes that somebody changed: replays, and subscriptions that are gone."""
        rows = await self._store.read(tenants_sql.select_changes(self._changes_seen))
        self._changed |= tenants_sql.changed_of(rows, AREA, self._changes_seen, self._lanes.tenants)
        if rows:
            self._changes_seen = rows[-1][0]
        for subscription, tenant in tuple(self._changed.items()):
            key = f"{tenant}:{subscription}"
            if not self._changes_work.is_due(key):
                continue
            with self._changes_work.of(key):
                await self._cancel(delivery_queue.cancel_orphans(subscription, self._now_ms(), _CANCEL_ROWS))
                lane = self._lanes.lane(tenant, subscription)
                if lane.held_until_ms is not None:
                    self._lanes.hold(lane, 0)  # Its secret may be another one.
                await self._refill(lane)
                del self._changed[subscription]

    async def _cancel(self, some: Statement) -> None:
        """Cancel some deliveries again and again, until none is left."""
        while (await self._store.write(some))[0] == _CANCEL_ROWS:
            pass

    async def _sweep(self) -> None:
        """Find what no worker has in mind, and forget what is old."""
        self._fan_out.wake()
        self._lanes.forget_idle(now_ms := self._now_ms())
        overdue = delivery_queue.select_overdue_lanes(now_ms, _OVERDUE_MS, self._policy.ahead_ms_max)
        for tenant, subscription in await self._store.read(overdue):
            self._lanes.note_more(self._lanes.lane(tenant, subscription), more=True)
        if self._bounding is None or self._bounding.done():
            # Nobody's deliveries wait while too many of one tenant are given up.
            bounding = bound_backlogs(self._store, self._backlog_work, self._meters, now_ms)
            self._bounding = asyncio.create_task(bounding)
        if self._keep_ms is None:
            return
        first = (await self._store.read(delivery_queue.select_first_delivery()))[0][0]
        if first is not None:
            forget = delivery_queue.forget(first, now_ms - self._keep_ms, _FORGET_ROWS)
            if (await self._store.write(*forget))[-1]:
                self._next_sweep = 0.0  # There may be more; deliveries come in between.

    async def _dispatch(self) -> bool:
        """Claim what may go and begin to send it. Where the store does not take a claim for a reason of its
        own, halves of it are tried, so that one row that cannot be read keeps no other from being sent."""
        taken = self._lanes.take(self._now_ms(), delivery_queue.COMMIT_MAX)
        chunks = deque([taken] if taken else ())
        while chunks:
            chunk, lease = chunks.popleft(), delivery_queue.make_lease(self._owner, secrets.token_hex(8))
            try:
                claimed = await self._claim(chunk, lease)
            except StoreDown:
                for lane, seq in chain(chunk, *chunks):
                    self._leave(lane, seq)
                raise
            except Exception as error:  # noqa: BLE001 - isolated, counted and logged, whatever it is
                if len(chunk) > 1:
                    chunks += (chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :])
                    continue
                lane, seq = chunk[0]
                self._rows_work.failed(f"{lane.tenant}:{seq}", error)
                self._set_aside(lane, seq)
            else:
                for lane, seq in chunk:
                    self._begin(lane, seq, lease, claimed)
        return bool(taken)

    async def _claim(self, chunk: Sequence[Queued], lease: str) -> dict[int, ClaimedDelivery | None]:
        """Take the leases of some deliveries; return those that were got, None for what cannot be read."""
        numbers = [seq for _, seq in chunk]
        claimed: dict[int, ClaimedDelivery | None] = {}
        taken = len(numbers)  # For all that is known until the store has answered.
        try:
            claim = delivery_queue.claim(numbers, lease, self._now_ms(), LEASE_MS, self._policy.ahead_ms_max)
            taken = (await self._store.write(claim))[0]
            for row in await self._store.read(delivery_queue.select_claimed(numbers, lease)):
                claimed[row[0]] = None
                with self._rows_work.of(f"{row[2]}:{row[1]}"):
                    claimed[row[0]] = delivery_queue.claimed_of(row)
        finally:
            if len(claimed) < taken:
                # The store failed in between. A lease that was taken and is not used would keep everybody
                # from sending until it runs out.
                self._doubt([seq for seq in numbers if seq not in claimed], lease)
                _log.warning("webhook_claim_in_doubt", taken=taken, seen=len(claimed))
        return claimed

    def _begin(
        self, lane: SubscriptionQueue, seq: int, lease: str, claimed: Mapping[int, ClaimedDelivery | None]
    ) -> None:
        """Start sending a delivery that was claimed."""
        one = claimed.get(seq)
        if one is not None:
            task = asyncio.create_task(self._attempt(lane, one, lease))
            self._attempts[task] = (seq, lease)
            task.add_done_callback(self._attempts.pop)
        elif seq in claimed:
            self._doubt([seq], lease)
            self._set_aside(lane, seq)
        else:
            self._leave(lane, seq)

    def _leave(self, lane: SubscriptionQueue, seq: int) -> None:
        """Let go of a delivery that is another worker's, canceled, or was not got because the store failed:
        whatever it is, the store knows."""
        self._lanes.done(lane, seq)
        self._lanes.note_more(lane, more=True)

    def _set_aside(self, lane: SubscriptionQueue, seq: int) -> None:
        """Let a delivery alone for a while that a fault of ours keeps from being sent."""
        self._lanes.done(lane, seq)
        now_ms = self._now_ms()
        self._lanes.add(lane, seq, now_ms + self._policy.fault_pause_ms, now_ms)

    async def _attempt(self, lane: SubscriptionQueue, one: ClaimedDelivery, lease: str) -> None:
        started_at_ms = self._now_ms()
        try:
            sealed = one.secrets.signing(started_at_ms)
            keys = [unseal(self._vault, key, one.tenant, one.subscription) for key in sealed]
            sent_at_s = started_at_ms // 1000
            headers = signed_headers(one.type, one.id, one.attempts + 1, sent_at_s, one.body, keys)
            outcome = await self._postman.post(one.url, headers, one.body, self._policy.attempt_s_max)
        except UnsealFailure:
            self._put_off(lane, one, lease)
            return
        except Exception:  # noqa: BLE001 - a bug here must not leave its delivery unsettled
            _log.exception("webhook_attempt_failed", delivery=one.id)
            outcome = AttemptOutcome(0, AttemptFailure.INTERNAL, b"", started_at_ms, self._now_ms() + 1, 0)
        self._lanes.hold(lane, None)
        self._meters.attempted(outcome.failure or "delivered", outcome.duration_ms)
        unreached = outcome.failure in (AttemptFailure.TIMEOUT, AttemptFailure.DNS)
        lane.learn(outcome.duration_ms, failed=outcome.failure is not None, unreached=unreached)
        self._settler.note(AttemptResult(lane, one, lease, outcome))

    def _put_off(self, lane: SubscriptionQueue, one: ClaimedDelivery, lease: str) -> None:
        """Keep what a secret that does not open could not sign, and try its lane again in a while.

        It is the fault of this deployment, not of the receiver, and costs the delivery no attempt.
        """
        if lane.held_until_ms is None:
            _log.error("webhook_secret_sealed", subscription=one.subscription)
        self._meters.attempted(AttemptFailure.SECRET, 0)
        now_ms = self._now_ms()
        self._lanes.hold(lane, now_ms + self._policy.fault_pause_ms)
        self._doubt([one.seq], lease)
        self._lanes.done(lane, one.seq)
        self._lanes.add(lane, one.seq, now_ms, now_ms)

    def _settled(self, sent: AttemptResult, due_at_ms: int | None) -> None:
        """Make room for what comes after an attempt that is over."""
        self._lanes.done(sent.lane, sent.one.seq)
        if due_at_ms is not None:
            self._lanes.add(sent.lane, sent.one.seq, due_at_ms, self._now_ms())

    async def _drain(self, settling: asyncio.Task[None]) -> None:
        """Let what is under way end and be settled; what runs out of time is let go without an attempt."""
        if self._attempts:
            await asyncio.wait(list(self._attempts), timeout=DRAIN_S_MAX)
        left = dict(self._attempts)
        held = [([seq], lease) for seq, lease in left.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._settler.end()
        await asyncio.wait((settling,), timeout=SETTLE_S_MAX)
        try:
            await asyncio.gather(
                *(self._store.write(delivery_queue.release(*one)) for one in held),
                *(self._store.write(delivery_queue.release(*one[::-1])) for one in self._doubtful.items()),
            )
        except StoreDown as error:
            _log.warning("webhook_leases_not_released", reason=str(error))


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
