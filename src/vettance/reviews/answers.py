"""What the endpoints of reviews answer."""

import enum
from typing import Annotated

import msgspec

from vettance.feedback.label import Label
from vettance.reviews.review import Review, ReviewOutcome, ReviewState
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import From, To
from vettance.wire.payload import Wire, encode, timestamp


class ReviewSort(enum.StrEnum):
    """What reviews are ordered by."""

    PRIORITY = "priority"
    AGE = "age"


class ReviewAnswer(Wire, frozen=True):
    """A review: what a person decides, or is to decide, about a decision that was held."""

    decision_id: str
    state: ReviewState
    priority: Annotated[
        int, msgspec.Meta(description="Score, points of the amount, and two points for each hour of waiting.")
    ]
    opened_at: str
    due_at: str
    claimed_by: str | None
    claimed_until: str | None
    outcome: ReviewOutcome | None
    label: Label | None
    note: str | None
    settled_by: str | None
    settled_at: str | None


class ReviewPage(PageAnswer[ReviewAnswer], frozen=True):
    """A page of reviews."""


class ReviewQuery(PageQuery, frozen=True):
    """Which reviews, and which page of them. `from` and `to` are about when they were opened.

    `customer` is an external id or an e-mail address.
    """

    state: ReviewState | None = None
    customer: str | None = None
    sort_by: ReviewSort = ReviewSort.PRIORITY
    opened_from: From | None = msgspec.field(name="from", default=None)
    opened_to: To | None = msgspec.field(name="to", default=None)


def review_answer(review: Review, now_ms: int) -> ReviewAnswer:
    """Write a review as the endpoints answer it."""
    is_held = review.state is ReviewState.CLAIMED
    state = ReviewState.OPEN if is_held and review.free_at_ms <= now_ms else review.state
    holds = state is ReviewState.CLAIMED
    return ReviewAnswer(
        decision_id=review.decision,
        state=state,
        priority=review.priority(now_ms if review.settled_at_ms is None else review.settled_at_ms),
        opened_at=timestamp(review.opened_at_ms),
        due_at=timestamp(review.due_at_ms),
        claimed_by=review.claimed_by if holds else None,
        claimed_until=timestamp(review.free_at_ms) if holds else None,
        outcome=review.outcome,
        label=review.label,
        note=review.note,
        settled_by=review.settled_by,
        settled_at=timestamp(review.settled_at_ms) if review.settled_at_ms is not None else None,
    )


def settled_payload(review: Review) -> bytes:
    """Write the `data` of `REVIEW_SETTLED`."""
    assert review.settled_at_ms is not None
    return encode(
        {
            "id": review.decision,
            "decisionId": review.decision,
            "outcome": review.outcome,
            "label": review.label,
            "settledAt": timestamp(review.settled_at_ms),
        }
    )
