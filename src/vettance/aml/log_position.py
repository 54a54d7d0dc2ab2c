"""A place in the log: how far the memory of a tenant has read, and what it knows that it has not read yet."""

import enum
from collections import deque


class LogMatch(enum.Enum):
    """What an event of the log is to a memory that meets it."""

    NEW = "to be taken up"
    KNOWN = "taken up before"
    BROKEN = "in another order than the memory has taken it"


class LogPosition:
    """How far a memory has read the log of one tenant.

    `reached` is the number of the last event it has read there. `ahead` are the events it has taken since, in
    that order, because its own process watched them: they must be what comes next in the log. `changed` is
    the newest change of the tenant's configuration that is in force here.
    """

    __slots__ = ("ahead", "changed", "reached")

    def __init__(self, reached: int, changed: int) -> None:
        self.reached = reached
        self.changed = changed
        self.ahead: deque[str] = deque()

    def meet(self, seq: int, event_id: str) -> LogMatch:
        """Go on to the next event of the log. Events before the place are known, however often they come."""
        if seq <= self.reached:
            return LogMatch.KNOWN
        self.reached = seq
        if not self.ahead:
            return LogMatch.NEW
        return LogMatch.KNOWN if self.ahead.popleft() == event_id else LogMatch.BROKEN
