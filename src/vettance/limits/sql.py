"""What the store remembers of how much of its quota each tenant has used."""

from collections.abc import Iterable

from vettance.db.engine import Statement, everyone, scoped


def save_quota_use(hour: int, used: Iterable[tuple[str, int]]) -> list[Statement]:
    """Remember how much of an hour's quota each tenant has used, and forget the hours before it."""
    upsert = (
        "INSERT INTO quota_use (tenant, hour, used) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant, hour) DO UPDATE SET used = excluded.used"
    )
    statements = [scoped(tenant, upsert, (hour, count)) for tenant, count in used]
    statements.append(everyone("DELETE FROM quota_use WHERE hour < ?", (hour,)))
    return statements


def select_quota_use(hour: int) -> Statement:
    """(tenant, used) for an hour of the clock (Unix hours)."""
    return everyone("SELECT tenant, used FROM quota_use WHERE hour = ?", (hour,))
