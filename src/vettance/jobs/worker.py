"""The worker: decides accepted events, as many at once as the store commits together, each exactly once."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vettance import clock
from vettance.db.engine import PIECE_BYTES, Lost, Store, StoreDown, in_pieces
from vettance.decisions.evaluate import Evaluator
from vettance.errors import InternalError, Refusal, Unavailable
from vettance.events.event import EventSource, read_taken_event
from vettance.fairness.isolation import Isolation
from vettance.ids import IdSource
from vettance.jobs import sql
from vettance.jobs.job_results import settle
from vettance.telemetry.logs import logger
from vettance.wire.payload import decode, encode, error_body

LOOK_S: Final = 1.0  # Jobs may also come from other processes, which cannot wake us.
#: After a look that found jobs: where there were some, more of a stream are likely to follow at once.
SOON_S: Final = 0.02
#: Jobs read at a time, of all tenants that have some together: what a new tenant's first one waits behind.
ROUND: Final = 256
#: Tenants whose jobs are read at a time; the others follow in the next round.
TENANTS_MAX: Final = 64
#: Events under way at one time: enough to fill a commit, and not so many that other writes wait behind them.
WINDOW: Final = 256
#: Events started before other requests get their turn: about a millisecond of thinking.
TURN: Final = 12
STOP_S_MAX: Final = 3.0
#: While so many events come in each second that they keep the process busy, accepting them goes before
#: deciding them, until one has waited this long. At lower rates both go on, which takes an eighth of a core.
BURST_PER_S: Final = 1_000
PATIENCE_MS: Final = 30_000
_NAP_S: Final = 0.001
_LATE_S: Final = 0.0005
_NAPS: Final = 3  # Even a process that is busy all the time wakes up in time now and then.
_GIVE_WAY_S: Final = 0.02
_SLOT_S: Final = 0.1
#: What the look at all jobs is known by among them.
_LOOK: Final = ""

_log = logger()


class Worker:
    """Decides jobs of each tenant in the order of their receipt; tenants take turns, however many one has.

    Events are started in that order and thinking is synchronous, so each customer's events are seen in order
    although many wait for their commits at one time. A job is settled in the commit of its event: whatever is
    killed in between is decided again, and nothing of the first attempt is there.
    """

    def __init__(
        self, store: Store, evaluator: Evaluator, ids: IdSource, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._ids = ids
        self._now_ms = now_ms
        self._isolation = Isolation("jobs")
        self._waking = asyncio.Event()
        self._slot = 0
        self._in_slot = 0
        self._in_last_slot = 0
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._served = ""
        self._watch: Callable[[sql.AcceptedJob], Awaitable[None]] | None = None
        #: The jobs being decided at the moment.
        self.under_way: set[str] = set()

    def watch_by(self, watch: Callable[[sql.AcceptedJob], Awaitable[None]]) -> None:
        """Have events of AML decided and settled by `watch`; it raises as `Evaluator.evaluate` does."""
        self._watch = watch

    def wake(self) -> None:
        """Tell the worker that there is a new job."""
        slot = int(time.monotonic() / _SLOT_S)
        if slot != self._slot:
            self._in_last_slot = self._in_slot if slot == self._slot + 1 else 0
            self._slot, self._in_slot = slot, 0
        self._in_slot += 1
        self._waking.set()

    def is_bursting(self) -> bool:
        """Whether events come in so fast that deciding them has to wait."""
        recent = int(time.monotonic() / _SLOT_S) - self._slot <= 1
        return recent and max(self._in_slot, self._in_last_slot) > BURST_PER_S * _SLOT_S

    async def run(self) -> None:
        """Decide accepted events until stopped."""
        while not self._stopping:
            self._waking.clear()
            self._idle.clear()
            found = False
            try:
                with self._isolation.of(_LOOK):
                    found = await self.drain()
            except StoreDown:
                await asyncio.sleep(LOOK_S)
            finally:
                self._idle.set()
            try:
                async with asyncio.timeout(SOON_S if found else LOOK_S):
                    await self._waking.wait()
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """Start no more jobs, and wait a little for those under way."""
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("jobs_still_under_way", jobs=len(self.under_way))

    async def drain(self) -> bool:
        """Decide every job that is accepted now, except for tenants who cannot be served at the moment.

        Tells whether jobs were found and none was held back.
        """
        reached: dict[str, int] = {}
        held: set[str] = set()
        pending: set[asyncio.Task[None]] = set()
        try:
            while not self._stopping and (jobs := await self._next(reached, held)):
                pending = await self._start_all(jobs, held, pending)
        finally:
            if pending:
                await asyncio.wait(pending)
        return bool(reached) and not held

    async def _next(self, reached: dict[str, int], held: set[str]) -> list[sql.AcceptedJob]:
        """Return the next jobs of the tenants that have some beyond what is `reached`, by turns."""
        waiting = [tenant for (tenant,) in await self._store.read(sql.select_waiting()) if tenant not in held]
        # So that of very many tenants none is always the last.
        waiting.sort(key=lambda tenant: tenant <= self._served)
        for start in range(0, len(waiting), TENANTS_MAX):
            chosen = waiting[start : start + TENANTS_MAX]
            lanes = [await self._read(tenant, len(chosen), reached) for tenant in chosen]
            self._served = chosen[-1]
            if any(lanes):
                return [job for turn in itertools.zip_longest(*lanes) for job in turn if job is not None]
        return []

    async def _read(self, tenant: str, tenants: int, reached: dict[str, int]) -> list[sql.AcceptedJob]:
        """Read the share of one of some tenants."""
        limit = max(1, ROUND // tenants)
        asked = sql.select_accepted(tenant, reached.get(tenant, 0), limit)
        jobs = [
            sql.AcceptedJob._make(row)
            for row in await self._store.read(in_pieces(asked, PIECE_BYTES // tenants))
        ]
        if jobs:
            reached[tenant] = jobs[-1].seq
        return jobs

    async def _start_all(
        self, jobs: Sequence[sql.AcceptedJob], held: set[str], pending: set[asyncio.Task[None]]
    ) -> set[asyncio.Task[None]]:
        """Start jobs in addition to those `pending`, and return which are pending now."""
        for number, job in enumerate(jobs, 1):
            if self._stopping:
                break
            await self._evaluator.wait_for_gate(job.tenant)
            # Later events of a customer must not overtake one that has to be tried again.
            if job.tenant in held:
                continue
            pending.add(asyncio.create_task(self._decide(job, held)))
            if len(pending) >= WINDOW:
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            if number % TURN == 0:
                await self._give_way(job)
        return pending

    async def _give_way(self, job: sql.AcceptedJob) -> None:
        """Let others have their turn: while a burst keeps the process busy, until that is over."""
        await asyncio.sleep(0)
        while self.is_bursting() and not self._stopping and await _wakes_late():
            if self._now_ms() - job.received_at_ms > PATIENCE_MS:
                return
            await asyncio.sleep(_GIVE_WAY_S)

    async def _decide(self, job: sql.AcceptedJob, held: set[str]) -> None:
        key = f"{job.tenant}:{job.id}"
        if job.tenant in held or not self._isolation.is_due(key):
            return
        # What cannot even be settled as failed is tried again later, and keeps no other job waiting.
        with self._isolation.of(key):
            await self._settle(job, held)

    async def _settle(self, job: sql.AcceptedJob, held: set[str]) -> None:
        self.under_way.add(job.id)
        try:
            if job.kind == sql.JobKind.AML:
                assert self._watch is not None
                await self._watch(job)
            else:
                await self._evaluate(job)
        except (Unavailable, StoreDown):
            held.add(job.tenant)
        except Lost:
            pass  # It is settled already; nothing of this second attempt was kept.
        except Refusal as refusal:
            await self._fail(job, refusal)
        except Exception:  # noqa: BLE001  A poisonous event must not hold up the others.
            _log.exception("job_failed", job=job.id, tenant=job.tenant)
            await self._fail(job, InternalError(job.request_id))
        finally:
            self.under_way.discard(job.id)

    async def _evaluate(self, job: sql.AcceptedJob) -> None:
        started_ns = time.perf_counter_ns()
        event = read_taken_event(decode(job.sent), job.received_at_ms)
        await self._evaluator.evaluate(
            job.tenant,
            event,
            job.sent,
            EventSource.ASYNC,
            job.request_id,
            started_ns,
            lambda evaluated: settle(self._ids, job, evaluated),
            tell=not job.quiet,
        )

    async def _fail(self, job: sql.AcceptedJob, refusal: Refusal) -> None:
        error = encode(error_body(refusal)["error"])
        # While the store is unreachable the job is not settled, and is decided again.
        with contextlib.suppress(StoreDown):
            await self._store.write(sql.fail_job(job.tenant, job.id, error, self._now_ms()))


async def _wakes_late() -> bool:
    """Tell whether there is so much to do that short naps end late."""
    for _ in range(_NAPS):
        before_s = time.monotonic()
        await asyncio.sleep(_NAP_S)
        if time.monotonic() - before_s > _NAP_S + _LATE_S:
            return True
    return False
