"""Unconfirmed events: shared velocity has observed them, and their write failed or took effect late."""

from collections.abc import Container, Iterable
from typing import Final

#: How much later than its failure a write may show in the log: a database that was cut off may commit what
#: it has received when it recovers.
DOUBT_S: Final = 300.0
_EVENTS_MAX: Final = 10_000  # of a tenant; as many as its memory keeps answers of
_AT_ONCE: Final = 500


class UnconfirmedEvents:
    """The events of this process that are, as far as it knows, in the memory and not in the log."""

    def __init__(self) -> None:
        self._until_s: dict[str, dict[str, float]] = {}

    def add(self, tenant: str, event_id: str, now_s: float) -> None:
        """Note that the write of an event has failed."""
        events = self._until_s.setdefault(tenant, {})
        events[event_id] = now_s + DOUBT_S
        if len(events) > _EVENTS_MAX:
            del events[next(iter(events))]

    def of(self, tenant: str) -> Container[str]:
        """Return the unconfirmed events of a tenant."""
        return self._until_s.get(tenant, {}).keys()

    def clear(self, tenant: str, stored: Iterable[str]) -> None:
        """Note that events are in the log, and counted."""
        if events := self._until_s.get(tenant):
            for event_id in stored:
                events.pop(event_id, None)

    def tenants(self) -> tuple[str, ...]:
        """Return the tenants with unconfirmed events."""
        return tuple(self._until_s)

    def batches(self, tenant: str, now_s: float) -> list[list[str]]:
        """Return the events of a tenant that are to be looked for in the log, so many at a time."""
        events = self._until_s.get(tenant, {})
        asked = [event_id for event_id, until_s in events.items() if until_s > now_s]
        if not asked:
            self._until_s.pop(tenant, None)
        return [asked[first : first + _AT_ONCE] for first in range(0, len(asked), _AT_ONCE)]
