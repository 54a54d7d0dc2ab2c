"""What the store remembers of snoozes; those that are over stay, so that a backtest knows them."""

from typing import Final

from vettance.db.engine import Row, Statement, everyone, scoped
from vettance.db.tables import SNOOZE
from vettance.snoozes.snooze import Snooze, SnoozeType

AREA: Final = "snooze"

_COLUMNS: Final = "tenant, id, kind, rule, type, value, reason, author, created_at_ms, until_ms, ended_at_ms"
#: What two snoozes that say the same have in common, besides their tenant.
_SAME: Final = ("kind", "until_ms", "rule", "type", "value", "reason")
_CURRENT: Final = "ended_at_ms IS NULL AND until_ms > ?"


def insert_snooze(one: Snooze) -> Statement:
    """Store a snooze; `Lost` when one in force says the same."""
    names = _COLUMNS.split(", ")
    same = " AND ".join(f"{name} = ?" for name in ("tenant", *_SAME))
    return scoped(
        SNOOZE,
        one.tenant,
        f"INSERT INTO snooze ({_COLUMNS}) SELECT {', '.join('?' * len(names))} "
        f"WHERE NOT EXISTS (SELECT 1 FROM snooze WHERE {same} AND {_CURRENT})",
        [*(getattr(one, name) for name in (*names[1:], "tenant", *_SAME)), one.created_at_ms],
        rows=1,
    )


def snooze_of(row: Row) -> Snooze:
    """Make a snooze of a row."""
    values = dict(zip((name.strip() for name in _COLUMNS.split(",")), row, strict=True))
    return Snooze(**{**values, "type": SnoozeType(values["type"])})


def end_snooze(tenant: str, kind: str, snooze_id: str, now_ms: int) -> Statement:
    """End a snooze; `Lost` when it is over or not there."""
    # What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
    return scoped(
        SNOOZE,
        tenant,
        "UPDATE snooze SET tenant = ?, ended_at_ms = ? "
        f"WHERE tenant = ? AND id = ? AND kind = ? AND {_CURRENT}",
        (now_ms, tenant, snooze_id, kind, now_ms),
        rows=1,
    )


def select_current(now_ms: int) -> Statement:
    """The snoozes of all tenants that have an effect, for the mirror."""
    return everyone(SNOOZE, f"SELECT {_COLUMNS} FROM snooze WHERE {_CURRENT} ORDER BY tenant, id", (now_ms,))


def select_of(tenant: str, kind: str) -> Statement:
    """Every snooze of a tenant that ever was."""
    return scoped(
        SNOOZE, tenant, f"SELECT {_COLUMNS} FROM snooze WHERE tenant = ? AND kind = ? ORDER BY id", (kind,)
    )


def select_current_of(tenant: str, kind: str, now_ms: int) -> Statement:
    """The snoozes of a tenant that have an effect, newest first."""
    return scoped(
        SNOOZE,
        tenant,
        f"SELECT {_COLUMNS} FROM snooze WHERE tenant = ? AND kind = ? AND {_CURRENT} ORDER BY id DESC",
        (kind, now_ms),
    )
