"""Medians: what amounts are usual for a tenant, of the newest that this process has seen."""

from collections import deque
from statistics import median
from typing import Final

#: Newest amounts that count, and how many it takes before any is called unusual.
_NEWEST: Final = 255
_LEAST: Final = 20
#: Currencies of one tenant; further ones have no median.
_CURRENCIES_MAX: Final = 16


class AmountMedians:
    """Remembers the newest amounts of tenants by currency; a tenant's take at most some 100 kB."""

    def __init__(self) -> None:
        self._amounts: dict[str, dict[str, deque[float]]] = {}

    def note(self, tenant: str, currency: str, amount: float) -> None:
        """Take an amount in."""
        known = self._amounts.setdefault(tenant, {})
        newest = known.get(currency)
        if newest is None:
            if len(known) >= _CURRENCIES_MAX:
                return
            newest = known[currency] = deque(maxlen=_NEWEST)
        newest.append(amount)

    def median(self, tenant: str, currency: str) -> float | None:
        """Return the median, or None while too few amounts are known."""
        newest = self._amounts.get(tenant, {}).get(currency, ())
        return median(newest) if len(newest) >= _LEAST else None

    def forget(self, tenant: str) -> None:
        """Drop a tenant."""
        self._amounts.pop(tenant, None)
