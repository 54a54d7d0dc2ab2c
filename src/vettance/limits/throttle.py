"""The throttle: how much one caller may ask in any minute. Pure: the time is an argument."""

from array import array
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

from vettance.limits.verdict import Verdict

THROTTLE_WINDOW_S: Final = 60
# Leading room in a caller's log is given back in blocks, so that forgetting a moment costs O(1) on average.
_ROOM_MIN: Final = 64


class _Log:
    """The moments at which one caller was admitted, oldest first from `head` on."""

    __slots__ = ("caller", "head", "moments")

    def __init__(self, caller: int, moments: "array[float]") -> None:
        self.caller = caller
        self.moments = moments
        self.head = 0

    def forget(self, now_s: float) -> int:
        """Let go of what has left the window that ends at `now_s`; return how many moments are in it."""
        moments, head = self.moments, self.head
        end = len(moments)
        while head < end and moments[head] + THROTTLE_WINDOW_S <= now_s:
            head += 1
        if head >= _ROOM_MIN and head * 2 >= end:
            del moments[:head]
            head = 0
        self.head = head
        return len(moments) - head


class Throttle:
    """At most `limit` requests of a caller in any window [s, s + 60 s), exactly.

    It keeps a log of what was admitted: O(1) on average, eight bytes for each request of the last minute.
    A refused request costs nothing. Callers live in two generations, changed once a window: whoever does not
    ask during a whole generation has nothing left in any window and is forgotten with it, without a search.

    `note(caller, moment_s)` is told of every request admitted, and by a moment below zero of one taken back,
    with a number of 64 bits for the caller; what it noted may be handed to `restore` after a restart.
    """

    def __init__(self, note: Callable[[int, float], None] | None = None) -> None:
        self._note = note
        self._found: Mapping[int, array[float]] = {}
        self._active: dict[str, _Log] = {}
        self._idle: dict[str, _Log] = {}
        self._turned_at_s = float("-inf")
        self._now_s = float("-inf")

    def restore(self, found: "Mapping[int, array[float]]", now_s: float) -> None:
        """Take up the moments, oldest first, at which callers were admitted before a restart."""
        self._tick(now_s)
        self._found = found

    def admit(self, caller: str, limit: int, now_s: float) -> Verdict:
        """Count a request of `caller` if fewer than `limit` stand in the window that ends at `now_s`.

        `now_s` is a monotonic clock in seconds; one that runs backwards is held at its latest value.
        `limit` may differ from call to call.
        """
        now_s = self._tick(now_s)
        log = self._active.get(caller)
        if log is None:
            log = self._idle.pop(caller, None) or self._begin(caller)
            self._active[caller] = log
        used = log.forget(now_s)
        if used >= limit:
            return _refused(log, used, limit, now_s)
        log.moments.append(now_s)
        if self._note is not None:
            self._note(log.caller, now_s)
        reset_s = log.moments[log.head] + THROTTLE_WINDOW_S - now_s
        return Verdict(True, limit, limit - used - 1, reset_s, 0.0)  # noqa: FBT003

    def look(self, caller: str, limit: int, now_s: float) -> Verdict:
        """Tell what `admit` would say and what then stands, without counting anything."""
        now_s = self._tick(now_s)
        log = self._active.get(caller) or self._idle.get(caller)
        if log is None and self._found:
            log = self._begin(caller)
        used = 0 if log is None else log.forget(now_s)
        if used >= limit:
            return _refused(log, used, limit, now_s)
        reset_s = log.moments[log.head] + THROTTLE_WINDOW_S - now_s if log and used else 0.0
        return Verdict(admitted=True, limit=limit, remaining=limit - used, reset_s=reset_s, retry_after_s=0.0)

    def refund(self, caller: str) -> None:
        """Take back the newest request counted for `caller`, because a later check refused it."""
        log = self._active.get(caller) or self._idle.get(caller)
        if log is not None and len(log.moments) > log.head:
            moment_s = log.moments.pop()
            if self._note is not None:
                self._note(log.caller, -moment_s)

    def __len__(self) -> int:
        """Return how many callers are remembered."""
        return len(self._active) + len(self._idle)

    def _begin(self, caller: str) -> _Log:
        name = int.from_bytes(blake2b(caller.encode(), digest_size=8).digest(), "little")
        return _Log(name, array("d", self._found.get(name, ())))

    def _tick(self, now_s: float) -> float:
        if now_s < self._now_s:
            return self._now_s
        self._now_s = now_s
        if now_s - self._turned_at_s >= THROTTLE_WINDOW_S:
            # Whatever is in the older generation was last touched before the last turn, a whole window ago.
            self._idle, self._active, self._found = self._active, {}, {}
            self._turned_at_s = now_s
        return now_s


def _refused(log: _Log | None, used: int, limit: int, now_s: float) -> Verdict:
    """Say when enough of the `used` requests will have left the window for one more to fit."""
    wait_s: float = THROTTLE_WINDOW_S
    if log is not None and limit > 0:
        wait_s = log.moments[log.head + used - limit] + THROTTLE_WINDOW_S - now_s
    return Verdict(admitted=False, limit=limit, remaining=0, reset_s=wait_s, retry_after_s=wait_s)
