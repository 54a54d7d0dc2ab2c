"""Shares: slots for what is under way, of which no tenant gets so many that none is left for another."""

from collections import Counter


class SlotShares:
    """Counts the slots that tenants hold.

    A tenant may hold as many slots as are left free, and no more: one alone half of all, two a third each,
    a hundred one in a hundred and one. So there are always some for who comes next, however long the others
    keep theirs, and nobody is given a weight. (A. K. Choudhury, E. L. Hahne: Dynamic queue length thresholds
    for shared-memory packet switches, IEEE/ACM Transactions on Networking 6(2), 1998, with a factor of one.)
    """

    def __init__(self, slots: int, each_max: int | None = None) -> None:
        """`each_max` is the most that one tenant may hold, however many are free."""
        self.free = slots
        self._each_max = slots if each_max is None else each_max
        self._held: Counter[str] = Counter()

    def may_take(self, tenant: str) -> bool:
        """Tell whether a tenant may have one more."""
        return self._held[tenant] < min(self.free, self._each_max)

    def held(self, tenant: str) -> int:
        """Return how many a tenant holds."""
        return self._held[tenant]

    def take(self, tenant: str, count: int = 1) -> None:
        """Note that a tenant holds more slots."""
        self._held[tenant] += count
        self.free -= count

    def give_back(self, tenant: str) -> None:
        """Note that a tenant holds one slot less."""
        self.free += 1
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
