"""The worker of imports: decides what they brought, each import in the order of its own time."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from vettance import clock
from vettance.db.engine import Lost, Store, StoreDown
from vettance.decisions import sql as decisions_sql
from vettance.decisions.backfill import Backfill
from vettance.decisions.evaluate import Also, Evaluator, Taken
from vettance.errors import InternalError, Refusal, Unavailable
from vettance.events.event import read_taken_event
from vettance.exchange import sql
from vettance.ids import IdSource
from vettance.isolate import Isolation
from vettance.jobs import sql as jobs_sql
from vettance.jobs.settle import settle
from vettance.logs import logger
from vettance.state.port import Velocity
from vettance.wire import decode, encode, error_body

#: Imports come from the command line, which cannot wake us.
LOOK_S: Final = 1.0
#: Events decided in one commit: some milliseconds during which no other event is thought about.
BATCH: Final = 64
STOP_S_MAX: Final = 3.0

_log = logger()


class Importer:
    """Decides one import after the other, beside the live traffic.

    A batch is one commit, and nothing is remembered that the log does not tell: whatever is killed in between
    goes on with the same answers. `engine` makes an empty memory.
    """

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        ids: IdSource,
        engine: Callable[[], Velocity],
        now_ms: Callable[[], int] = clock.now_ms,
        batch: int = BATCH,
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._ids = ids
        self._engine = engine
        self._now_ms = now_ms
        self._batch = batch
        self._isolation = Isolation("import")
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Decide whatever was imported, for ever."""
        while not self._stopping:
            self._idle.clear()
            with contextlib.suppress(StoreDown):
                await self.drain()
            self._idle.set()
            await asyncio.sleep(LOOK_S)

    async def stop(self) -> None:
        """Begin no further batch, and wait a little for the one under way."""
        self._stopping = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), STOP_S_MAX)

    async def drain(self) -> None:
        """Decide every import that waits now. Of a tenant that cannot be served the later ones wait, too."""
        behind: set[str] = set()
        for row in await self._store.read(sql.select_waiting()):
            waiting = sql.Waiting._make(row)
            if waiting.tenant in behind or self._stopping:
                continue
            behind.add(waiting.tenant)
            if not self._isolation.is_due(waiting.tenant):
                continue
            with self._isolation.of(waiting.tenant):
                if await self._decide(waiting):
                    behind.discard(waiting.tenant)

    async def _decide(self, waiting: sql.Waiting) -> bool:
        """Decide what an import brought; answers whether all of it is decided."""
        tenant, past, size = waiting.tenant, None, self._batch
        run = await self._begin(waiting)
        while rows := await self._store.read(jobs_sql.select_queued(tenant, run.id, size)):
            active = self._evaluator.rules.get(tenant)
            # An erasure, too, has the memory of a tenant made anew.
            if self._stopping or active is None or tenant in self._evaluator.astray:
                return False
            if past is None or past.active is not active:
                past = Backfill(self._store, tenant, active, self._engine(), run)
                await past.resume()
            jobs = [jobs_sql.Accepted._make(row) for row in rows]
            try:
                if history := await self._read(jobs):
                    await self._evaluator.take_history(tenant, history, past)
            except (Unavailable, Lost):
                return False  # Nothing of the batch was kept; it is tried again.
            except StoreDown:
                raise
            except Exception:  # noqa: BLE001
                # A poisonous event must not hold up the others: alone, it is the one that fails.
                past, size = None, 1
                if len(jobs) > 1:
                    continue
                _log.exception("imported_event_failed", job=jobs[0].id, tenant=tenant)
                await self._fail(jobs[0], InternalError(run.id))
            await asyncio.sleep(0)
        await self._store.write(sql.end_import(tenant, run.id))
        _log.info("import_decided", tenant=tenant, import_id=run.id)
        return True

    async def _begin(self, waiting: sql.Waiting) -> decisions_sql.Run:
        """Say what an import sees of the log, unless that was said before an interruption."""
        base = waiting.base
        if base is None:
            newest = await self._store.read(decisions_sql.select_last_event())
            base = newest[0][0] if newest else 0
            await self._store.write(sql.set_base(waiting.tenant, waiting.id, base))
        return decisions_sql.Run(waiting.id, base, waiting.first_ms or 0, waiting.last_ms or 0)

    async def _read(self, jobs: Sequence[jobs_sql.Accepted]) -> list[Taken]:
        history = []
        for job in jobs:
            try:
                event = read_taken_event(decode(job.sent), job.received_at_ms)
            except Refusal as refusal:  # The bounds were narrowed since it was accepted.
                await self._fail(job, refusal)
                continue
            history.append(Taken(event, job.sent, job.request_id, self._settling(job)))
        return history

    def _settling(self, job: jobs_sql.Accepted) -> Also:
        return lambda evaluated: settle(self._ids, job, evaluated)

    async def _fail(self, job: jobs_sql.Accepted, refusal: Refusal) -> None:
        error = encode(error_body(refusal)["error"])
        await self._store.write(jobs_sql.fail_job(job.tenant, job.id, error, self._now_ms()))
