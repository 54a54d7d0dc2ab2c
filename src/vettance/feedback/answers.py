"""What the feedback endpoints answer, and what subscribers receive of feedback."""

from vettance.feedback.label import Feedback
from vettance.wire.payload import Wire, encode, timestamp


class FeedbackAnswer(Wire, frozen=True, omit_defaults=True):
    """A piece of feedback. `notes` and `externalCaseId` are there when they were given."""

    id: str
    type: str
    target_id: str
    label: str
    created_at: str
    updated_at: str
    notes: str | None = None
    external_case_id: str | None = None


def answer(feedback: Feedback) -> FeedbackAnswer:
    """Write feedback as the endpoints answer it."""
    return FeedbackAnswer(
        id=feedback.id,
        type=feedback.type.value,
        target_id=feedback.target,
        label=feedback.label.value,
        created_at=timestamp(feedback.created_at_ms),
        updated_at=timestamp(feedback.updated_at_ms),
        notes=feedback.notes,
        external_case_id=feedback.external_case_id,
    )


def feedback_payload(feedback: Feedback) -> bytes:
    """Write the `data` of `EVENT_FEEDBACK_SUBMITTED` as JSON; `id` is there to deduplicate on."""
    said = {
        "label": feedback.label.value,
        "notes": feedback.notes,
        "externalCaseId": feedback.external_case_id,
    }
    return encode(
        {
            "id": feedback.id,
            "decisionId": feedback.target,
            "feedback": said,
            "updatedAt": timestamp(feedback.updated_at_ms),
        }
    )
