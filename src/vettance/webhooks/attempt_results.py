"""Settle: records how attempts went, many in one commit, and tells when each delivery is due again."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.webhooks import delivery_queue
from vettance.webhooks.retry_policy import RetryPolicy
from vettance.webhooks.subscription_queue import SubscriptionQueue
from vettance.webhooks.webhook import AttemptOutcome, DeliveryState

#: Rounds of claims and of settlements are this far apart at least, so that a busy worker makes few large
#: commits: every one keeps the decisions of the service from being written for its while.
ROUND_S: Final = 0.01
#: How long a store that does not answer is let alone.
STORE_PAUSE_S: Final = 0.25

_log = logger()


class AttemptResult(NamedTuple):
    """An attempt that has ended and is to be settled."""

    lane: SubscriptionQueue
    one: delivery_queue.ClaimedDelivery
    lease: str
    outcome: AttemptOutcome


#: What an attempt makes of its delivery, and when it is due again (Unix milliseconds).
Verdict = tuple[DeliveryState, int]


class AttemptRecorder:
    """Records attempts. One that cannot be recorded keeps no other from it.

    `on_settled` is called once for each attempt that is over, with when its delivery is due again; with None
    it is not, or nobody knows: then the store has the last word.
    """

    def __init__(
        self,
        store: Store,
        policy: RetryPolicy,
        meters: Meters,
        on_settled: Callable[[AttemptResult, int | None], None],
    ) -> None:
        self._store = store
        self._policy = policy
        self._meters = meters
        self._on_settled = on_settled
        self._sent: list[AttemptResult] = []
        self._wake = asyncio.Event()
        #: Gathering ends: something has arrived, or there is as much as one commit may have.
        self._hurry = asyncio.Event()
        self._is_ending = False
        self._isolation = Isolation("webhook_settlement", lambda: asyncio.get_running_loop().time())

    def note(self, sent: AttemptResult) -> None:
        """Take in an attempt that has ended."""
        self._sent.append(sent)
        self._wake.set()
        if sent.outcome.failure is None or len(self._sent) >= delivery_queue.COMMIT_MAX:
            self._hurry.set()

    def end(self) -> None:
        """Let `run` return once everything taken in is recorded."""
        self._is_ending = True
        self._wake.set()
        self._hurry.set()

    async def run(self) -> None:
        """Record whatever is taken in, for ever, or until `end`."""
        while True:
            await self._wake.wait()
            if not self._is_ending:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._policy.gather_s):
                        await self._hurry.wait()
            self._wake.clear()
            self._hurry.clear()
            most = delivery_queue.COMMIT_MAX
            batch, self._sent = self._sent[:most], self._sent[most:]
            try:
                failed = await self._settle(batch)
            except Exception:  # noqa: BLE001 - a loop that died silently would stop every webhook
                _log.exception("webhooks_settling_failed")
                failed = []
                for sent in batch:
                    self._on_settled(sent, None)
            if failed:
                # What was sent must be recorded, however long that takes; the lease guards the rest.
                self._sent += failed
                await asyncio.sleep(STORE_PAUSE_S)
            elif self._is_ending and not self._sent:
                return
            if self._sent:
                self._wake.set()
                if len(self._sent) >= most or any(sent.outcome.failure is None for sent in self._sent):
                    self._hurry.set()
            await asyncio.sleep(ROUND_S)

    async def _settle(self, batch: list[AttemptResult]) -> list[AttemptResult]:
        """Record attempts, all in one commit; return those that the store did not take."""
        judged = [(sent, self._judge(sent)) for sent in batch]
        writes = [
            self._store.write(*delivery_queue.settle(sent.one, sent.lease, sent.outcome, state, due_at_ms))
            for sent, (state, due_at_ms) in judged
        ]
        notes = [self._store.write(delivery_queue.note_health(tally)) for tally in queue_progress(batch)]
        results = await asyncio.gather(*writes, *notes, return_exceptions=True)
        failed = []
        for (sent, verdict), result in zip(judged, results, strict=False):
            if isinstance(result, StoreDown):
                failed.append(sent)
            else:
                self._conclude(sent, verdict, result)
        return failed

    def _conclude(self, sent: AttemptResult, verdict: Verdict, result: object) -> None:
        state, due_at_ms = verdict
        is_recorded = not isinstance(result, BaseException)
        is_due_again = is_recorded and state is DeliveryState.PENDING
        self._on_settled(sent, due_at_ms if is_due_again else None)
        if isinstance(result, Lost):
            self._meters.lease_lost()
            _log.warning("webhook_lease_lost", delivery=sent.one.id)
        elif isinstance(result, Exception):
            self._isolation.failed(_key(sent), result)
        elif isinstance(result, BaseException):
            raise result
        elif state is DeliveryState.EXHAUSTED:
            self._meters.exhausted()
            _log.warning(
                "webhook_exhausted",
                delivery=sent.one.id,
                subscription=sent.one.subscription,
                failure=sent.outcome.failure,
            )

    def _judge(self, sent: AttemptResult) -> Verdict:
        """Tell what an attempt makes of its delivery, and when it is due again."""
        if sent.outcome.failure is None:
            return DeliveryState.DELIVERED, sent.outcome.ended_at_ms
        due_at_ms = self._policy.due_at_ms(sent.one.attempts + 1, sent.outcome.ended_at_ms)
        if due_at_ms is None:
            return DeliveryState.EXHAUSTED, sent.outcome.ended_at_ms
        return DeliveryState.PENDING, due_at_ms


def _key(sent: AttemptResult) -> str:
    return f"{sent.one.tenant}:{sent.one.id}"


def queue_progress(batch: Iterable[AttemptResult]) -> list[delivery_queue.QueueProgress]:
    """Sum up, for each subscription, how its attempts went, in the order in which they ended."""
    found: dict[str, delivery_queue.QueueProgress] = {}
    for sent in sorted(batch, key=lambda sent: sent.outcome.ended_at_ms):
        outcome, name = sent.outcome, sent.one.subscription
        tally = found.get(name) or delivery_queue.QueueProgress(name, 0, None, None, 0, None)
        ended = outcome.ended_at_ms
        if outcome.failure is None:
            found[name] = tally._replace(triggered_at_ms=ended, success_at_ms=ended, failures=0)
        else:
            error = f"{outcome.failure.value} {outcome.status}" if outcome.status else outcome.failure.value
            found[name] = tally._replace(
                triggered_at_ms=ended, failure_at_ms=ended, failures=tally.failures + 1, error=error
            )
    return list(found.values())
