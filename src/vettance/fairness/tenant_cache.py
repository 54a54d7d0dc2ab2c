"""The tenant cache: what is remembered of all tenants, bounded in bytes, and shared fairly between them."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

#: What one entry takes beside its key and value: a slot of a dictionary and the heads of a few objects.
ENTRY_BYTES: Final = 400

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Usage(NamedTuple):
    """How much is remembered: bytes in all, bytes of the tenant with the most, and entries evicted so far."""

    held_bytes: int
    largest_bytes: int
    evicted: int


class _TenantPart(Generic[Key, Value]):
    __slots__ = ("entries", "held_bytes")

    def __init__(self) -> None:
        self.entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.held_bytes = 0


class TenantCache(Generic[Key, Value]):
    """Values by tenant and key. Beyond `bytes_max` the tenant with the most loses what was put longest ago.

    So a tenant loses nothing while it keeps within an equal share of the memory, whatever the others do:
    max-min fairness (Bertsekas and Gallager, "Data Networks", section 6.5.2). The value put last stays,
    however large it is. `weigh` tells the bytes of a key and its value; `ENTRY_BYTES` are added for each.
    """

    def __init__(self, bytes_max: int, weigh: Callable[[Key, Value], int]) -> None:
        self._bytes_max = bytes_max
        self._weigh = weigh
        self._parts: dict[str, _TenantPart[Key, Value]] = {}
        self._held_bytes = 0
        self._evicted = 0

    def __len__(self) -> int:
        return sum(len(part.entries) for part in self._parts.values())

    @property
    def usage(self) -> Usage:
        """Return how much is remembered, for the metrics."""
        largest = max((part.held_bytes for part in self._parts.values()), default=0)
        return Usage(self._held_bytes, largest, self._evicted)

    def get(self, tenant: str, key: Key) -> Value | None:
        """Return a value, or None when it is not there."""
        part = self._parts.get(tenant)
        entry = part.entries.get(key) if part is not None else None
        return entry[0] if entry is not None else None

    def put(self, tenant: str, key: Key, value: Value) -> None:
        """Remember a value as the newest of its tenant, in place of the one of this key; make room for it."""
        self.pop(tenant, key)
        part = self._parts.setdefault(tenant, _TenantPart())
        weight = self._weigh(key, value) + ENTRY_BYTES
        part.entries[key] = value, weight
        part.held_bytes += weight
        self._held_bytes += weight
        while self._held_bytes > self._bytes_max and self._evict(tenant, key):
            pass

    def pop(self, tenant: str, key: Key) -> Value | None:
        """Forget a value and return it, or None when it is not there."""
        part = self._parts.get(tenant)
        entry = part.entries.pop(key, None) if part is not None else None
        if part is None or entry is None:
            return None
        self._held_bytes -= entry[1]
        part.held_bytes -= entry[1]
        if not part.entries:
            del self._parts[tenant]
        return entry[0]

    def drop(self, tenant: str) -> None:
        """Forget everything of a tenant."""
        part = self._parts.pop(tenant, None)
        if part is not None:
            self._held_bytes -= part.held_bytes

    def oldest(self) -> Iterator[tuple[str, Key, Value]]:
        """Yield (tenant, key, value) of what each tenant put longest ago, then the next if it was popped."""
        for tenant, part in list(self._parts.items()):
            while part.entries:
                key, (value, _) = next(iter(part.entries.items()))
                yield tenant, key, value
                if key in part.entries:
                    break  # It is still wanted, and so is all that is newer.

    def _evict(self, tenant: str, newest: Key) -> bool:
        """Forget one entry of the tenant that holds the most; False when only the newest is left."""
        largest = max(self._parts, key=lambda name: self._parts[name].held_bytes)
        key = next(iter(self._parts[largest].entries))
        if largest == tenant and key == newest:
            others = [name for name in self._parts if name != tenant]
            if not others:
                return False
            largest = max(others, key=lambda name: self._parts[name].held_bytes)
            key = next(iter(self._parts[largest].entries))
        self.pop(largest, key)
        self._evicted += 1
        return True
