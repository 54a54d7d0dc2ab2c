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
    """Store the first piece of feedback on an event."""
    return insert(_INSERT_FEEDBACK, feedback.tenant, _values(feedback))


def add_feedback(feedback: Feedback, feedback_max: int) -> Statement:
    """Store a piece of feedback; `Lost` when there are so many on its event already."""
    counted = (feedback.tenant, feedback.target, feedback_max)
    return scoped(
        FEEDBACK,
        feedback.tenant,
        f"{_INSERT_FEEDBACK.head} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT COUNT(*) FROM "
        "(SELECT id FROM feedback WHERE tenant = ? AND target = ? LIMIT ?) AS said) < ?",
        (*_values(feedback), *counted, feedback_max),
        rows=1,
    )


def _values(feedback: Feedback) -> tuple[str | int | None, ...]:
    return (
        feedback.id,
        feedback.target,
        feedback.type.value,
        feedback.label.value,
        feedback.notes,
        feedback.external_case_id,
        feedback.created_at_ms,
        feedback.updated_at_ms,
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
