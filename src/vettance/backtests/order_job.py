"""Orders a job of a tenant, finds it again and cancels it; a tenant has one under way at a time."""

from collections.abc import Sequence
from typing import Final

import msgspec

from vettance.backtests import sql
from vettance.backtests.backtest_job import BacktestJob, JobState
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import is_id

#: Jobs that are kept for each tenant.
KEPT: Final = 50


async def order_job(
    store: Store,
    tenant: str,
    job_id: str,
    order: msgspec.Struct,
    now_ms: int,
    also: Sequence[Statement] = (),
) -> None:
    """Store a job that waits, and what goes with it. Raises `Conflict` while one is under way."""
    try:
        await store.write(
            sql.forget_older(tenant, KEPT - 1), sql.insert_backtest(tenant, job_id, order, now_ms), *also
        )
    except Clash:
        raise Conflict(
            "Another backtest or suggestion of your organisation runs. Wait until it ends, or cancel it.",
            "backtest_under_way",
        ) from None


async def find_job(store: Store, tenant: str, job_id: str, prefix: str) -> BacktestJob:
    """Return a job of a kind. Raises `NotFound`."""
    rows = await store.read(sql.select_backtest(tenant, job_id)) if is_id(job_id, prefix) else []
    if not rows:
        raise NotFound
    return sql.job_of(rows[0])


async def cancel_job(store: Store, tenant: str, job_id: str, prefix: str, now_ms: int) -> BacktestJob:
    """Cancel a job that is under way, and return it. Raises `NotFound`, or `Conflict` when it has ended."""
    job = await find_job(store, tenant, job_id, prefix)
    try:
        await store.write(sql.end(job.tenant, job.id, JobState.CANCELLED, None, now_ms))
    except Lost:
        job = await find_job(store, tenant, job_id, prefix)
        if job.state is not JobState.CANCELLED:
            raise Conflict("The job has ended.", "backtest_ended") from None
    return await find_job(store, tenant, job_id, prefix)
