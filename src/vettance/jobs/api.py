"""The doors of jobs: accept an event for later, and tell what became of it."""

import time
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec

from vettance import clock
from vettance.db.engine import Store
from vettance.decisions.features import known_names
from vettance.errors import NotFound, Unavailable
from vettance.events.event import EventBody, check_event
from vettance.ids import IdSource, is_id
from vettance.jobs import sql
from vettance.jobs.backlog import RETRY_AFTER_S, Backlog
from vettance.jobs.worker import Worker
from vettance.web.routing import Call, Route, RouteReply
from vettance.wire.payload import Wire, decode, kept, timestamp

_TAG: Final = "Events"
_ROOT: Final = "/api/v1/events"
_MESSAGE: Final = "The event is stored and will be decided in a moment."


class JobAccepted(Wire, frozen=True):
    """The answer of `POST /events/async`."""

    status: Annotated[str, msgspec.Meta(description="Always `accepted`.")]
    job_id: str
    event_name: str
    received_at: str
    message: str


class JobAnswer(Wire, frozen=True):
    """What became of a job: `accepted`, `processing`, `completed` or `failed`.

    `eventId` is there once it is completed, `error` (as in an error body) once it has failed.
    """

    job_id: str
    status: str
    event_id: str | None
    error: dict[str, Any] | None


class JobDoors:
    """Takes bursts of events at the price of one row each."""

    def __init__(
        self, store: Store, ids: IdSource, worker: Worker, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._ids = ids
        self._worker = worker
        self._backlog = Backlog()
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return (
            Route(
                "POST",
                f"{_ROOT}/async",
                self.accept,
                "Accept an event, to be decided in a moment",
                _TAG,
                takes=EventBody,
                is_bounded=True,
                knows=known_names(),
                answers=JobAccepted,
                status=202,
                refusals=(422,),
                idempotent=True,
            ),
            Route(
                "GET",
                f"{_ROOT}/jobs/{{jobId}}",
                self.show,
                "What became of an accepted event",
                _TAG,
                answers=JobAnswer,
                refusals=(404,),
            ),
        )

    async def accept(self, call: Call) -> RouteReply:
        """POST /events/async."""
        now_ms = self._now_ms()
        body = call.json()
        name = check_event(body, call.body, now_ms)
        await self._insist_on_room(call.tenant.id)
        job_id = self._ids.make("job", now_ms)
        reply = RouteReply(
            JobAccepted(
                status="accepted",
                job_id=job_id,
                event_name=name,
                received_at=timestamp(now_ms),
                message=_MESSAGE,
            ),
            202,
        )
        await self._store.write(
            sql.insert_job(call.tenant.id, job_id, now_ms, call.request_id, kept(call.body, body)),
            *call.keep(reply),
        )
        self._worker.wake()
        return reply

    async def _insist_on_room(self, tenant: str) -> None:
        """Refuse what would wait behind too many others of its tenant. Raises `Unavailable` (503)."""
        now_s = time.monotonic()
        if self._backlog.is_stale(tenant, now_s):
            rows = await self._store.read(sql.count_accepted(tenant, self._backlog.most))
            self._backlog.counted(tenant, now_s, rows[0][0])
        if not self._backlog.take(tenant):
            raise Unavailable(
                f"{self._backlog.most:,} of your events wait to be decided. Try again when they are fewer.",
                RETRY_AFTER_S,
            )

    async def show(self, call: Call) -> RouteReply:
        """GET /events/jobs/{jobId}."""
        job_id = call.path["jobId"]
        rows = []
        if is_id(job_id, "job"):
            rows = await self._store.read(sql.select_job(call.tenant.id, job_id))
        if not rows:
            raise NotFound
        job = sql.job_of(rows[0])
        processing = job.state == "accepted" and job.id in self._worker.under_way
        return RouteReply(
            JobAnswer(
                job_id=job.id,
                status="processing" if processing else job.state,
                event_id=job.event,
                error=decode(job.error) if job.error is not None else None,
            )
        )
