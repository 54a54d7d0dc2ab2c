"""A bulk request: reviews that one person asks to settle together, and a second one approves or refuses.

States: `asked` → `running` → `done`; or `refused`, `withdrawn` or `expired` before, `stopped` on the way.
"""

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

from vettance.clock import DAY_MS
from vettance.feedback.label import Label
from vettance.reviews.review import UNDO_MS, ReviewOutcome, Settlement

#: So many reviews one person settles at once; more need a second signature.
BULK_MAX: Final = 50
#: So many one request may be about. What a person signs they must be able to look into.
REQUEST_MAX: Final = 10_000
#: Reviews of one commit: some ten milliseconds of the one writer, behind which decisions wait.
PIECE: Final = 100
#: Requests of a tenant that wait or run at one time.
REQUESTS_MAX: Final = 20
#: A request that nobody decides ends after so long: its reviews are others by then.
ASKED_MS_MAX: Final = 7 * DAY_MS
#: Between the second signature and the first piece, in which the request can still be stopped without trace.
START_MS: Final = UNDO_MS


class BulkState(enum.StrEnum):
    """How far a request has come."""

    ASKED = "asked"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    STOPPED = "stopped"
    EXPIRED = "expired"


class ReviewChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which open reviews: those that meet every condition given. `customer` is a key as in a review."""

    reason: str | None = None
    customer: str | None = None
    score_from: int | None = None
    score_to: int | None = None

    def is_met_by(self, codes: str) -> bool:
        """Tell whether reason codes with blanks between have the one that is asked for."""
        return self.reason is None or self.reason in codes.split()


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request; `wanted` reviews of which `looked` were looked at and `settled` settled. Moments in ms.

    `chosen` says in words how they were chosen. What was looked at and not settled was held by somebody
    else, or settled before.
    """

    tenant: str
    id: str
    state: BulkState
    outcome: ReviewOutcome
    note: str
    chosen: str
    wanted: int
    asked_by: str
    asked_at_ms: int
    label: Label | None = None
    decided_by: str | None = None
    decided_at_ms: int | None = None
    start_at_ms: int | None = None
    looked: int = 0
    settled: int = 0
    ended_by: str | None = None
    ended_at_ms: int | None = None

    @property
    def settlement(self) -> Settlement:
        """What settles each of its reviews."""
        return Settlement(outcome=self.outcome, label=self.label, note=self.note)

    @property
    def left_out(self) -> int:
        """How many were looked at and not settled."""
        return self.looked - self.settled


def pieces_of(decisions: Sequence[str]) -> list[Sequence[str]]:
    """Divide the decisions of a request into what is settled in one commit."""
    return [decisions[at : at + PIECE] for at in range(0, len(decisions), PIECE)]
