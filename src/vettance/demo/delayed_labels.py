"""Labels of the demo, given some time after their events as the stream counts time."""

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

from vettance.clock import DAY_MS

DELAY_MS: Final = DAY_MS
#: The part of frauds that somebody reports, and of held honest events of which somebody says so.
_REPORTED: Final = 0.9
_TOLD: Final = 0.6


class JudgedDecision(NamedTuple):
    """A decision that somebody will look at sooner or later, and what it was."""

    event_id: str
    fraud: bool


def label_request(one: JudgedDecision) -> tuple[str, Any]:
    """Return the path and the body that tell what an event was."""
    return f"/api/v1/feedback/decision/{one.event_id}", {"label": "FRAUD" if one.fraud else "FALSE_POSITIVE"}


class DelayedLabels:
    """Holds decisions until their labels are due."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"delayed labels:{seed}")  # noqa: S311 - repeatable, not secret.
        self._waiting: deque[tuple[int, JudgedDecision]] = deque()
        #: How many labels of fraud were given.
        self.frauds = 0

    def note(self, at_ms: int, one: JudgedDecision) -> None:
        """Have a decision labelled, or never, some time after its event."""
        if self._random.random() < (_REPORTED if one.fraud else _TOLD):
            self._waiting.append((at_ms, one))

    def due(self, at_ms: int) -> Iterator[tuple[str, Any]]:
        """Take the requests that label what is due when the stream has reached a moment."""
        while self._waiting and self._waiting[0][0] + DELAY_MS <= at_ms:
            _, one = self._waiting.popleft()
            self.frauds += one.fraud
            yield label_request(one)
