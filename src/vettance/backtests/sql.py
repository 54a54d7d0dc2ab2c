"""What the store remembers of backtests."""

from typing import Final

import msgspec

from vettance.backtests.backtest_job import UNDER_WAY, BacktestJob, JobState
from vettance.db.engine import Row, Statement, everyone, insert, scoped
from vettance.db.tables import BACKTEST, Insert

_COLUMNS: Final = "tenant, id, state, ask, progress, created_at_ms, started_at_ms, ended_at_ms, result, error"
_INSERT: Final = Insert(BACKTEST, "tenant, id, state, ask, progress, created_at_ms")
_UNDER_WAY: Final = ", ".join(f"'{state.value}'" for state in UNDER_WAY)


def insert_backtest(tenant: str, backtest_id: str, order: msgspec.Struct, now_ms: int) -> Statement:
    """Store a job that waits; `Clash` while another one of the tenant is under way."""
    values = (backtest_id, JobState.QUEUED.value, msgspec.json.encode(order), 0.0, now_ms)
    return insert(_INSERT, tenant, values)


def job_of(row: Row) -> BacktestJob:
    """Make a job of a row."""
    tenant, backtest_id, state, order, *others = row
    return BacktestJob(tenant, backtest_id, JobState(state), msgspec.Raw(order), *others)


def select_backtest(tenant: str, backtest_id: str) -> Statement:
    """One job."""
    return scoped(
        BACKTEST, tenant, f"SELECT {_COLUMNS} FROM backtest WHERE tenant = ? AND id = ?", (backtest_id,)
    )


def select_waiting() -> Statement:
    """(tenant, id) of the jobs under way, the oldest first; one of a tenant at most."""
    return everyone(
        BACKTEST, f"SELECT tenant, id FROM backtest WHERE state IN ({_UNDER_WAY}) ORDER BY created_at_ms, id"
    )


def begin(tenant: str, backtest_id: str, now_ms: int) -> Statement:
    """Note that a job runs, from its beginning; `Lost` when it was cancelled."""
    return _update(
        tenant,
        backtest_id,
        "state = 'running', progress = 0, started_at_ms = ?",
        (now_ms,),
    )


def note_progress(tenant: str, backtest_id: str, progress: float) -> Statement:
    """Note how far a job is, 0 to 1; `Lost` when it was cancelled."""
    return _update(tenant, backtest_id, "progress = ?", (progress,))


def complete(tenant: str, backtest_id: str, result: bytes, now_ms: int) -> Statement:
    """Keep what a job found; `Lost` when it was cancelled."""
    return _update(
        tenant,
        backtest_id,
        "state = 'completed', progress = 1, result = ?, ended_at_ms = ?",
        (result, now_ms),
    )


def end(tenant: str, backtest_id: str, state: JobState, error: str | None, now_ms: int) -> Statement:
    """End a job that is under way without a result; `Lost` when it has ended."""
    return _update(tenant, backtest_id, "state = ?, error = ?, ended_at_ms = ?", (state.value, error, now_ms))


def forget_older(tenant: str, kept: int) -> Statement:
    """Remove the oldest jobs of a tenant beyond so many, of whatever kind."""
    return scoped(
        BACKTEST,
        tenant,
        f"DELETE FROM backtest WHERE tenant = ? AND state NOT IN ({_UNDER_WAY}) AND created_at_ms <= "
        "(SELECT created_at_ms FROM backtest WHERE tenant = ? "
        "ORDER BY created_at_ms DESC, id DESC LIMIT 1 OFFSET ?)",
        (tenant, kept),
    )


def select_newest(tenant: str, prefix: str, limit: int) -> Statement:
    """The newest jobs of a kind, by what their ids begin with, without what they found."""
    return scoped(
        BACKTEST,
        tenant,
        f"SELECT {_COLUMNS.replace('result', 'NULL')} FROM backtest "
        "WHERE tenant = ? AND id LIKE ? ESCAPE '\\' "
        "ORDER BY created_at_ms DESC, id DESC LIMIT ?",
        (f"{prefix}\\_%", limit),
    )


def _update(tenant: str, backtest_id: str, assigned: str, values: tuple[object, ...]) -> Statement:
    # What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
    return scoped(
        BACKTEST,
        tenant,
        f"UPDATE backtest SET tenant = ?, {assigned} WHERE tenant = ? AND id = ? AND state IN ({_UNDER_WAY})",
        (*values, tenant, backtest_id),
        rows=1,
    )
