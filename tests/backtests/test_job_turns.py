"""Jobs of several tenants: they take turns, and end when they have worked too long."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from vettance.backtests import sql
from vettance.backtests.backtest_job import BacktestJob, JobState
from vettance.backtests.job_turn import GO_ON
from vettance.backtests.run_backtests import BacktestRunner
from vettance.db.sqlite import SqliteStore, store_path
from vettance.ids import IdSource

ONE, TWO, THREE = ("ten_" + digit * 32 for digit in "123")
SELF_PAUSING = """
from vettance.backtests.job_turn import JobTurn
seconds = iter((0, 9, 10, 20, 30))
turn = JobTurn(lambda: next(seconds))
turn.pause()
print("worked", flush=True)
turn.pause()
print("went on", flush=True)
"""


class Steps(msgspec.Struct):
    """The order of `made_up_job`."""

    steps: int


class Jobs:
    """A store with jobs, and what does them."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self._ids = IdSource()
        self._made = 0

    async def order(self, tenant: str, steps: int) -> str:
        self._made += 1
        job_id = self._ids.make("bkt")
        await self.store.write(sql.insert_backtest(tenant, job_id, Steps(steps), self._made))
        return job_id

    async def run(self, *ids: tuple[str, str], work_s_max: float = 60.0) -> list[BacktestJob]:
        """Do jobs until these have ended."""
        runner = BacktestRunner(
            self.store, self.folder, {"bkt": "tests.backtests.made_up_job"}, work_s_max=work_s_max
        )
        running = asyncio.create_task(runner.run())
        try:
            while True:
                rows = [await self.store.read(sql.select_backtest(*one)) for one in ids]
                jobs = [sql.job_of(found[0]) for found in rows]
                if all(job.ended_at_ms is not None for job in jobs):
                    return jobs
                await asyncio.sleep(0.02)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def steps(self) -> list[str]:
        """Whose steps were done, in their order."""
        return (self.folder / "steps").read_text().split()


@pytest.fixture
async def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Jobs]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as store:
        await store.migrate()
        yield Jobs(store, tmp_path)


async def test_a_long_job_lets_those_of_other_tenants_have_their_turns(jobs: Jobs) -> None:
    long, short, last = await jobs.order(ONE, 5), await jobs.order(TWO, 2), await jobs.order(THREE, 1)
    ended = await jobs.run((ONE, long), (TWO, short), (THREE, last))
    assert [job.state for job in ended] == [JobState.COMPLETED] * 3
    assert jobs.steps() == [ONE, TWO, THREE, ONE, TWO, ONE, ONE, ONE]


async def test_a_job_that_works_too_long_fails_and_says_so_and_the_next_is_done(jobs: Jobs) -> None:
    endless, short = await jobs.order(ONE, -1), await jobs.order(TWO, 1)
    failed, done = await jobs.run((ONE, endless), (TWO, short), work_s_max=3)
    assert (failed.state, done.state) == (JobState.FAILED, JobState.COMPLETED)
    assert failed.error == (
        "The job worked for 0.05 minutes without an end, which is the most it may. "
        "Order it for a shorter span or a smaller sample."
    )


async def test_a_job_that_is_cancelled_while_it_waits_leaves_the_turns_to_others(jobs: Jobs) -> None:
    first, second, third = [await jobs.order(tenant, 30) for tenant in (ONE, TWO, THREE)]
    running = asyncio.create_task(jobs.run((ONE, first), (TWO, second), (THREE, third)))
    while not (jobs.folder / "steps").exists() or THREE not in jobs.steps():  # noqa: ASYNC110 - bounded
        await asyncio.sleep(0.01)
    await jobs.store.write(sql.end(TWO, second, JobState.CANCELLED, None, 1))
    ended = await running
    assert [job.state for job in ended] == [JobState.COMPLETED, JobState.CANCELLED, JobState.COMPLETED]
    assert jobs.steps().count(TWO) < 30


@pytest.mark.parametrize(("told", "status"), [(GO_ON, 0), (b"", 1)], ids=["go on", "its parent is gone"])
def test_a_process_waits_between_two_turns(told: bytes, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SELF_PAUSING], input=told, stdout=subprocess.PIPE, check=False
    )
    said = ["worked", '{"turnIsOver":true}', "went on"]
    assert done.stdout.decode().split("\n")[:-1] == (said if status == 0 else said[:2])
    assert done.returncode == status
