"""Room that many share, divided so that whoever takes most leaves room for the next."""

from typing import Final


class AmountShares:
    """Divides an amount among holders: bytes, or connections.

    A holder may hold as much as is still free: one alone gets half, and leaves as much to all others. Neither
    the number of holders need be known, nor a part for each be kept free. This is the dynamic threshold of
    switches that share their buffer (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
    packet switches", 1998, with alpha = 1).

    Holders within holders (keys of a tenant) share in the same way what their holder may hold.
    """

    def __init__(self, total: int) -> None:
        self._total: Final = total
        self._used = 0
        self._held: dict[str, int] = {}

    def take(self, size: int, *holders: str) -> bool:
        """Count `size` for holders, outermost first; False, and nothing is counted, if that is too much."""
        room = self._total - self._used
        for holder in holders:
            held = self._held.get(holder, 0)
            if held + size > room:
                return False
            room -= held
        self._used += size
        for holder in holders:
            self._held[holder] = self._held.get(holder, 0) + size
        return True

    def give(self, size: int, *holders: str) -> None:
        """Give back what `take` counted."""
        self._used -= size
        for holder in holders:
            left = self._held[holder] - size
            if left:
                self._held[holder] = left
            else:
                del self._held[holder]

    def __len__(self) -> int:
        """Return how much is held."""
        return self._used


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
