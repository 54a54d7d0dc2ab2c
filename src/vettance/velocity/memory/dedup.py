"""The answers given last, by which an event that comes again is recognised."""

from collections.abc import Iterator
from typing import Final

from vettance.velocity.port import VelocityAnswer

#: Answers kept for each tenant. What comes again was under way when a snapshot was taken or a memory filled,
#: and a process has no more than 1,024 requests under way (`web/edge.py`). Each answer is up to 2 KB.
RECENT: Final = 2_048


class RecentAnswers:
    """Answers by the id of their event. Each new one takes the place of the oldest.

    One goes for one that comes: to let go of a thousand at once would leave as many holes in memory, and
    others would be made before they are filled.
    """

    __slots__ = ("_answers", "_ids", "_next")

    def __init__(self) -> None:
        self._answers: dict[str, VelocityAnswer] = {}
        # A ring: asked for its oldest entry, a dictionary used as a queue would look through those that went.
        self._ids: list[str] = []
        self._next = 0

    def get(self, event_id: str) -> VelocityAnswer | None:
        """Return what was answered to an event, None when that is not known any more."""
        return self._answers.get(event_id)

    def keep(self, event_id: str, answer: VelocityAnswer) -> None:
        """Keep the answer to an event of which none is kept."""
        self._answers[event_id] = answer
        if len(self._ids) < RECENT:
            self._ids.append(event_id)
            return
        at = self._next
        del self._answers[self._ids[at]]
        self._ids[at] = event_id
        self._next = at + 1 if at + 1 < RECENT else 0

    def items(self) -> Iterator[tuple[str, VelocityAnswer]]:
        """Yield what is kept, the oldest first."""
        for event_id in (*self._ids[self._next :], *self._ids[: self._next]):
            yield event_id, self._answers[event_id]
