"""Decides imported events of one kind, by what was known at their time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from vettance import clock
from vettance.aml import sql as aml_sql
from vettance.aml.aml_event import payload_digest, read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.aml_memory import SnapshotVelocity as AmlVelocity
from vettance.aml.imports.watch_imported import AmlBackfill
from vettance.aml.monitor import Monitor
from vettance.db.engine import Store
from vettance.decisions.decide_imported import Backfill
from vettance.decisions.evaluate import Also, Evaluator, ImportedEvent
from vettance.errors import Refusal, Unavailable
from vettance.events import sql as events_sql
from vettance.events.event import read_taken_event
from vettance.events.sql import ImportRun
from vettance.feedback.label import Label
from vettance.ids import IdSource
from vettance.jobs import sql
from vettance.jobs.job_results import settle
from vettance.velocity.port import Velocity
from vettance.wire.payload import decode, encode, error_body

Past = TypeVar("Past")

#: Events of an import that are looked through for them.
_SAMPLE: Final = 2_000
#: How long an import waits for the features of its tenant to be recorded.
_FEATURES_MS_MAX: Final = 30_000


class FeatureRecorder(Protocol):
    """What has features of models recorded."""

    def begin_features(self, tenant: str, bodies: Sequence[bytes]) -> Awaitable[bool]:
        """Have those recorded that some events, as they were sent, make possible; tell whether that begins
        now.
        """


class ImportKind(Protocol[Past]):
    """How imported events of one kind are decided, by a memory of the past that is of that kind, too."""

    async def newest(self) -> int:
        """Return the place of the newest event of all in the log."""

    async def open(self, tenant: str, run: ImportRun, past: Past | None) -> Past | None:
        """Return the memory of an import by the rules in force: the existing one, or a new one.

        None while a tenant cannot be served.
        """

    async def take(self, jobs: Sequence[sql.AcceptedJob], past: Past) -> None:
        """Decide and settle some events, which come in the order of their time.

        When it raises, the memory may have seen what the log does not hold.
        """


class FraudKind:
    """Events that are decided. Those that are taken together are one commit."""

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        ids: IdSource,
        engine: Callable[[], Velocity],
        learning: FeatureRecorder,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._ids = ids
        self._engine = engine
        self._learning = learning
        self._now_ms = now_ms
        #: Of each tenant the import looked at last, and until when it waits for features.
        self._waits: dict[str, tuple[str, int]] = {}

    async def newest(self) -> int:
        """Return the place of the newest event of all in the log."""
        rows = await self._store.read(events_sql.select_last_event())
        return rows[0][0] if rows else 0

    async def open(self, tenant: str, run: ImportRun, past: Backfill | None) -> Backfill | None:
        """Return the memory of an import; None while the tenant's own memory is rebuilt."""
        active = self._evaluator.rules.get(tenant)
        # An erasure has it rebuilt, too, and what is remembered here then has former names.
        if active is None or tenant in self._evaluator.astray:
            return None
        if past is None and active.features is None and await self._waits_for_features(tenant, run):
            return None
        if past is None or past.active is not active:
            past = Backfill(self._store, tenant, active, self._engine(), run)
            await past.resume()
        return past

    async def _waits_for_features(self, tenant: str, run: ImportRun) -> bool:
        """Tell whether an import has to wait until its events can be learned from; begins that if need be.

        It is for those with labels: else features begin with the tenant's first label.
        """
        known, until_ms = self._waits.get(tenant, ("", 0))
        if known != run.id:
            self._waits[tenant] = run.id, 0  # Should this fail, the import goes on without.
            rows = await self._store.read(sql.select_queued(tenant, run.id, _SAMPLE))
            sample = [sql.AcceptedJob._make(row) for row in rows]
            is_labelled = any(job.label is not None for job in sample)
            bodies = [job.sent for job in sample]
            begins = is_labelled and await self._learning.begin_features(tenant, bodies)
            until_ms = self._now_ms() + _FEATURES_MS_MAX if begins else 0
            self._waits[tenant] = run.id, until_ms
        return self._now_ms() < until_ms

    async def take(self, jobs: Sequence[sql.AcceptedJob], past: Backfill) -> None:
        """Decide and settle some events, all or none."""
        history = []
        for job in jobs:
            try:
                event = read_taken_event(decode(job.sent), job.received_at_ms)
            except Refusal as refusal:  # The bounds were narrowed since it was accepted.
                await fail(self._store, job, refusal, self._now_ms())
                continue
            label = None if job.label is None else Label(job.label)
            history.append(ImportedEvent(event, job.sent, job.request_id, self._settling(job), label))
        if history:
            await self._evaluator.take_history(jobs[0].tenant, history, past)

    def _settling(self, job: sql.AcceptedJob) -> Also:
        return lambda evaluated: settle(self._ids, job, evaluated)


class AmlKind:
    """Events that are watched for money laundering, one after the other: each may change a case.

    They are known by the id that the tenant gave them, so that it does no harm to take one again.
    """

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        engine: Callable[[], AmlVelocity],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._monitor = monitor
        self._engine = engine
        self._now_ms = now_ms

    async def newest(self) -> int:
        """Return the place of the newest event of all in the log."""
        rows = await self._store.read(aml_sql.select_last_event())
        return rows[0][0] if rows else 0

    async def open(self, tenant: str, run: ImportRun, past: AmlBackfill | None) -> AmlBackfill | None:
        """Return the memory of an import. A tenant is made ready by its first event."""
        if tenant not in self._monitor.rules:
            await self._monitor.prepare(tenant)
        active = self._monitor.rules[tenant]
        if past is None or past.active is not active:
            past = AmlBackfill(self._store, tenant, active, AmlMemory(self._engine()), run)
            await past.resume()
        return past

    async def take(self, jobs: Sequence[sql.AcceptedJob], past: AmlBackfill) -> None:
        """Watch and settle some events, one after the other."""
        for job in jobs:
            try:
                body: dict[str, Any] = decode(job.sent)
                event = read_taken_aml_event(body, job.received_at_ms)
                await past.reach(event.occurred_at_ms)
                stored = await self._monitor.take(job.tenant, event, payload_digest(body), job.sent, past)
            except Unavailable:
                raise
            except Refusal as refusal:  # The bounds were narrowed, or its id is used for another event.
                await fail(self._store, job, refusal, self._now_ms())
                continue
            await self._store.write(sql.complete_job(job.tenant, job.id, stored.id, self._now_ms()))


async def fail(store: Store, job: sql.AcceptedJob, refusal: Refusal, now_ms: int) -> None:
    """Settle an event that cannot be decided; it stays with its job."""
    error = encode(error_body(refusal)["error"])
    await store.write(sql.fail_job(job.tenant, job.id, error, now_ms))
