"""What the store remembers of how much of its quota each tenant has used."""

from collections.abc import Iterable
from typing import Final

from vettance.db.engine import Statement, everyone, insert
from vettance.db.tables import QUOTA_USE, Insert

_UPSERT: Final = Insert(QUOTA_USE, "tenant, hour, used", key="tenant, hour", replaces="used")


def save_quota_use(hour: int, used: Iterable[tuple[str, int]]) -> list[Statement]:
    """Remember how much of an hour's quota each tenant has used, and forget the hours before it."""
    statements = [insert(_UPSERT, tenant, (hour, count)) for tenant, count in used]
    statements.append(everyone(QUOTA_USE, "DELETE FROM quota_use WHERE hour < ?", (hour,)))
    return statements


def select_quota_use(hour: int) -> Statement:
    """(tenant, used) for an hour of the clock (Unix hours)."""
    return everyone(QUOTA_USE, "SELECT tenant, used FROM quota_use WHERE hour = ?", (hour,))
