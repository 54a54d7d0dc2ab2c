"""The doors of decisions and events: evaluate and ingest."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from vettance import clock
from vettance.decisions.answers import (
    DecisionAnswer,
    EventAnswer,
    decision_answer,
    event_answer,
)
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.features import known_names
from vettance.events.event import EventBody, EventSource, read_event
from vettance.fairness.time_slice import DECISIONS
from vettance.web.routing import Call, Route, RouteReply
from vettance.wire.payload import kept

_DECISIONS: Final = "Decisions"
_EVENTS: Final = "Events"

#: The old address of `POST /events` still works and names its successor (RFC 9745, RFC 8288).
_SUPERSEDED: Final = (
    ("deprecation", "@1767225600"),
    ("link", '</api/v1/events>; rel="successor-version"'),
)


class DecisionDoors:
    """Turns requests into evaluations."""

    def __init__(self, evaluator: Evaluator, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._evaluator = evaluator
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        api = "/api/v1"
        ingest: dict[str, Any] = {
            "takes": EventBody,
            "is_bounded": True,
            "knows": known_names(),
            "answers": EventAnswer,
            "status": 201,
            "refusals": (422,),
            "idempotent": True,
        }
        return (
            Route(
                "POST",
                f"{api}/decisions/evaluate",
                self.evaluate,
                "Decide an event now",
                _DECISIONS,
                takes=EventBody,
                is_bounded=True,
                knows=known_names(),
                answers=DecisionAnswer,
                refusals=(422,),
                idempotent=True,
            ),
            Route("POST", f"{api}/events", self.ingest, "Ingest an event and decide it", _EVENTS, **ingest),
            Route(
                "POST",
                f"{api}/events/ingest",
                self.ingest_superseded,
                "The former address of POST /events",
                _EVENTS,
                deprecated=True,
                **ingest,
            ),
        )

    def evaluate(self, call: Call) -> Awaitable[RouteReply]:
        """POST /decisions/evaluate."""
        return self._run(
            call,
            EventSource.EVALUATE,
            lambda evaluated: RouteReply(decision_answer(evaluated, call.request_id)),
        )

    def ingest(self, call: Call) -> Awaitable[RouteReply]:
        """POST /events."""
        return self._run(call, EventSource.EVENTS, lambda evaluated: RouteReply(event_answer(evaluated), 201))

    def ingest_superseded(self, call: Call) -> Awaitable[RouteReply]:
        """POST /events/ingest."""
        return self._run(
            call, EventSource.EVENTS, lambda evaluated: RouteReply(event_answer(evaluated), 201, _SUPERSEDED)
        )

    async def _run(
        self, call: Call, source: EventSource, answered: Callable[[EvaluatedEvent], RouteReply]
    ) -> RouteReply:
        started_ns = time.perf_counter_ns()
        body = call.json()
        event = read_event(body, call.body, self._now_ms())
        also = None if call.keeper is None else lambda evaluated: call.keep(answered(evaluated))
        with DECISIONS:
            return answered(
                await self._evaluator.evaluate(
                    call.tenant.id, event, kept(call.body, body), source, call.request_id, started_ns, also
                )
            )
