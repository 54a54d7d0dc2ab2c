"""What the store remembers of changes of models that needed approval."""

from typing import Final

import msgspec

from vettance.db.engine import Statement, insert, scoped
from vettance.db.tables import MODEL_CHANGE, Insert
from vettance.learning.model_change import COLUMNS, ChangeState, ProposedChange

_INSERT: Final = Insert(MODEL_CHANGE, f"tenant, {COLUMNS}")


def insert_change(tenant: str, one: ProposedChange) -> Statement:
    """Store a change."""
    change_id, change, *others = msgspec.structs.astuple(one)
    return insert(_INSERT, tenant, (change_id, msgspec.json.encode(change).decode(), *others))


def decide_change(tenant: str, change_id: str, state: ChangeState, by: str, now_ms: int) -> Statement:
    """Approve or reject a change; `Lost` when somebody has decided already."""
    # What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
    return scoped(
        MODEL_CHANGE,
        tenant,
        "UPDATE model_change SET tenant = ?, state = ?, decided_by = ?, decided_at_ms = ? "
        "WHERE tenant = ? AND id = ? AND state = ?",
        (state, by, now_ms, tenant, change_id, ChangeState.PROPOSED),
        rows=1,
    )


def reject_open_of(tenant: str, author: str, now_ms: int) -> Statement:
    """Reject what somebody has proposed and nobody has decided: they propose something newer."""
    return scoped(
        MODEL_CHANGE,
        tenant,
        "UPDATE model_change SET tenant = ?, state = ?, decided_by = author, decided_at_ms = ? "
        "WHERE tenant = ? AND author = ? AND state = ?",
        (ChangeState.REJECTED, now_ms, tenant, author, ChangeState.PROPOSED),
    )


def select_change(tenant: str, change_id: str) -> Statement:
    """A row for `change_of` of one change."""
    return scoped(
        MODEL_CHANGE,
        tenant,
        f"SELECT {COLUMNS} FROM model_change WHERE tenant = ? AND id = ?",
        (change_id,),
    )


def select_changes(tenant: str, limit: int) -> Statement:
    """A row for `change_of` of the newest changes."""
    return scoped(
        MODEL_CHANGE,
        tenant,
        f"SELECT {COLUMNS} FROM model_change WHERE tenant = ? ORDER BY id DESC LIMIT ?",
        (limit,),
    )


def select_open(tenant: str) -> Statement:
    """A row for `change_of` of every change that nobody has decided on, oldest first."""
    return scoped(
        MODEL_CHANGE,
        tenant,
        f"SELECT {COLUMNS} FROM model_change WHERE tenant = ? AND state = ? ORDER BY id",
        (ChangeState.PROPOSED,),
    )
