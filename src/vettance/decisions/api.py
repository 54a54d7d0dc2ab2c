"""The doors of decisions and events: evaluate, ingest, and look one up."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vettance import clock
from vettance.decisions.answers import (
    DecisionAnswer,
    DecisionRecord,
    EventAnswer,
    LinkedEntities,
    LinkedEntity,
    ListMatch,
    Outputs,
    RuleResult,
    RuleVersion,
    Unknown,
    as_sent,
    decision_answer,
    event_answer,
    event_record,
)
from vettance.decisions.decision import LOWERCASE
from vettance.decisions.evaluate import Evaluated, Evaluator
from vettance.decisions.features import known_names
from vettance.events.event import EventBody, Source, read_event
from vettance.feedback.answers import answer as feedback_answer
from vettance.history.entity_links import Link
from vettance.history.explain import Explained, Explainer
from vettance.velocity.port import EVERYTHING
from vettance.web.routing import Call, Reply, Route
from vettance.wire.payload import JSON, decode, kept, timestamp

_DECISIONS: Final = "Decisions"
_EVENTS: Final = "Events"

#: The old address of `POST /events` still works and names its successor (RFC 9745, RFC 8288).
_SUPERSEDED: Final = (
    ("deprecation", "@1767225600"),
    ("link", '</api/v1/events>; rel="successor-version"'),
)


class DecisionDoors:
    """Turns requests into evaluations, and stored decisions into answers."""

    def __init__(
        self, evaluator: Evaluator, explainer: Explainer, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._evaluator = evaluator
        self._explainer = explainer
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        api = "/api/v1"
        ingest: dict[str, Any] = {
            "takes": EventBody,
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
                knows=known_names(),
                answers=DecisionAnswer,
                refusals=(422,),
                idempotent=True,
            ),
            Route(
                "GET",
                f"{api}/decisions/{{id}}",
                self.decision,
                "A decision, explained",
                _DECISIONS,
                answers=DecisionRecord,
                refusals=(404,),
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
            Route(
                "GET",
                f"{api}/events/{{id}}",
                self.event,
                "An event as it was sent, with what was decided",
                _EVENTS,
                answers=dict,
                refusals=(404,),
            ),
        )

    async def evaluate(self, call: Call) -> Reply:
        """POST /decisions/evaluate."""
        return await self._run(
            call, Source.EVALUATE, lambda evaluated: Reply(decision_answer(evaluated, call.request_id))
        )

    async def ingest(self, call: Call) -> Reply:
        """POST /events."""
        return await self._run(call, Source.EVENTS, lambda evaluated: Reply(event_answer(evaluated), 201))

    async def ingest_superseded(self, call: Call) -> Reply:
        """POST /events/ingest."""
        return await self._run(
            call, Source.EVENTS, lambda evaluated: Reply(event_answer(evaluated), 201, _SUPERSEDED)
        )

    async def _run(self, call: Call, source: Source, answered: Callable[[Evaluated], Reply]) -> Reply:
        started_ns = time.perf_counter_ns()
        body = call.json()
        event = read_event(body, call.body, self._now_ms())
        also = None if call.keeper is None else lambda evaluated: call.keep(answered(evaluated))
        return answered(
            await self._evaluator.evaluate(
                call.tenant.id, event, kept(call.body, body), source, call.request_id, started_ns, also
            )
        )

    async def decision(self, call: Call) -> Reply:
        """GET /decisions/{id}."""
        return Reply(_record_answer(await self._explainer.explain(call.tenant.id, call.path["id"])))

    async def event(self, call: Call) -> Reply:
        """GET /events/{id}."""
        stored, decision, _ = await self._explainer.find(call.tenant.id, call.path["id"])
        feedback = await self._explainer.feedback(call.tenant.id, [stored.id])
        return Reply(event_record(stored, decision, feedback))


def _record_answer(explained: Explained) -> DecisionRecord:
    stored, decision, record = explained.stored, explained.decision, explained.stored.record
    sent = as_sent(explained.sent)
    fired, failed = set(record.fired), dict(record.failed)
    return DecisionRecord(
        id=stored.id,
        inputs={**sent, "event": sent, **_queued(stored.signals), "features": explained.features},
        outputs=Outputs(
            decision=LOWERCASE[decision.outcome],
            risk_score=decision.score,
            risk_level=decision.level,
            reason_codes=decision.reasons,
            recommended_actions=decision.actions,
            rule_version=RuleVersion(version=str(decision.ruleset_version)),
            rules=[
                RuleResult(
                    rule_id=rule.id,
                    rule_name=rule.name,
                    matched=index in fired,
                    score=rule.score,
                    mode=rule.mode,
                    error=failed.get(index),
                )
                for index, rule in enumerate(explained.active.ruleset.running)
            ],
            lists=[
                ListMatch(id=entry_id, list_type=list_type, type=entry_type)
                for entry_id, list_type, entry_type in record.lists
            ],
            unknown=[Unknown(name=name, error=error) for name, error in record.unknown] or msgspec.UNSET,
            inexact=explained.inexact or msgspec.UNSET,
            degraded=record.inexact == EVERYTHING or msgspec.UNSET,
        ),
        linked_entities=LinkedEntities(**{kind: _linked(link) for kind, link in explained.links.items()}),
        feedback=[feedback_answer(feedback) for feedback in explained.feedback],
        evaluated_at=timestamp(stored.evaluated_at_ms),
    )


def _queued(signals: bytes | None) -> JSON:
    return {} if signals is None else {"sessionSignals": decode(signals)}


def _linked(link: Link) -> LinkedEntity:
    return LinkedEntity(
        id=link.id,
        events=link.events,
        customers=link.others.get("customer"),
        devices=link.others.get("device"),
        first_seen_at=timestamp(link.first_at_ms),
        last_seen_at=timestamp(link.last_at_ms),
    )
