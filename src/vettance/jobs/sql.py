"""What the store remembers of jobs."""

import enum
from typing import Final, NamedTuple

from vettance.db.engine import Row, Statement, everyone, in_pieces, insert, scoped
from vettance.db.tables import JOB, Insert


class JobKind(enum.StrEnum):
    """What an accepted event is, as the store names it."""

    FRAUD = "fraud"
    AML = "aml"


class AcceptedJob(NamedTuple):
    """A job that waits for its decision. `received_at_ms` is Unix milliseconds.

    `kind` is one of `JobKind`; jobs of an import have that of their import instead.
    """

    seq: int
    id: str
    tenant: str
    received_at_ms: int
    request_id: str
    quiet: bool
    label: str | None
    kind: str
    sent: bytes


class Job(NamedTuple):
    """What the API shows of a job; `error` is JSON."""

    id: str
    state: str
    event: str | None
    error: bytes | None


_JOB: Final = "tenant, id, received_at_ms, request_id, quiet, label, sent, state"
_INSERT_JOB: Final = Insert(JOB, _JOB)
_INSERT_STREAMED: Final = Insert(JOB, f"{_JOB}, kind, error, settled_at_ms")
_INSERT_IMPORTED: Final = Insert(JOB, f"{_JOB}, import_id, occurred_at_ms")


def insert_job(
    tenant: str,
    job_id: str,
    received_at_ms: int,
    request_id: str,
    sent: bytes,
    label: str | None = None,
    *,
    quiet: bool = False,
) -> Statement:
    """Accept an event: `sent` is its body, known to be good; `quiet` tells no subscriber of its decision."""
    values = (job_id, received_at_ms, request_id, int(quiet), label, sent, "accepted")
    return insert(_INSERT_JOB, tenant, values)


def insert_streamed(
    tenant: str, job_id: str, received_at_ms: int, message_id: str, kind: JobKind, sent: bytes
) -> Statement:
    """Accept an event of a stream; the id of its message is kept as that of a request."""
    return insert(
        _INSERT_STREAMED,
        tenant,
        (job_id, received_at_ms, message_id, 0, None, sent, "accepted", kind.value, None, None),
    )


def insert_refused(
    tenant: str,
    job_id: str,
    received_at_ms: int,
    message_id: str,
    kind: JobKind,
    sent: bytes,
    error: bytes,
) -> Statement:
    """Keep a message of a stream that is no event, with the reason, as a job that has failed."""
    return insert(
        _INSERT_STREAMED,
        tenant,
        (
            *(job_id, received_at_ms, message_id, 0, None, sent, "failed", kind.value),
            *(error, received_at_ms),
        ),
    )


def insert_imported(
    tenant: str,
    job_id: str,
    import_id: str,
    received_at_ms: int,
    occurred_at_ms: int,
    sent: bytes,
    label: str | None,
) -> Statement:
    """Accept an event of the past; it waits until the whole import is accepted."""
    values = (job_id, received_at_ms, import_id, 1, label, sent, "queued", import_id, occurred_at_ms)
    return insert(_INSERT_IMPORTED, tenant, values)


def select_queued(tenant: str, import_id: str, limit: int) -> Statement:
    """The next events of an import in the order of their own time, those of one moment as in the file."""
    return in_pieces(
        scoped(
            JOB,
            tenant,
            "SELECT seq, id, tenant, received_at_ms, request_id, quiet, label, kind, sent FROM job "
            "WHERE tenant = ? AND import_id = ? AND state = 'queued' ORDER BY occurred_at_ms, seq LIMIT ?",
            (import_id, limit),
        )
    )


def select_waiting() -> Statement:
    """(tenant,) of every tenant with jobs that wait, in order; a step of the index for each."""
    return everyone(
        JOB,
        "WITH RECURSIVE waiting (tenant) AS (SELECT MIN(tenant) FROM job WHERE state = 'accepted' UNION ALL "
        "SELECT (SELECT MIN(job.tenant) FROM job WHERE state = 'accepted' AND job.tenant > waiting.tenant) "
        "FROM waiting WHERE waiting.tenant IS NOT NULL) SELECT tenant FROM waiting WHERE tenant IS NOT NULL",
    )


def select_accepted(tenant: str, after: int, limit: int) -> Statement:
    """The jobs of a tenant that wait, in the order of their receipt."""
    return in_pieces(
        scoped(
            JOB,
            tenant,
            "SELECT seq, id, tenant, received_at_ms, request_id, quiet, label, kind, sent FROM job "
            "WHERE tenant = ? AND state = 'accepted' AND seq > ? ORDER BY seq LIMIT ?",
            (after, limit),
        )
    )


def count_accepted(tenant: str, limit: int) -> Statement:
    """How many jobs of a tenant wait; counting stops at `limit`."""
    return scoped(
        JOB,
        tenant,
        "SELECT COUNT(*) FROM (SELECT 1 FROM job WHERE tenant = ? AND state = 'accepted' LIMIT ?) AS waiting",
        (limit,),
    )


def complete_job(tenant: str, job_id: str, event_id: str, now_ms: int) -> Statement:
    """Settle a job in the commit of its event; `Lost` when it is settled already."""
    return Statement(
        "UPDATE job SET state = 'completed', event = ?, settled_at_ms = ?, sent = NULL "
        "WHERE tenant = ? AND id = ? AND state IN ('accepted', 'queued')",
        (event_id, now_ms, tenant, job_id),
        rows=1,
        tenant=tenant,
        tables=JOB,
    )


def fail_job(tenant: str, job_id: str, error: bytes, now_ms: int) -> Statement:
    """Settle a job that cannot be decided; what was sent stays, to look into."""
    return Statement(
        "UPDATE job SET state = 'failed', error = ?, settled_at_ms = ? "
        "WHERE tenant = ? AND id = ? AND state IN ('accepted', 'queued')",
        (error, now_ms, tenant, job_id),
        tenant=tenant,
        tables=JOB,
    )


def select_job(tenant: str, job_id: str) -> Statement:
    """One job by its id."""
    return scoped(
        JOB, tenant, "SELECT id, state, event, error FROM job WHERE tenant = ? AND id = ?", (job_id,)
    )


def job_of(row: Row) -> Job:
    """Make a job of a row of `select_job`."""
    return Job(*row)
