"""The backlog: how many accepted events of a tenant may wait for their decision."""

from typing import Final

#: Events of one tenant that may wait: half a minute of work, and as much that a disk has to hold.
BACKLOG_MAX: Final = 100_000
#: When a caller who is turned away may try again: tens of thousands are decided by then.
RETRY_AFTER_S: Final = 10
#: How long a count is used; what is accepted in that time is added to it.
COUNT_S: Final = 1.0


class Backlog:
    """Remembers counts of the store, so that accepting an event asks for one once a second at the most."""

    def __init__(self, most: int = BACKLOG_MAX) -> None:
        self.most = most
        self._counts: dict[str, tuple[float, int]] = {}

    def is_stale(self, tenant: str, now_s: float) -> bool:
        """Tell whether the jobs of a tenant have to be counted again first."""
        return now_s - self._counts.get(tenant, (float("-inf"), 0))[0] >= COUNT_S

    def counted(self, tenant: str, now_s: float, waiting: int) -> None:
        """Note what the store has counted now."""
        self._counts[tenant] = now_s, waiting

    def take(self, tenant: str) -> bool:
        """Count one more; False when there are too many already."""
        counted_s, waiting = self._counts.get(tenant, (float("-inf"), 0))
        if waiting >= self.most:
            return False
        self._counts[tenant] = counted_s, waiting + 1
        return True
