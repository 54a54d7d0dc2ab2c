"""Deliver: take what the outbox holds, send it, record how that went, and try again when it is due."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from vettance import clock
from vettance.db.engine import Lost, Store, StoreDown
from vettance.logs import logger
from vettance.ops.meters import Meters
from vettance.tenants import sql as tenants_sql
from vettance.vault import Sealed, Vault
from vettance.webhooks import outbox
from vettance.webhooks.lane import READY_MAX, Lane, Lanes
from vettance.webhooks.post import Postman
from vettance.webhooks.sql import AREA, unseal
from vettance.webhooks.webhook import DeliveryState, Failure, Outcome, RetryPolicy, signed_headers

# New deliveries are looked for this often. Half of it is what a delivery waits on average; a look costs a
# tenth of a millisecond.
_POLL_S: Final = 0.02
# Rounds of claims and of settlements are this far apart at least, so that a busy worker makes few large
# commits: every one keeps the decisions of the service from being written for its while.
_ROUND_S: Final = 0.01
_CHANGES_S: Final = 0.25
_SWEEP_S: Final = 10.0
_OVERDUE_MS: Final = 5_000
_STORE_PAUSE_S: Final = 0.25
# A lease outlives any attempt and its settlement. After it another worker may take the delivery.
LEASE_MS: Final = 30_000
#: How long nothing is sent to a subscription whose secret does not open, before it is tried again.
SEALED_PAUSE_MS: Final = 60_000
_FEED_ROWS: Final = 2_000
_CANCEL_ROWS: Final = 1_000
_FORGET_ROWS: Final = 1_000
#: After SIGTERM: the longest attempt, and what settling it may take.
DRAIN_S_MAX: Final = 10.5
_SETTLE_S_MAX: Final = 1.5

_log = logger()


class _Sent(NamedTuple):
    """An attempt that has ended and is to be settled."""

    lane: Lane
    one: outbox.Claimed
    lease: str
    outcome: Outcome


class Deliverer:
    """Sends the deliveries of every tenant. `alone` says that no other worker uses this store.

    Deliveries and their attempts are forgotten when they are older than `keep_ms`; with None, never.

    A delivery is claimed (its lease is in the store) before it is sent and settled after. If this process
    dies in between, the attempt does not count and is made again; the receiver sees the same `webhook-id`.
    """

    def __init__(
        self,
        store: Store,
        postman: Postman,
        vault: Vault,
        *,
        policy: RetryPolicy | None = None,
        alone: bool = True,
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
        self._keep_ms = keep_ms
        self._now_ms = now_ms
        self._lanes = Lanes()
        self._fed_through = 0
        self._changes_seen = 0
        self._attempts: dict[asyncio.Task[None], tuple[int, str]] = {}
        self._doubtful: list[tuple[list[int], str]] = []
        self._sent: list[_Sent] = []
        self._something_sent = asyncio.Event()
        self._stopping = asyncio.Event()
        self._started = self._drained = False
        self._next_feed = self._next_changes = self._next_sweep = 0.0

    def stop(self) -> None:
        """Begin to drain: nothing new is claimed, what is under way may end."""
        self._stopping.set()

    async def run(self) -> None:
        """Deliver until `stop` is called and everything under way has ended or run out of time."""
        settling = asyncio.create_task(self._settle_for_ever())
        try:
            while not self._stopping.is_set():
                took = await self._turn()
                await self._pause(took=took)
            await self._drain(settling)
        finally:
            settling.cancel()
            await asyncio.gather(settling, return_exceptions=True)

    async def _start(self) -> None:
        if self._alone:
            await self._store.write(outbox.release_all())
        self._changes_seen = (await self._store.read(tenants_sql.select_last_change()))[0][0]
        self._fed_through = (await self._store.read(outbox.select_last_delivery()))[0][0]
        for (subscription,) in await self._store.read(outbox.select_pending_lanes()):
            await self._refill(self._lanes.lane(subscription))
        self._started = True

    async def _turn(self) -> bool:
        """Look what is new, and send what may go; tell whether anything went."""
        try:
            if not self._started:
                await self._start()
            while self._doubtful:
                # What is added meanwhile comes behind it.
                await self._store.write(outbox.release(*self._doubtful[0]))
                self._doubtful.pop(0)
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
            await asyncio.sleep(_STORE_PAUSE_S)
        except Exception:  # noqa: BLE001 - a loop that died silently would stop every webhook
            _log.exception("webhooks_turn_failed")
            await asyncio.sleep(_STORE_PAUSE_S)
        return False

    async def _pause(self, *, took: bool) -> None:
        """Sleep until there can be something to do: the next look, or the moment of the next retry."""
        pause_s = _ROUND_S if took else _POLL_S
        due_at_ms = self._lanes.next_due_at_ms()
        if due_at_ms is not None:
            # A retry that is due already waits for its lane, not for the clock.
            until_s = (due_at_ms - self._now_ms()) / 1000
            pause_s = min(pause_s, until_s) if until_s > 0 else pause_s
        await asyncio.sleep(max(pause_s, 0.001))

    async def _feed(self) -> None:
        """Take in what was queued since the last look."""
        while True:
            rows = await self._store.read(outbox.select_feed(self._fed_through, _FEED_ROWS))
            now_ms = self._now_ms()
            for seq, subscription, due_at_ms, state in rows:
                if state == DeliveryState.PENDING:
                    self._lanes.add(subscription, seq, due_at_ms, now_ms)
            if rows:
                self._fed_through = rows[-1][0]
            if len(rows) < _FEED_ROWS:
                return

    async def _refill(self, lane: Lane) -> None:
        """Take in what the store has waiting for a lane, as far as there is room."""
        limit = READY_MAX + len(lane.known)
        rows = await self._store.read(outbox.select_lane(lane.subscription, self._now_ms(), LEASE_MS, limit))
        lane.more = len(rows) == limit
        now_ms = self._now_ms()
        for seq, due_at_ms in rows:
            self._lanes.add(lane.subscription, seq, due_at_ms, now_ms)

    async def _follow_changes(self) -> None:
        """Look again at the lanes that somebody changed: replays, and subscriptions that are gone."""
        rows = await self._store.read(tenants_sql.select_changes(self._changes_seen))
        changed = dict.fromkeys(subject for _, area, _, subject in rows if area == AREA)
        for subscription in changed:
            while True:
                canceled = await self._store.write(
                    outbox.cancel_orphans(subscription, self._now_ms(), _CANCEL_ROWS)
                )
                if canceled[0] < _CANCEL_ROWS:
                    break
            lane = self._lanes.lane(subscription)
            if lane.held_until_ms is not None:
                lane.held_until_ms = 0  # Its secret may be another one.
            await self._refill(lane)
        if rows:
            self._changes_seen = rows[-1][0]

    async def _sweep(self) -> None:
        """Find what no worker has in mind, and forget what is old."""
        now_ms = self._now_ms()
        for (subscription,) in await self._store.read(outbox.select_overdue_lanes(now_ms, _OVERDUE_MS)):
            self._lanes.lane(subscription).more = True
        if self._keep_ms is None:
            return
        first = (await self._store.read(outbox.select_first_delivery()))[0][0]
        if first is not None:
            forgotten = await self._store.write(*outbox.forget(first, now_ms - self._keep_ms, _FORGET_ROWS))
            if forgotten[1]:
                self._next_sweep = 0.0  # There may be more; deliveries come in between.

    async def _dispatch(self) -> bool:
        taken = self._lanes.take(self._now_ms())
        for chunk in _chunks(taken, outbox.CLAIM_MAX):
            await self._claim(chunk)
        return bool(taken)

    async def _claim(self, chunk: Sequence[tuple[Lane, int]]) -> None:
        """Take the leases of some deliveries and start sending those that were got."""
        numbers = [seq for _, seq in chunk]
        lease, now_ms = secrets.token_hex(8), self._now_ms()
        claimed: dict[int, outbox.Claimed] = {}
        taken = len(numbers)  # For all that is known until the store has answered.
        try:
            taken = (await self._store.write(outbox.claim(numbers, lease, now_ms, LEASE_MS)))[0]
            rows = await self._store.read(outbox.select_claimed(numbers, lease))
            claimed = {row[0]: outbox.claimed_of(row) for row in rows}
        finally:
            if len(claimed) < taken:
                # The store failed in between. A lease that was taken and is not used would keep everybody
                # from sending until it runs out.
                self._doubtful.append(([seq for seq in numbers if seq not in claimed], lease))
                _log.warning("webhook_claim_in_doubt", taken=taken, seen=len(claimed))
            for lane, seq in chunk:
                one = claimed.get(seq)
                if one is None:
                    # Another worker's, canceled, or the store failed: whatever it is, the store knows.
                    self._lanes.done(lane, seq)
                    lane.more = True
                else:
                    task = asyncio.create_task(self._attempt(lane, one, lease))
                    self._attempts[task] = (seq, lease)
                    task.add_done_callback(self._attempts.pop)

    async def _attempt(self, lane: Lane, one: outbox.Claimed, lease: str) -> None:
        started_at_ms = self._now_ms()
        try:
            keys = [
                unseal(self._vault, sealed, one.tenant, one.subscription)
                for sealed in one.secrets.signing(started_at_ms)
            ]
            headers = signed_headers(
                one.type, one.id, one.attempts + 1, started_at_ms // 1000, one.body, keys
            )
            outcome = await self._postman.post(one.url, headers, one.body, self._policy.attempt_s_max)
        except Sealed:
            self._put_off(lane, one, lease)
            return
        except Exception:  # noqa: BLE001 - a bug here must not leave its delivery unsettled
            _log.exception("webhook_attempt_failed", delivery=one.id)
            outcome = Outcome(0, Failure.INTERNAL, b"", started_at_ms, self._now_ms() + 1, 0)
        lane.held_until_ms = None
        self._meters.attempted(outcome.failure or "delivered", outcome.duration_ms)
        lane.learn(outcome.duration_ms, timed_out=outcome.failure is Failure.TIMEOUT)
        self._sent.append(_Sent(lane, one, lease, outcome))
        self._something_sent.set()

    def _put_off(self, lane: Lane, one: outbox.Claimed, lease: str) -> None:
        """Keep what a secret that does not open could not sign, and try its lane again in a while.

        It is the fault of this deployment, not of the receiver, and costs the delivery no attempt.
        """
        if lane.held_until_ms is None:
            _log.error("webhook_secret_sealed", subscription=one.subscription)
        self._meters.attempted(Failure.SECRET, 0)
        now_ms = self._now_ms()
        lane.held_until_ms = now_ms + SEALED_PAUSE_MS
        self._doubtful.append(([one.seq], lease))
        self._lanes.done(lane, one.seq)
        self._lanes.add(one.subscription, one.seq, now_ms, now_ms)

    async def _settle_for_ever(self) -> None:
        while True:
            await self._something_sent.wait()
            self._something_sent.clear()
            batch, self._sent = self._sent, []
            try:
                failed = await self._settle(batch)
            except Exception:  # noqa: BLE001 - a loop that died silently would stop every webhook
                _log.exception("webhooks_settling_failed")
                failed = []
                for sent in batch:
                    self._let_go(sent)
            if failed:
                # What was sent must be recorded, however long the store is away; the lease guards the rest.
                self._sent += failed
                self._something_sent.set()
                await asyncio.sleep(_STORE_PAUSE_S)
            elif self._drained:
                return
            await asyncio.sleep(_ROUND_S)

    async def _settle(self, batch: list[_Sent]) -> list[_Sent]:
        """Record attempts, all in one commit, and put what failed back into its lane; return what was not."""
        verdicts = [self._judge(sent) for sent in batch]
        writes = [
            self._store.write(*outbox.settle(sent.one, sent.lease, sent.outcome, state, due_at_ms))
            for sent, (state, due_at_ms) in zip(batch, verdicts, strict=True)
        ]
        notes = [self._store.write(outbox.note_health(tally)) for tally in tallies(batch)]
        results = await asyncio.gather(*writes, *notes, return_exceptions=True)
        failed = []
        for sent, (state, due_at_ms), result in zip(batch, verdicts, results, strict=False):
            if isinstance(result, StoreDown):
                failed.append(sent)
                continue
            self._let_go(sent)
            if isinstance(result, Lost):
                self._meters.lease_lost()
                _log.warning("webhook_lease_lost", delivery=sent.one.id)
            elif isinstance(result, BaseException):
                _log.error("webhook_not_settled", delivery=sent.one.id, exc_info=result)
            elif state is DeliveryState.PENDING:
                self._lanes.add(sent.one.subscription, sent.one.seq, due_at_ms, 0)
            elif state is DeliveryState.EXHAUSTED:
                self._meters.exhausted()
                _log.warning(
                    "webhook_exhausted",
                    delivery=sent.one.id,
                    subscription=sent.one.subscription,
                    failure=sent.outcome.failure,
                )
        return failed

    def _let_go(self, sent: _Sent) -> None:
        self._lanes.done(sent.lane, sent.one.seq)

    def _judge(self, sent: _Sent) -> tuple[DeliveryState, int]:
        """Tell what an attempt makes of its delivery, and when it is due again."""
        if sent.outcome.failure is None:
            return DeliveryState.DELIVERED, sent.outcome.ended_at_ms
        due_at_ms = self._policy.due_at_ms(sent.one.attempts + 1, sent.outcome.ended_at_ms)
        if due_at_ms is None:
            return DeliveryState.EXHAUSTED, sent.outcome.ended_at_ms
        return DeliveryState.PENDING, due_at_ms

    async def _drain(self, settling: asyncio.Task[None]) -> None:
        """Let what is under way end and be settled; what runs out of time is let go without an attempt."""
        if self._attempts:
            await asyncio.wait(list(self._attempts), timeout=DRAIN_S_MAX)
        left = dict(self._attempts)
        held = [([seq], lease) for seq, lease in left.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._drained = True
        self._something_sent.set()
        await asyncio.wait((settling,), timeout=_SETTLE_S_MAX)
        try:
            await asyncio.gather(
                *(self._store.write(outbox.release(*one)) for one in (*held, *self._doubtful))
            )
        except StoreDown as error:
            _log.warning("webhook_leases_not_released", reason=str(error))


def tallies(batch: Iterable[_Sent]) -> list[outbox.Tally]:
    """Sum up, for each subscription, how its attempts went, in the order in which they ended."""
    found: dict[str, outbox.Tally] = {}
    for sent in sorted(batch, key=lambda sent: sent.outcome.ended_at_ms):
        outcome, name = sent.outcome, sent.one.subscription
        tally = found.get(name) or outbox.Tally(name, 0, None, None, 0, None)
        ended = outcome.ended_at_ms
        if outcome.failure is None:
            found[name] = tally._replace(triggered_at_ms=ended, success_at_ms=ended, failures=0)
        else:
            error = f"{outcome.failure.value} {outcome.status}" if outcome.status else outcome.failure.value
            found[name] = tally._replace(
                triggered_at_ms=ended, failure_at_ms=ended, failures=tally.failures + 1, error=error
            )
    return list(found.values())


def _chunks(items: Sequence[tuple[Lane, int]], size: int) -> Iterable[Sequence[tuple[Lane, int]]]:
    return (items[start : start + size] for start in range(0, len(items), size))
