"""What the store remembers of streams: which messages were taken, and what is still to be sent of them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.db.engine import OF_TENANT, Row, Statement, in_list, in_pieces, insert, scoped
from vettance.db.tables import (
    AML_EVENT,
    CHANGE,
    DECISION,
    JOB,
    STREAM_CONSUMER,
    STREAM_MESSAGE,
    TENANT,
    Insert,
)
from vettance.jobs.sql import JobKind
from vettance.tenants.sql import DELETED


class StreamCounts(NamedTuple):
    """What a consumer has done: events accepted, messages that came again, messages refused, results and
    dead letters sent."""

    accepted: int = 0
    repeated: int = 0
    refused: int = 0
    results_sent: int = 0
    dead_letters_sent: int = 0

    def plus(self, other: "StreamCounts") -> "StreamCounts":
        """Return both together."""
        return StreamCounts._make(map(sum, zip(self, other, strict=True)))


_COUNTS: Final = ", ".join(StreamCounts._fields)
_COUNT: Final = Insert(
    STREAM_CONSUMER,
    f"tenant, name, kind, {_COUNTS}, updated_at_ms",
    key="tenant, name",
    adds=_COUNTS,
    replaces="kind, updated_at_ms",
)
_TAKE: Final = Insert(STREAM_MESSAGE, "tenant, message, digest, consumer, job, accepted_at_ms, result_due")


def count(tenant: str, name: str, kind: JobKind, counts: StreamCounts, now_ms: int) -> Statement:
    """Add to what a consumer has done, and note that it is alive."""
    return insert(_COUNT, tenant, (name, kind.value, *counts, now_ms))


def select_counts(tenant: str, name: str) -> Statement:
    """What a consumer has done since it was first seen; no row before that."""
    return scoped(
        STREAM_CONSUMER,
        tenant,
        f"SELECT {_COUNTS} FROM stream_consumer WHERE tenant = ? AND name = ?",
        (name,),
    )


def take_message(
    tenant: str, message: bytes, digest: bytes, consumer: str, job_id: str, now_ms: int, *, result_due: bool
) -> Statement:
    """Note that a message is taken; a `Clash` when it was taken before."""
    return insert(_TAKE, tenant, (message, digest, consumer, job_id, now_ms, int(result_due)))


def select_taken(tenant: str, messages: Sequence[bytes]) -> Statement:
    """(message, digest) of those that were taken before."""
    places, args = in_list(messages)
    return scoped(
        STREAM_MESSAGE,
        tenant,
        f"SELECT message, digest FROM stream_message WHERE tenant = ? AND message IN ({places})",
        args,
    )


class DueResult(NamedTuple):
    """A settled message whose result is to be sent. `error` is JSON, `sent` the body where it failed."""

    seq: int
    job_id: str
    kind: str
    state: str
    event: str | None
    error: bytes | None
    message_id: str
    sent: bytes | None


def select_due(tenant: str, consumer: str, limit: int) -> Statement:
    """What is settled and not sent yet, in the order in which it was taken."""
    return in_pieces(
        scoped(
            STREAM_MESSAGE.reading(JOB),
            tenant,
            "SELECT stream_message.seq, job.id, job.kind, job.state, job.event, job.error, job.request_id, "
            "job.sent FROM stream_message JOIN job ON job.id = stream_message.job "
            "AND job.tenant = stream_message.tenant "
            "WHERE stream_message.tenant = ? AND stream_message.consumer = ? AND "
            "stream_message.result_due = 1 AND job.state IN ('completed', 'failed') "
            "ORDER BY stream_message.seq LIMIT ?",
            (consumer, limit),
        )
    )


def count_due(tenant: str, consumer: str, limit: int) -> Statement:
    """(how many messages of a consumer are not decided or not sent yet,); counting stops at `limit`."""
    return scoped(
        STREAM_MESSAGE,
        tenant,
        "SELECT COUNT(*) FROM (SELECT 1 FROM stream_message WHERE tenant = ? AND consumer = ? "
        "AND result_due = 1 LIMIT ?) AS due",
        (consumer, limit),
    )


def mark_sent(tenant: str, seqs: Sequence[int]) -> Statement:
    """Note that results are where they belong."""
    places, args = in_list(seqs)
    return scoped(
        STREAM_MESSAGE,
        tenant,
        f"UPDATE stream_message SET result_due = 0 WHERE {OF_TENANT} AND seq IN ({places})",
        args,
    )


class StreamDecision(NamedTuple):
    """What a result says of a decision; `record` is the array that begins with the version of the rules."""

    id: str
    evaluated_at_ms: int
    occurred_at_ms: int
    decision: str
    score: int
    level: str
    reasons: str
    record: bytes


def select_decisions(tenant: str, event_ids: Sequence[str]) -> Statement:
    """Some decisions by the ids of their events."""
    places, args = in_list(event_ids)
    return scoped(
        DECISION,
        tenant,
        f"SELECT {', '.join(StreamDecision._fields)} FROM decision WHERE {OF_TENANT} AND id IN ({places})",
        args,
    )


def select_watched(tenant: str, event_ids: Sequence[str]) -> Statement:
    """(id, external id, status, alerts as JSON, moment of its receipt) of some AML events."""
    places, args = in_list(event_ids)
    return scoped(
        AML_EVENT,
        tenant,
        "SELECT id, external_id, status, alerts, received_at_ms FROM aml_event "
        f"WHERE {OF_TENANT} AND id IN ({places})",
        args,
    )


def select_presence(tenant: str, after: int) -> Statement:
    """(1,) where a tenant is there, and nobody has begun to delete it after that change."""
    return Statement(
        "SELECT 1 FROM tenant WHERE id = ? AND NOT EXISTS "
        "(SELECT 1 FROM change WHERE change.seq > ? AND change.tenant = ? AND change.area = ?)",
        (tenant, after, tenant, DELETED),
        tenant=tenant,
        tables=TENANT.reading(CHANGE),
    )


def decision_of(row: Row) -> StreamDecision:
    """Make what a result says of a row of `select_decisions`."""
    return StreamDecision._make(row)
