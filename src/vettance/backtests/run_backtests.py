"""Runs the jobs of all tenants, one after the other, each in a process of its own at low priority."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from vettance import clock
from vettance.backtests import sql
from vettance.backtests.backtest_job import BacktestJob, JobState
from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.wire.payload import decode, encode

LOOK_S: Final = 0.5
#: How often a process says how far it is; more often than this nothing is written.
_PROGRESS_S: Final = 1.0
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_FAILED: Final = "The process of the job ended without a result. The log of the service says why."
#: What does a backtest.
BACKTEST_PROCESS: Final = "vettance.backtests.backtest_process"

_log = logger()


class BacktestRunner:
    """Does the jobs that wait. One that was interrupted by the end of the service is begun again.

    `processes` names the module that does a job, by what its id begins with.
    """

    def __init__(
        self,
        store: Store,
        data: Path,
        processes: Mapping[str, str],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._processes = processes
        self._store = store
        self._data = data
        self._now_ms = now_ms
        self._isolation = Isolation("backtests")

    async def run(self) -> None:
        """Do jobs until cancelled."""
        while True:
            with contextlib.suppress(StoreDown):
                for tenant, backtest_id in await self._store.read(sql.select_waiting()):
                    if self._isolation.is_due(tenant):
                        with self._isolation.of(tenant), contextlib.suppress(Lost):
                            await self._do(tenant, backtest_id)
            await asyncio.sleep(LOOK_S)

    async def _do(self, tenant: str, backtest_id: str) -> None:
        """Do one job. Raises `Lost` when it was cancelled."""
        rows = await self._store.read(sql.select_backtest(tenant, backtest_id))
        if not rows:
            return
        job = sql.job_of(rows[0])
        module = self._processes.get(backtest_id.partition("_")[0])
        if module is None:
            return  # A later version ordered it; one that knows it does it.
        await self._store.write(sql.begin(tenant, backtest_id, self._now_ms()))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module, str(self._data)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
        )
        try:
            await self._follow(job, process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _follow(self, job: BacktestJob, process: asyncio.subprocess.Process) -> None:
        """Pass the order to a process and note what it says, until it has said its result."""
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(encode({"tenant": job.tenant, "order": job.order}))
            process.stdin.close()
        progress = 0.0
        saying = asyncio.ensure_future(process.stdout.readline())
        try:
            while True:
                done, _ = await asyncio.wait({saying}, timeout=_PROGRESS_S)
                if not done:
                    # Written though nothing is new: this is how a cancelled job is noticed.
                    await self._store.write(sql.note_progress(job.tenant, job.id, progress))
                    continue
                said = _read(saying.result())
                if said is None or "result" in said or "error" in said:
                    break
                progress = said["progress"]
                await self._store.write(sql.note_progress(job.tenant, job.id, progress))
                saying = asyncio.ensure_future(process.stdout.readline())
        finally:
            saying.cancel()
        now_ms = self._now_ms()
        if said is not None and "result" in said:
            await self._store.write(sql.complete(job.tenant, job.id, encode(said["result"]), now_ms))
        else:
            error = _FAILED if said is None else str(said["error"])
            _log.warning("backtest_failed", tenant=job.tenant, backtest=job.id)
            await self._store.write(sql.end(job.tenant, job.id, JobState.FAILED, error, now_ms))


def _read(line: bytes) -> dict[str, Any] | None:
    """Read what a process said; None when it said nothing more."""
    if not line.endswith(b"\n"):
        return None
    said = decode(line)
    return said if isinstance(said, dict) else None
