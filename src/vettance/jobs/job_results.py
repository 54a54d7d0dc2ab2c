"""What goes into the commit of a job's event, so that each is decided exactly once."""

from collections.abc import Iterable

from vettance.db.engine import Statement
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.sql import count_label
from vettance.feedback import sql as feedback_sql
from vettance.feedback.label import Feedback, FeedbackTarget, Label
from vettance.ids import IdSource
from vettance.jobs import sql


def settle(ids: IdSource, job: sql.AcceptedJob, evaluated: EvaluatedEvent) -> Iterable[Statement]:
    """Mark a job as done, and keep the label that it brought as feedback; `Lost` when it is done already."""
    now_ms = evaluated.evaluated_at_ms
    yield sql.complete_job(job.tenant, job.id, evaluated.id, now_ms)
    if job.label is not None:
        feedback = Feedback(
            id=ids.make("fbk", now_ms),
            tenant=job.tenant,
            target=evaluated.id,
            type=FeedbackTarget.EVENT,
            label=Label(job.label),
            notes=None,
            external_case_id=None,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        yield feedback_sql.insert_feedback(feedback)
        event, outcome = evaluated.event, evaluated.decision.outcome
        yield count_label(job.tenant, event.occurred_at_ms, outcome, feedback.label.value)
