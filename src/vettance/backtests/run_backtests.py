"""Runs the jobs of all tenants, in turns, each in a process of its own at low priority."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from vettance import clock
from vettance.backtests import sql
from vettance.backtests.backtest_job import BacktestJob, JobState
from vettance.backtests.job_turn import GO_ON, TURN_OVER, WORK_S_MAX
from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.processes.background import in_background
from vettance.processes.standard_input import tell
from vettance.telemetry.logs import logger
from vettance.wire.payload import decode, encode

LOOK_S: Final = 0.5
#: How often a process says how far it is; more often than this nothing is written.
_PROGRESS_S: Final = 1.0
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
#: Jobs that have begun and take turns. They keep their memory meanwhile; further ones wait without any.
_BEGUN_MAX: Final = 8
_TOO_LONG: Final = (
    "The job worked for {:g} minutes without an end, which is the most it may. Order it for a shorter span "
    "or a smaller sample."
)
_FAILED: Final = "The process of the job ended without a result. The log of the service says why."
#: What does a backtest.
BACKTEST_PROCESS: Final = "vettance.backtests.backtest_process"

_log = logger()


class BacktestRunner:
    """Does the jobs that wait. One that was interrupted by the end of the service is begun again.

    One works at a time; after `TURN_S` it lets the next one work, and waits until all others have had their
    turn. A tenant has one job under way, so these are turns by tenant. A job that has worked for `work_s_max`
    fails and says so. `processes` names the module that does a job, by what its id begins with.
    """

    def __init__(
        self,
        store: Store,
        data: Path,
        processes: Mapping[str, str],
        now_ms: Callable[[], int] = clock.now_ms,
        work_s_max: float = WORK_S_MAX,
    ) -> None:
        self._processes = processes
        self._store = store
        self._data = data
        self._now_ms = now_ms
        self._work_s_max = work_s_max
        self._isolation = Isolation("backtests")
        #: Who holds it works. It is given in the order in which it was asked for.
        self._turn = asyncio.Lock()
        self._begun: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Do jobs until cancelled."""
        try:
            while True:
                with contextlib.suppress(StoreDown):
                    for tenant, backtest_id in await self._store.read(sql.select_waiting()):
                        if tenant not in self._begun and len(self._begun) < _BEGUN_MAX:
                            self._begin(tenant, backtest_id)
                await asyncio.sleep(LOOK_S)
        finally:
            begun = list(self._begun.values())
            for task in begun:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)

    def _begin(self, tenant: str, backtest_id: str) -> None:
        if self._isolation.is_due(tenant):
            task = asyncio.create_task(self._isolated(tenant, backtest_id))
            self._begun[tenant] = task
            task.add_done_callback(lambda _: self._begun.pop(tenant))

    async def _isolated(self, tenant: str, backtest_id: str) -> None:
        with contextlib.suppress(StoreDown), self._isolation.of(tenant), contextlib.suppress(Lost):
            await self._do(tenant, backtest_id)

    async def _do(self, tenant: str, backtest_id: str) -> None:
        """Do one job, from its first turn to its end. Raises `Lost` when it was cancelled."""
        module = self._processes.get(backtest_id.partition("_")[0])
        if module is None:
            return  # A later version ordered it; one that knows it does it.
        process = None
        worked_s, progress = 0.0, 0.0
        try:
            while True:
                async with self._next_turn(tenant, backtest_id, progress):
                    started_s = time.monotonic()
                    if process is None:
                        await self._store.write(sql.begin(tenant, backtest_id, self._now_ms()))
                        job = sql.job_of(
                            (await self._store.read(sql.select_backtest(tenant, backtest_id)))[0]
                        )
                        process = await self._start(module)
                        line = encode({"tenant": tenant, "order": job.order}) + b"\n"
                    else:
                        line = GO_ON
                    progress, said = await self._follow(
                        job, process, line, progress, self._work_s_max - worked_s
                    )
                    worked_s += time.monotonic() - started_s
                if said is None or TURN_OVER not in said:
                    break
        finally:
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        await self._conclude(job, said)

    @contextlib.asynccontextmanager
    async def _next_turn(self, tenant: str, backtest_id: str, progress: float) -> AsyncIterator[None]:
        """Wait for a turn of a job; the block is the turn. Raises `Lost` when it was cancelled."""
        turn = asyncio.ensure_future(self._turn.acquire())
        try:
            while not (await asyncio.wait({turn}, timeout=_PROGRESS_S))[0]:
                await self._store.write(sql.note_progress(tenant, backtest_id, progress))
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._turn.release()
            turn.cancel()

    async def _start(self, module: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *in_background(module, str(self._data)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
        )

    async def _follow(
        self,
        job: BacktestJob,
        process: asyncio.subprocess.Process,
        line: bytes,
        progress: float,
        left_s: float,
    ) -> tuple[float, dict[str, Any] | None]:
        """Have a process work for a turn, of at most `left_s`, and note the progress that it says.

        Returns the progress, and what was said last: a result, an error, or that the turn is over.
        """
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ConnectionError):
            tell(process, line)
            await process.stdin.drain()
        until_s = time.monotonic() + left_s
        saying = asyncio.ensure_future(process.stdout.readline())
        try:
            while True:
                left_s = until_s - time.monotonic()
                done, _ = await asyncio.wait({saying}, timeout=max(0.0, min(_PROGRESS_S, left_s)))
                if not done:
                    if left_s <= 0:
                        return progress, {"error": _TOO_LONG.format(self._work_s_max / 60)}
                    # Written though nothing is new: this is how a cancelled job is noticed.
                    await self._store.write(sql.note_progress(job.tenant, job.id, progress))
                    continue
                said = _read(saying.result())
                if said is None or "progress" not in said:
                    return progress, said
                progress = said["progress"]
                await self._store.write(sql.note_progress(job.tenant, job.id, progress))
                saying = asyncio.ensure_future(process.stdout.readline())
        finally:
            saying.cancel()

    async def _conclude(self, job: BacktestJob, said: dict[str, Any] | None) -> None:
        """Keep what came of a job. Raises `Lost` when it was cancelled."""
        now_ms = self._now_ms()
        if said is not None and "result" in said:
            await self._store.write(sql.complete(job.tenant, job.id, encode(said["result"]), now_ms))
            return
        error = _FAILED if said is None else str(said["error"])
        _log.warning("backtest_failed", tenant=job.tenant, backtest=job.id)
        await self._store.write(sql.end(job.tenant, job.id, JobState.FAILED, error, now_ms))


def _read(line: bytes) -> dict[str, Any] | None:
    """Read what a process said; None when it said nothing more."""
    if not line.endswith(b"\n"):
        return None
    said = decode(line)
    return said if isinstance(said, dict) else None
