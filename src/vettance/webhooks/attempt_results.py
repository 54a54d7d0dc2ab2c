"""Settle: records how attempts went, many in one commit, and tells when each delivery is due again."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.webhooks import delivery_queue
from vettance.webhooks.delivery_queue import RecordedAttempt
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
        """Record attempts; return those that the store did not take.

        All are one write. Where it is refused, for one lease that was lost or for a row that cannot be
        written, halves of it are tried, so that none keeps another from being recorded.
        """
        judged = [(sent, self._judge(sent)) for sent in batch]
        parts, failed = [judged] if judged else [], []
        while parts:
            part = parts.pop()
            result = await self._record(part)
            if isinstance(result, StoreDown):
                failed += [sent for sent, _ in part]
            elif result is not None and len(part) > 1:
                # The earlier half is next: the health of a subscription is that of its last attempt.
                parts += (part[len(part) // 2 :], part[: len(part) // 2])
            else:
                for sent, record in part:
                    self._conclude(sent, record, result)
        return failed

    async def _record(self, part: Sequence[tuple[AttemptResult, RecordedAttempt]]) -> Exception | None:
        """Record some attempts in one commit; return why none of them was."""
        settled = delivery_queue.settle([record for _, record in part])
        progress = delivery_queue.note_health(queue_progress(sent for sent, _ in part))
        try:
            await self._store.write(*settled, progress)
        except Exception as error:  # noqa: BLE001 - isolated, counted and logged, whatever it is
            return error
        return None

    def _conclude(self, sent: AttemptResult, settled: RecordedAttempt, result: Exception | None) -> None:
        is_due_again = result is None and settled.state is DeliveryState.PENDING
        self._on_settled(sent, settled.due_at_ms if is_due_again else None)
        if isinstance(result, Lost):
            self._meters.lease_lost()
            _log.warning("webhook_lease_lost", delivery=sent.one.id)
        elif result is not None:
            self._isolation.failed(_key(sent), result)
        elif settled.state is DeliveryState.EXHAUSTED:
            self._meters.exhausted()
            _log.warning(
                "webhook_exhausted",
                delivery=sent.one.id,
                subscription=sent.one.subscription,
                failure=sent.outcome.failure,
            )

    def _judge(self, sent: AttemptResult) -> RecordedAttempt:
        """Tell what an attempt makes of its delivery, and when it is due again."""
        outcome = sent.outcome
        state, due_at_ms = DeliveryState.DELIVERED, outcome.ended_at_ms
        if outcome.failure is not None:
            again_at_ms = self._policy.due_at_ms(sent.one.attempts + 1, outcome.ended_at_ms)
            state = DeliveryState.EXHAUSTED if again_at_ms is None else DeliveryState.PENDING
            due_at_ms = outcome.ended_at_ms if again_at_ms is None else again_at_ms
        return RecordedAttempt(sent.one, sent.lease, outcome, state, due_at_ms)


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
