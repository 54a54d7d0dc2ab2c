"""Statements for the tests: a change of configuration, a quota counter, a decided event."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from vettance.db.engine import Statement


async def until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait until something of another process or thread holds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - nothing tells us; we are to find out as a caller would
            await asyncio.sleep(0.01)


def size(path: Path) -> int:
    """The bytes of a file."""
    return path.stat().st_size


def use(tenant: str, hour: int, used: int = 1) -> Statement:
    return Statement("INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?)", (tenant, hour, used))


def add_use(tenant: str, hour: int, rows: int | None = None) -> Statement:
    return Statement(
        "UPDATE quota_use SET used = used + 1 WHERE tenant = ? AND hour = ?", (tenant, hour), rows
    )


def all_uses() -> Statement:
    return Statement("SELECT tenant, hour, used FROM quota_use ORDER BY tenant, hour")


def decided(event_id: str, size: int = 100) -> tuple[Statement, Statement, Statement]:
    """What is stored for one decided event: the event, its decision, and a delivery that tells of it."""
    blob = b"x" * size
    return (
        Statement(
            "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (event_id, "ten_a", "evaluate", 1, 1, blob),
        ),
        Statement(
            "INSERT INTO decision (id, tenant, evaluated_at_ms, occurred_at_ms, event_name, event_category,"
            " decision, score, level, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (event_id, "ten_a", 1, 1, "user.login", "AUTHENTICATION", "ALLOW", 3, "low", blob),
        ),
        Statement(
            "INSERT INTO delivery (id, tenant, subscription, type, subject, created_at_ms, state, due_at_ms,"
            " body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ("dlv" + event_id[3:], "ten_a", "whs_a", "EVENT_RISK_EVALUATED", event_id, 1, "pending", 1, b""),
        ),
    )
