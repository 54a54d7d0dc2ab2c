"""What takes feedback, for those who have some, and how much of it an event can have."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vettance.db.engine import Statement
from vettance.feedback.label import Feedback

#: Pieces of feedback on one event: all of them are read with it. Analysts say a few things of an event.
FEEDBACK_MAX: Final = 100
#: Writes feedback with what else goes into its commit, and has rules count it.
TakeFeedback = Callable[[Feedback, Sequence[Statement]], Awaitable[None]]
