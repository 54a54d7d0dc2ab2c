"""Watches the AML events that streams brought, for the worker of jobs."""

from collections.abc import Awaitable, Callable
from typing import Any

from vettance import clock
from vettance.aml.aml_event import payload_digest, read_taken_aml_event
from vettance.aml.monitor import Monitor
from vettance.db.engine import Store
from vettance.jobs.sql import AcceptedJob, complete_job
from vettance.wire.payload import decode


def job_watcher(
    store: Store, monitor: Monitor, now_ms: Callable[[], int] = clock.now_ms
) -> Callable[[AcceptedJob], Awaitable[None]]:
    """Return what watches the event of a job and settles the job.

    These are two commits. An event of AML is known for ever by the id that its tenant gave it, so what is
    watched again after an end in between is answered as before, and then settled.
    """

    async def watch(job: AcceptedJob) -> None:
        body: dict[str, Any] = decode(job.sent)
        event = read_taken_aml_event(body, job.received_at_ms)
        stored = await monitor.take(job.tenant, event, payload_digest(body), job.sent)
        await store.write(complete_job(job.tenant, job.id, stored.id, now_ms()))

    return watch
