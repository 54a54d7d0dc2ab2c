"""The doors of feedback."""

from collections.abc import Awaitable, Callable
from typing import Final

from vettance import clock
from vettance.db.engine import Lost, Store
from vettance.errors import NotFound
from vettance.events.sql import exists_event
from vettance.feedback.answers import FeedbackAnswer, answer, feedback_payload
from vettance.feedback.feedback_port import FeedbackFull, TakeFeedback
from vettance.feedback.label import Feedback, FeedbackBody, FeedbackTarget, read_feedback
from vettance.ids import IdSource, is_id
from vettance.outbox import MessageType, enqueue
from vettance.web.routing import Call, Route, RouteReply

_TAG: Final = "Feedback"


class FeedbackDoors:
    """Takes what tenants know about their events by now."""

    def __init__(
        self, store: Store, ids: IdSource, take: TakeFeedback, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._ids = ids
        self._take = take
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return (
            self._route("decision", FeedbackTarget.DECISION, "Say what became of a decision"),
            self._route("event", FeedbackTarget.EVENT, "Say what became of an event"),
        )

    def _route(self, word: str, target: FeedbackTarget, summary: str) -> Route:
        return Route(
            "POST",
            f"/api/v1/feedback/{word}/{{id}}",
            self._submit(target),
            summary,
            _TAG,
            takes=FeedbackBody,
            answers=FeedbackAnswer,
            status=201,
            refusals=(404, 422),
            idempotent=True,
        )

    def _submit(self, target: FeedbackTarget) -> Callable[[Call], Awaitable[RouteReply]]:
        async def submit(call: Call) -> RouteReply:
            said = read_feedback(call.json())
            tenant, event_id = call.tenant.id, call.path["id"]
            if not is_id(event_id, "evt") or not await self._store.read(exists_event(tenant, event_id)):
                raise NotFound
            # Nothing is awaited between the two: ids sort as what they name was created.
            now_ms = self._now_ms()
            feedback = Feedback(
                id=self._ids.make("fbk", now_ms),
                tenant=tenant,
                target=event_id,
                type=target,
                label=said.label,
                notes=said.notes,
                external_case_id=said.external_case_id,
                created_at_ms=now_ms,
                updated_at_ms=now_ms,
            )
            reply = RouteReply(answer(feedback), 201)
            told = enqueue(
                tenant,
                MessageType.EVENT_FEEDBACK_SUBMITTED,
                feedback.id,
                feedback.id,
                now_ms,
                feedback_payload(feedback),
            )
            try:
                await self._take(feedback, [*told, *call.keep(reply)])
            except Lost:
                raise FeedbackFull from None
            return reply

        return submit
