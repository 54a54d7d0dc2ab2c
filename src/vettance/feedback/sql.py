"""What the store remembers of feedback."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import Row, Statement, in_list, insert, scoped
from vettance.db.tables import FEEDBACK, Insert
from vettance.feedback.label import Feedback, FeedbackTarget, Label

_COLUMNS: Final = "id, tenant, target, type, label, notes, external_case_id, created_at_ms, updated_at_ms"


_INSERT_FEEDBACK: Final = Insert(
    FEEDBACK, "tenant, id, target, type, label, notes, external_case_id, created_at_ms, updated_at_ms"
)


def insert_feedback(feedback: Feedback) -> Statement:
    """Store a piece of feedback."""
    return insert(
        _INSERT_FEEDBACK,
        feedback.tenant,
        (
            feedback.id,
            feedback.target,
            feedback.type.value,
            feedback.label.value,
            feedback.notes,
            feedback.external_case_id,
            feedback.created_at_ms,
            feedback.updated_at_ms,
        ),
    )


def select_feedback(tenant: str, targets: Sequence[str]) -> Statement:
    """All feedback on some events, oldest first."""
    places, args = in_list(targets)
    return scoped(
        FEEDBACK,
        tenant,
        f"SELECT {_COLUMNS} FROM feedback WHERE tenant = ? AND target IN ({places}) ORDER BY target, id",
        args,
    )


def count_feedback(tenant: str, target: str, limit: int) -> Statement:
    """How many pieces of feedback there are on an event; counting stops at a limit."""
    return scoped(
        FEEDBACK,
        tenant,
        "SELECT COUNT(*) FROM (SELECT id FROM feedback WHERE tenant = ? AND target = ? LIMIT ?) AS said",
        (target, limit),
    )


def feedback_of(row: Row) -> Feedback:
    """Make feedback of a row of `select_feedback`."""
    return Feedback(
        id=row[0],
        tenant=row[1],
        target=row[2],
        type=FeedbackTarget(row[3]),
        label=Label(row[4]),
        notes=row[5],
        external_case_id=row[6],
        created_at_ms=row[7],
        updated_at_ms=row[8],
    )
