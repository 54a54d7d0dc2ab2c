"""Room that many share, divided so that the holder with the most leaves room for the next one."""

from typing import Final


class DynamicShares:
    """Divides an amount among holders: bytes, connections, or slots for what is under way.

    A holder may hold as much as is still free: one alone gets half, two a third each, a hundred one in a
    hundred and one. So there is always some for the next holder, however long the others keep theirs; the
    number of holders need not be known, and nobody is given a weight. This is the dynamic threshold of
    switches that share their buffer (A. K. Choudhury, E. L. Hahne: Dynamic queue length thresholds for
    shared-memory packet switches, IEEE/ACM Transactions on Networking 6(2), 1998, with a factor of one).

    Holders within holders (keys of a tenant) divide in the same way what their holder may hold.
    """

    def __init__(self, total: int) -> None:
        self.free = total
        self._total: Final = total
        self._held: dict[str, int] = {}

    def fits(self, size: int, *holders: str) -> bool:
        """Tell whether holders, outermost first, may have `size` more."""
        room = self.free
        for holder in holders:
            held = self._held.get(holder, 0)
            if held + size > room:
                return False
            room -= held
        return True

    def take(self, size: int, *holders: str) -> bool:
        """Count `size` for holders, outermost first; False, and nothing is counted, if that is too much."""
        if not self.fits(size, *holders):
            return False
        self.count(size, *holders)
        return True

    def count(self, size: int, *holders: str) -> None:
        """Count what holders have already, however much that is."""
        self.free -= size
        for holder in holders:
            self._held[holder] = self._held.get(holder, 0) + size

    def give(self, size: int, *holders: str) -> None:
        """Give back what was counted."""
        self.free += size
        for holder in holders:
            left = self._held[holder] - size
            if left:
                self._held[holder] = left
            else:
                del self._held[holder]

    def held(self, holder: str) -> int:
        """Return how much a holder has."""
        return self._held.get(holder, 0)

    def __len__(self) -> int:
        """Return how much is held by all."""
        return self._total - self.free


class EqualShares:
    """Counts what each holder has of something that only becomes scarce beyond a bound."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._held: dict[str, int] = {}

    def take(self, holder: str, in_all: int) -> bool:
        """Count one for a holder; False if there are too many `in_all` and it has more than an equal part."""
        own = self._held.get(holder, 0) + 1
        if in_all > self._most and own * max(1, len(self._held)) > self._most:
            return False
        self._held[holder] = own
        return True

    def give(self, holder: str) -> None:
        """Give back what `take` counted."""
        left = self._held[holder] - 1
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]


class RateShares:
    """Gives each holder as much a second as any other, and lets it save up a bound amount (a token bucket,
    RFC 2697). Holders that have saved up all are not remembered. Pure: the time is an argument, in
    milliseconds; one that goes back adds nothing.
    """

    def __init__(self, each_s: float, saved_max: float) -> None:
        self._each_ms: Final = each_s / 1000
        self._saved_max: Final = saved_max
        self._saved: dict[str, tuple[float, int]] = {}

    def fits(self, holder: str, now_ms: int, size: int = 1) -> bool:
        """Tell whether a holder may have so many more now."""
        return self._left(holder, now_ms) >= size

    def count(self, holder: str, now_ms: int) -> None:
        """Count one for a holder."""
        self._saved[holder] = self._left(holder, now_ms) - 1, now_ms

    def _left(self, holder: str, now_ms: int) -> float:
        left, at_ms = self._saved.get(holder, (self._saved_max, now_ms))
        left += max(0, now_ms - at_ms) * self._each_ms
        if left >= self._saved_max:
            self._saved.pop(holder, None)
            return self._saved_max
        self._saved[holder] = left, now_ms
        return left

    def __len__(self) -> int:
        """Return how many holders are remembered."""
        return len(self._saved)
