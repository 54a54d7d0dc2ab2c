"""The doors of the history: decisions and events, one by one, in lists and in statistics."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from vettance import clock
from vettance.decisions.answers import (
    ChangedValue,
    CounterfactualAnswer,
    LinkedEntities,
    LinkedEntity,
    ListAddition,
    ListMatch,
    Outputs,
    RuleResult,
    RuleVersion,
    UnknownValue,
    as_sent,
    event_record,
    model_output,
)
from vettance.decisions.counterfactual import Counterfactual, change_words, list_words
from vettance.decisions.decision import LOWERCASE, decide_again
from vettance.feedback.answers import answer as feedback_answer
from vettance.history.answers import (
    ORDERS,
    DecisionDetail,
    DecisionPage,
    DecisionQuery,
    DecisionStats,
    EventPage,
    EventQuery,
    EventStats,
    SpanQuery,
    decision_item,
    decision_stats,
    event_stats,
    read_cursor,
    write_cursor,
)
from vettance.history.decision_search import DecisionFinder, FoundPage
from vettance.history.entity_links import EntityLink
from vettance.history.explain import Explainer, Explanation
from vettance.history.search_criteria import DECISION_FILTERS, EVENT_FILTERS, SearchCriteria, criteria_of
from vettance.history.statistics import DecisionCounter
from vettance.reviews.answers import review_answer
from vettance.rules.rollout import Withheld
from vettance.velocity.port import EVERYTHING
from vettance.web.query import read_query
from vettance.web.routing import Call, Page, Route, RouteReply
from vettance.wire.payload import JSON, decode, encode, timestamp

_DECISIONS: Final = "Decisions"
_EVENTS: Final = "Events"
_ROOT: Final = "/api/v1"

#: A page of events that takes more than this is written event by event while it is read: an event may take a
#: megabyte. A hundred usual ones take a tenth of it.
PAGE_BYTES: Final = 1024 * 1024


class HistoryDoors:
    """Finds and counts what was decided."""

    def __init__(self, finder: DecisionFinder, counter: DecisionCounter, explainer: Explainer) -> None:
        self._finder = finder
        self._counter = counter
        self._explainer = explainer

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return (
            Route(
                "GET",
                f"{_ROOT}/decisions",
                self.decisions,
                "Decisions, newest first",
                _DECISIONS,
                query=DecisionQuery,
                answers=DecisionPage,
            ),
            Route(
                "GET",
                f"{_ROOT}/decisions/stats",
                self.decision_stats,
                "Decisions counted by event time",
                _DECISIONS,
                query=SpanQuery,
                answers=DecisionStats,
            ),
            Route(
                "GET",
                f"{_ROOT}/events",
                self.events,
                "Events, newest first",
                _EVENTS,
                query=EventQuery,
                answers=EventPage,
            ),
            Route(
                "GET",
                f"{_ROOT}/events/stats",
                self.event_stats,
                "Events counted by event time",
                _EVENTS,
                query=SpanQuery,
                answers=EventStats,
            ),
            Route(
                "GET",
                f"{_ROOT}/decisions/{{id}}",
                self.decision,
                "A decision, explained",
                _DECISIONS,
                answers=DecisionDetail,
                refusals=(404,),
            ),
            Route(
                "GET",
                f"{_ROOT}/events/{{id}}",
                self.event,
                "An event as it was sent, with what was decided",
                _EVENTS,
                answers=dict,
                refusals=(404,),
            ),
        )

    async def decisions(self, call: Call) -> RouteReply:
        """GET /decisions."""
        query = read_query(call.query_string, DecisionQuery)
        wanted = criteria_of(query, DECISION_FILTERS, "evaluated_at_ms")
        found, cursor = await self._find(call.tenant.id, wanted, query)
        listed = await self._explainer.find_all(call.tenant.id, found.seqs)
        return RouteReply(
            DecisionPage.of(
                query, [decision_item(one, decision) for one, decision in listed], found.total, cursor
            )
        )

    async def events(self, call: Call) -> RouteReply | Page:
        """GET /events."""
        query = read_query(call.query_string, EventQuery)
        wanted = criteria_of(query, EVENT_FILTERS, "received_at_ms")
        found, cursor = await self._find(call.tenant.id, wanted, query)
        records = await self._records(call.tenant.id, found.seqs, PAGE_BYTES)
        if records is not None:
            return RouteReply(EventPage.of(query, records, found.total, cursor))
        page = EventPage.of(query, [], found.total, cursor)
        pieces = partial(self._stream, call.tenant.id, page, found.seqs)
        return Page(b"", "application/json", pieces=pieces)

    async def _records(self, tenant: str, seqs: Sequence[int], bytes_max: int) -> list[JSON] | None:
        """Return the records of some events; None when they are larger than `bytes_max`."""
        listed = await self._explainer.find_all_bodies(tenant, seqs, bytes_max)
        if listed is None:
            return None
        said = await self._explainer.feedback(tenant, [one.stored.id for one, _ in listed])
        return [
            event_record(
                one.stored, decision, [feedback for feedback in said if feedback.target == one.stored.id]
            )
            for one, decision in listed
        ]

    async def _stream(self, tenant: str, page: EventPage, seqs: Sequence[int]) -> AsyncGenerator[bytes, None]:
        """Write a page whose events are large, reading one of them after the other."""
        head, tail = encode(page).split(b"[]", 1)
        before = head + b"["
        for seq in seqs:
            for record in await self._records(tenant, [seq], PAGE_BYTES) or ():
                yield before
                yield encode(record)
                before = b","
        yield (b"" if before == b"," else before) + b"]" + tail

    async def _find(
        self, tenant: str, wanted: SearchCriteria, query: DecisionQuery | EventQuery
    ) -> tuple[FoundPage, str | None]:
        """Return the page that a query asks for, and the cursor of the next one."""
        order, descending = ORDERS[query.sort_by.value], query.descending
        after = None
        if query.cursor is not None:
            after = read_cursor(query.cursor, order, descending=descending)
        found = await self._finder.find(
            tenant, wanted, order, query.offset, query.limit, after, descending=descending
        )
        cursor = write_cursor(order, found.end, descending=descending) if found.end is not None else None
        return found, cursor

    async def decision_stats(self, call: Call) -> RouteReply:
        """GET /decisions/stats."""
        query = read_query(call.query_string, SpanQuery)
        return RouteReply(
            decision_stats(await self._counter.count(call.tenant.id, query.moment_from, query.moment_to))
        )

    async def event_stats(self, call: Call) -> RouteReply:
        """GET /events/stats."""
        query = read_query(call.query_string, SpanQuery)
        span, uniques = await self._counter.both(call.tenant.id, query.moment_from, query.moment_to)
        newest = await self._counter.cover(call.tenant.id)
        return RouteReply(event_stats(span, uniques, newest))

    async def decision(self, call: Call) -> RouteReply:
        """GET /decisions/{id}."""
        return RouteReply(_record_answer(await self._explainer.explain(call.tenant.id, call.path["id"])))

    async def event(self, call: Call) -> RouteReply:
        """GET /events/{id}."""
        stored, decision, _ = await self._explainer.find(call.tenant.id, call.path["id"])
        feedback = await self._explainer.feedback(call.tenant.id, [stored.id])
        return RouteReply(event_record(stored, decision, feedback))


def _record_answer(explained: Explanation) -> DecisionDetail:
    stored, decision, record = explained.stored, explained.decision, explained.stored.record
    sent = as_sent(explained.sent)
    fired, failed, withheld = set(record.fired), dict(record.failed), dict(record.withheld)
    return DecisionDetail(
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
                    matched=index in fired and withheld.get(index) != Withheld.DATES,
                    score=rule.score,
                    mode=_mode_of(rule.mode, withheld.get(index)),
                    withheld=withheld.get(index),
                    error=failed.get(index),
                )
                for index, rule in enumerate(explained.active.ruleset.running)
            ],
            lists=[
                ListMatch(id=entry_id, list_type=list_type, type=entry_type)
                for entry_id, list_type, entry_type in record.lists
            ],
            counterfactuals=[_other_answer(one, explained) for one in explained.counterfactuals],
            model=model_output(record.model, explained.contributions, explained.base),
            unknown=[UnknownValue(name=name, error=error) for name, error in explained.unknown]
            or msgspec.UNSET,
            inexact=explained.inexact or msgspec.UNSET,
            degraded=record.inexact == EVERYTHING or msgspec.UNSET,
            list_additions=_list_additions(explained) or msgspec.UNSET,
            **_held_out(explained),
        ),
        linked_entities=LinkedEntities(**{kind: _linked(link) for kind, link in explained.links.items()}),
        feedback=[feedback_answer(feedback) for feedback in explained.feedback],
        review=review_answer(explained.review, clock.now_ms()) if explained.review is not None else None,
        evaluated_at=timestamp(stored.evaluated_at_ms),
    )


def _mode_of(mode: str, withheld: str | None) -> str:
    """Return how a rule took part: outside of its roll-out as a shadow, outside of its time not at all."""
    if withheld == Withheld.ROLLOUT:
        return "shadow"
    return "off" if withheld == Withheld.DATES else mode


def _list_additions(explained: Explanation) -> list[ListAddition]:
    running = explained.active.ruleset.running
    return [
        ListAddition(running[place].id, list_type, entry_type, result, entry_id or None)
        for place, list_type, entry_type, result, entry_id in explained.stored.record.list_additions
    ]


def _held_out(explained: Explanation) -> dict[str, Any]:
    """Return the members that tell of a hold-out, with the answer that there would have been."""
    record = explained.stored.record
    if not record.held_out:
        return {}
    other = decide_again(explained.active.ruleset, msgspec.structs.replace(record, held_out=False), "")
    return {"held_out": True, "without_hold_out": LOWERCASE[other.outcome]}


def _other_answer(found: Counterfactual, explained: Explanation) -> CounterfactualAnswer:
    decision = LOWERCASE[found.outcome]
    changes = [
        ChangedValue(one.name, explained.features.get(one.name), one.sign, one.bound) for one in found.changes
    ]
    words = [change_words(one.name, one.relation, _shown(one.was), _shown(one.value)) for one in changes]
    if found.without is not None:
        words.insert(0, list_words(found.without))
    return CounterfactualAnswer(
        decision=decision,
        risk_score=found.score,
        changes=changes,
        without_list=found.without,
        text=f"{decision} if {' and '.join(words)}",
    )


def _shown(value: Any) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else encode(value).decode()


def _queued(signals: bytes | None) -> JSON:
    return {} if signals is None else {"sessionSignals": decode(signals)}


def _linked(link: EntityLink) -> LinkedEntity:
    return LinkedEntity(
        id=link.id,
        events=link.events,
        customers=link.others.get("customer"),
        devices=link.others.get("device"),
        first_seen_at=timestamp(link.first_at_ms),
        last_seen_at=timestamp(link.last_at_ms),
    )
