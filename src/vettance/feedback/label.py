"""The label: what turned out to be true about an event, and how a tenant says so."""

import enum
from typing import Annotated, ClassVar, Final

import msgspec

from vettance.wire.body import NOT_TEXT, how, read_body
from vettance.wire.payload import JSON, STRING_CHARS_MAX, Faults, Wire

NOTES_CHARS_MAX: Final = 4_000


class Label(enum.StrEnum):
    """The six labels of the specification."""

    FRAUD = "FRAUD"
    LEGIT = "LEGIT"
    CHARGEBACK = "CHARGEBACK"
    REFUND = "REFUND"
    FALSE_POSITIVE = "FALSE_POSITIVE"
    TRUE_POSITIVE = "TRUE_POSITIVE"


#: Whether a label says that the event was fraud; a refund says neither.
MEANS_FRAUD: Final = {
    Label.FRAUD: True,
    Label.CHARGEBACK: True,
    Label.TRUE_POSITIVE: True,
    Label.LEGIT: False,
    Label.FALSE_POSITIVE: False,
}


class FeedbackTarget(enum.StrEnum):
    """What feedback was given on. Decision and event share an id, so feedback on either is on both."""

    DECISION = "DECISION"
    EVENT = "EVENT"


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of feedback of a tenant; `target` is the id of the event. Moments are Unix milliseconds."""

    id: str
    tenant: str
    target: str
    type: FeedbackTarget
    label: Label
    notes: str | None
    external_case_id: str | None
    created_at_ms: int
    updated_at_ms: int


class FeedbackBody(Wire, frozen=True):
    """What a tenant knows about an event by now."""

    EXAMPLE: ClassVar[JSON] = {"label": "FRAUD", "notes": "The card was stolen.", "externalCaseId": "case-5"}

    label: Annotated[Label, how(wrong_type=NOT_TEXT, value_is_422=True)]
    notes: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=NOTES_CHARS_MAX,
                description="What was found out; without secrets or personal data that is not needed.",
            ),
            how(keeps_empty=True, value_is_422=True),
        ]
        | None
    ) = None
    external_case_id: (
        Annotated[str, msgspec.Meta(max_length=STRING_CHARS_MAX, description="The case in your own system.")]
        | None
    ) = None


def read_feedback(body: JSON) -> FeedbackBody:
    """Read a parsed feedback body. Raises `Invalid` (400) or `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = read_body(body, FeedbackBody, faults)
    faults.raise_any()
    return said
