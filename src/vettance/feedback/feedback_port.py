"""What takes feedback, for those who have some, and how much of it an event can have."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vettance.db.engine import Statement
from vettance.errors import Unprocessable
from vettance.feedback.label import Feedback

#: Pieces of feedback on one event: all of them are read with it. Analysts say a few things of an event.
FEEDBACK_MAX: Final = 100
#: Writes feedback with what else goes into its commit, and has rules count it.
#: Raises `FeedbackFull`, or `Lost` when others gave the last piece at the same moment.
TakeFeedback = Callable[[Feedback, Sequence[Statement]], Awaitable[None]]


class FeedbackFull(Unprocessable):
    """There is as much feedback on an event as there can be."""

    def __init__(self) -> None:
        super().__init__(
            "There is as much feedback on this event as there can be.",
            {"id": f"has {FEEDBACK_MAX} pieces of feedback, the most that an event can have"},
        )
