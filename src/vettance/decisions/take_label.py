"""Takes feedback: keeps it, and has the memory of past events count what it says, in one commit."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from vettance import clock
from vettance.db.engine import Statement, Store
from vettance.decisions.active_rulesets import legible_event
from vettance.decisions.decision import Outcome
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.sql import count_label, select_counted
from vettance.events.sql import select_event
from vettance.feedback import label_sql
from vettance.feedback import sql as feedback_sql
from vettance.feedback.feedback_port import FEEDBACK_MAX, FeedbackFull
from vettance.feedback.label import Feedback, Label
from vettance.feedback.label_change import LabelChange, changes_of
from vettance.redis_link.down import StateDown
from vettance.velocity.port import WorkClaims

#: How soon feedback asks again for the claim that another process has on its event; then twice as long each
#: time.
_POLL_S: Final = 0.01
_POLL_S_MAX: Final = 0.25
#: How long it asks: twice the life of a claim, as requests with one `Idempotency-Key` do.
_PATIENCE_S: Final = 10.0


class LabelTaker:
    """Implements `feedback.feedback_port.TakeFeedback` with the memory that decides."""

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        claims: WorkClaims | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._claims = claims
        self._now_ms = now_ms
        self._locks: dict[str, asyncio.Lock] = {}

    async def take(self, feedback: Feedback, statements: Sequence[Statement]) -> None:
        """Write feedback with what goes into its commit; the next decision counts what it changes.

        Raises `FeedbackFull` (422), `Unavailable` (503) when it was not kept, and as `Store.write` does.
        """
        tenant, event_id = feedback.tenant, feedback.target
        async with self._alone(tenant, event_id):
            known = [
                LabelChange(*row)._replace(fraud=bool(row[2]))
                for row in await self._store.read(label_sql.select_changes(tenant, event_id))
            ]
            said = await self._store.read(feedback_sql.select_feedback(tenant, (event_id,)))
            if len(said) >= FEEDBACK_MAX:
                raise FeedbackFull
            # Another process may have kept what was said after this. The order is that of the ids, as listed.
            labels_by_id = {row[0]: Label(row[4]) for row in said} | {feedback.id: feedback.label}
            labels = [label for _, label in sorted(labels_by_id.items())]
            at_ms = await self._evaluator.reached(tenant, self._now_ms())
            changes = changes_of(event_id, known, labels, at_ms)
            decided = await self._store.read(select_counted(tenant, event_id))
            kept = [
                feedback_sql.add_feedback(feedback, FEEDBACK_MAX),
                *(
                    count_label(tenant, occurred_at_ms, Outcome(outcome), feedback.label.value)
                    for occurred_at_ms, outcome in decided
                ),
                *(label_sql.insert_label(tenant, change, feedback.created_at_ms) for change in changes),
                *statements,
            ]
            if not changes:
                await self._store.write(*kept)
                return
            rows = await self._store.read(select_event(tenant, event_id))
            event = legible_event(rows[0]) if rows else None
            await self._evaluator.take_labels(tenant, event, changes, kept)

    @contextlib.asynccontextmanager
    async def _alone(self, tenant: str, event_id: str) -> AsyncIterator[None]:
        """Have feedback on one event wait for that before it, in this process and in others.

        Where there is no claim to be had, the store refuses one of two that change the same label.
        """
        lock = self._locks.setdefault(event_id, asyncio.Lock())
        try:
            async with lock, self._claimed(tenant, f"feedback {event_id}"):
                yield
        finally:
            if not lock.locked():
                self._locks.pop(event_id, None)

    @contextlib.asynccontextmanager
    async def _claimed(self, tenant: str, name: str) -> AsyncIterator[None]:
        claims = self._claims
        holder = None if claims is None else await _claim(claims, tenant, name)
        try:
            yield
        finally:
            if claims is not None and holder is not None:
                with contextlib.suppress(StateDown):
                    await claims.give_up(tenant, name, holder)


async def _claim(claims: WorkClaims, tenant: str, name: str) -> bytes | None:
    """Wait for a claim; None where there is none to be had."""
    until_s, pause_s = time.monotonic() + _PATIENCE_S, _POLL_S
    with contextlib.suppress(StateDown):
        while time.monotonic() < until_s:
            if (holder := await claims.take(tenant, name)) is not None:
                return holder
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _POLL_S_MAX)
    return None
