"""A review: its states, the order of the queue, and what settling it takes.

The priority of a review is its score, points for the amount at stake, and points for age: two an hour, so
that it has gained 48 by the time it is a day old. Since all grow alike, their order never changes, and is
kept as `rank`.
"""

import enum
import hashlib
import math
from typing import Annotated, ClassVar, Final

import msgspec

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.feedback.label import NOTES_CHARS_MAX, Label
from vettance.wire.body import NOT_TEXT, how, read_body
from vettance.wire.payload import JSON, Faults, Wire

#: A claim holds so long, and again as long each time that its page says somebody is there.
CLAIM_MS: Final = 15 * MINUTE_MS
#: A settlement can be taken back so long; subscribers hear of it only then.
UNDO_MS: Final = 10_000
#: What a point of priority is in `rank`: age gives two points an hour.
_POINT_MS: Final = HOUR_MS // 2
_AMOUNT_POINTS_MAX: Final = 30
_POINTS_A_DOUBLING: Final = 10


class ReviewState(enum.StrEnum):
    """How far a review has come."""

    OPEN = "open"
    CLAIMED = "claimed"
    SETTLED = "settled"
    EXPIRED = "expired"


class ReviewOutcome(enum.StrEnum):
    """What a person decided."""

    APPROVE = "approve"
    DENY = "deny"


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review of one decision. `entries` are ids of list entries made with the settlement; moments in ms.

    `email` is there where the customer is known by an id as well. `bulk` is the request that settled it
    together with others.
    """

    tenant: str
    decision: str
    state: ReviewState
    score: int
    amount_points: int
    rank: int
    opened_at_ms: int
    due_at_ms: int
    expires_at_ms: int
    customer: str | None = None
    email: str | None = None
    claimed_by: str | None = None
    free_at_ms: int = 0
    outcome: ReviewOutcome | None = None
    label: Label | None = None
    note: str | None = None
    settled_by: str | None = None
    settled_at_ms: int | None = None
    entries: tuple[str, ...] = ()
    tell_at_ms: int | None = None
    check_state: str | None = None
    check_outcome: ReviewOutcome | None = None
    checked_by: str | None = None
    bulk: str | None = None

    def is_waiting(self) -> bool:
        """Tell whether somebody still has to decide."""
        return self.state in (ReviewState.OPEN, ReviewState.CLAIMED)

    def awaits_check(self, share: int) -> bool:
        """Tell whether a second person is to look at it blind, or will be asked once it is final."""
        if self.state is not ReviewState.SETTLED:
            return False
        is_final = self.tell_at_ms is None
        return self.check_state == "asked" if is_final else is_drawn_for_check(self.decision, share)

    def is_blind_for(self, user: str, share: int) -> bool:
        """Tell whether somebody who may check reviews must not see yet how this one was settled."""
        return self.settled_by != user and self.awaits_check(share)

    def priority(self, now_ms: int) -> int:
        """Return the priority at a moment."""
        return priority_of(self.rank, now_ms)

    def age_points(self, now_ms: int) -> int:
        """Return how much of the priority comes of waiting."""
        return self.priority(now_ms) - self.score - self.amount_points

    def is_settled_as(self, wanted: "Settlement") -> bool:
        """Tell whether it was settled in just this way."""
        is_settled = self.state is ReviewState.SETTLED
        return is_settled and (self.outcome, self.label, self.note) == (
            wanted.outcome,
            wanted.label,
            wanted.note,
        )


class Settlement(Wire, frozen=True):
    """What settles a review. `approve` without a label says nothing of what the event was."""

    EXAMPLE: ClassVar[JSON] = {"outcome": "deny", "label": "FRAUD", "note": "Called the customer."}

    outcome: Annotated[ReviewOutcome, how(wrong_type=NOT_TEXT)]
    label: Annotated[Label, how(wrong_type=NOT_TEXT, value_is_422=True)] | None = None
    note: (
        Annotated[
            str,
            msgspec.Meta(max_length=NOTES_CHARS_MAX, description="What was found out."),
            how(value_is_422=True),
        ]
        | None
    ) = None


def read_settlement(body: JSON) -> Settlement:
    """Read a parsed body. Raises `Invalid` (400) or `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = read_body(body, Settlement, faults)
    faults.raise_any()
    return said


def is_drawn_for_check(decision: str, share: int) -> bool:
    """Tell whether a review is among the share (in per cent) that is looked at twice, chosen by their ids."""
    return int.from_bytes(hashlib.sha256(decision.encode()).digest()[:4]) % 100 < share


def points_of_amount(amount: float | None, median: float | None) -> int:
    """Return the points of an amount: ten for each doubling of the tenant's median, at most 30."""
    if amount is None or not median or not amount > median > 0:
        return 0
    ratio = amount / median
    if not math.isfinite(ratio):
        return _AMOUNT_POINTS_MAX
    return min(_AMOUNT_POINTS_MAX, round(_POINTS_A_DOUBLING * math.log2(ratio)))


def rank_of(points: int, due_at_ms: int) -> int:
    """Return the place in the queue: the larger, the earlier its turn."""
    return points * _POINT_MS - due_at_ms


def priority_of(rank: int, now_ms: int) -> int:
    """Return the priority at a moment of a review of a rank."""
    return max(0, (rank + now_ms + DAY_MS) // _POINT_MS)
