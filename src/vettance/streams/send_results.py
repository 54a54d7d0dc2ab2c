"""Sends what became of messages: decisions to the stream of results, refused ones to that of dead letters."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from vettance import clock
from vettance.db.engine import Store
from vettance.decisions.decision import LOWERCASE, Outcome
from vettance.jobs.sql import JobKind
from vettance.streams import sql
from vettance.streams.broker import MessageSink, OutgoingMessage
from vettance.streams.take_messages import StreamConsumer
from vettance.wire.payload import Wire, decode, encode, timestamp

#: Results sent at a time, before they are marked as sent.
ROUND: Final = 500
#: Headers of a dead letter.
REASON: Final = "Vettance-Reason"
MESSAGE: Final = "Vettance-Message"
DETAILS: Final = "Vettance-Details"
SOURCE_ID: Final = "Vettance-Message-Id"
JOB_ID: Final = "Vettance-Job-Id"
#: Brokers bound headers; whole details are with the job.
_DETAILS_CHARACTERS_MAX: Final = 2_000


class StreamResult(Wire, frozen=True):
    """What is sent of a decided event."""

    message_id: str
    job_id: str
    event_id: str
    decision: str
    risk_score: int
    risk_level: str
    reason_codes: list[str]
    rule_version: str
    occurred_at: str
    evaluated_at: str


class AmlStreamResult(Wire, frozen=True):
    """What is sent of a watched AML event."""

    message_id: str
    job_id: str
    event_id: str
    external_event_id: str
    status: str
    alerts: msgspec.Raw
    received_at: str


class ResultSender:
    """Sends what is settled and due, in the order in which it was taken.

    What was sent is marked afterwards, so that an end in between sends it again: with the same message id,
    which is that of the job, and the same content.
    """

    def __init__(
        self,
        store: Store,
        consumer: StreamConsumer,
        results: MessageSink | None,
        dead: MessageSink | None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._consumer = consumer
        self._results = results
        self._dead = dead
        self._now_ms = now_ms

    async def send_some(self) -> sql.StreamCounts:
        """Send some of what is due, and return how many. Raises `BrokerDown` and `StoreDown`."""
        one = self._consumer
        rows = await self._store.read(sql.select_due(one.tenant, one.name, ROUND))
        due = [sql.DueResult._make(row) for row in rows]
        if not due:
            return sql.StreamCounts()
        failed = [result for result in due if result.state == "failed"]
        done = [result for result in due if result.state != "failed"]
        if self._dead is not None:
            await self._dead.send([_dead_letter(result) for result in failed])
        if self._results is not None:
            await self._results.send(await self._messages(done))
        counts = sql.StreamCounts(
            results_sent=len(done) if self._results is not None else 0,
            dead_letters_sent=len(failed) if self._dead is not None else 0,
        )
        await self._store.write(
            sql.mark_sent(one.tenant, [result.seq for result in due]),
            sql.count(one.tenant, one.name, one.kind, counts, self._now_ms()),
        )
        return counts

    async def _messages(self, done: Sequence[sql.DueResult]) -> list[OutgoingMessage]:
        aml = [result for result in done if result.kind == JobKind.AML]
        fraud = [result for result in done if result.kind != JobKind.AML]
        bodies = {**await self._decided(fraud), **await self._watched(aml)}
        # An event may have been removed meanwhile, by retention or by an erasure of its tenant's.
        return [
            OutgoingMessage(result.job_id, result.message_id, encode(bodies[result.job_id]), {})
            for result in done
            if result.job_id in bodies
        ]

    async def _decided(self, done: Sequence[sql.DueResult]) -> dict[str, Wire]:
        events = [result.event for result in done if result.event is not None]
        if not events:
            return {}
        rows = await self._store.read(sql.select_decisions(self._consumer.tenant, events))
        found = {one.id: one for one in map(sql.decision_of, rows)}
        return {
            result.job_id: _result(result, found[result.event]) for result in done if result.event in found
        }

    async def _watched(self, done: Sequence[sql.DueResult]) -> dict[str, Wire]:
        events = [result.event for result in done if result.event is not None]
        if not events:
            return {}
        rows = await self._store.read(sql.select_watched(self._consumer.tenant, events))
        found = {row[0]: row for row in rows}
        return {
            result.job_id: _aml_result(result, found[result.event])
            for result in done
            if result.event in found
        }


def _result(due: sql.DueResult, found: sql.StreamDecision) -> StreamResult:
    return StreamResult(
        message_id=due.message_id,
        job_id=due.job_id,
        event_id=found.id,
        decision=LOWERCASE[Outcome(found.decision)],
        risk_score=found.score,
        risk_level=found.level,
        reason_codes=found.reasons.split(),
        rule_version=str(json.loads(found.record)[0]),
        occurred_at=timestamp(found.occurred_at_ms),
        evaluated_at=timestamp(found.evaluated_at_ms),
    )


def _aml_result(due: sql.DueResult, row: Sequence[Any]) -> AmlStreamResult:
    event_id, external_id, status, alerts, received_at_ms = row
    return AmlStreamResult(
        message_id=due.message_id,
        job_id=due.job_id,
        event_id=event_id,
        external_event_id=external_id,
        status=status,
        alerts=msgspec.Raw(alerts),
        received_at=timestamp(received_at_ms),
    )


def _dead_letter(due: sql.DueResult) -> OutgoingMessage:
    """Make a message of the body as it came, with the reason in its headers."""
    error = decode(due.error) if due.error is not None else {}
    details = json.dumps(error.get("details") or {})
    if len(details) > _DETAILS_CHARACTERS_MAX:
        details = json.dumps({"body": "see the job"})
    headers = {
        REASON: str(error.get("code", "")),
        MESSAGE: " ".join(str(error.get("message", "")).split()),
        DETAILS: details,
        SOURCE_ID: due.message_id,
        JOB_ID: due.job_id,
    }
    return OutgoingMessage(due.job_id, due.message_id, due.sent or b"", headers)
