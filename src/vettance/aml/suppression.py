"""Suppression: which findings repeat an alert that is open, and which are quiet after a mistake."""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from vettance.aml.case import AlertState, Resolution
from vettance.clock import DAY_MS

#: An event that repeats an open alert of the same customer and typology within this time joins it.
REPEAT_MS: Final = 7 * DAY_MS
#: After an alert of a customer and typology was closed as a mistake, such findings are only recorded.
QUIET_MS: Final = 30 * DAY_MS


class EarlierAlert(Protocol):
    """What counts of a customer's earlier alert."""

    @property
    def typology(self) -> str:
        """What it is about."""

    @property
    def state(self) -> AlertState:
        """Whether it is open."""

    @property
    def last_at_ms(self) -> int:
        """When the newest event behind it happened (Unix milliseconds)."""

    @property
    def resolution(self) -> Resolution | None:
        """What its case turned out to be."""


_Alert = TypeVar("_Alert", bound=EarlierAlert)


def repeated(typology: str, known: Iterable[_Alert], at_ms: int) -> _Alert | None:
    """Find the open alert of the same typology that an event of this moment belongs to."""
    for alert in known:
        near = abs(at_ms - alert.last_at_ms) <= REPEAT_MS
        if near and alert.state is AlertState.OPEN and alert.typology == typology:
            return alert
    return None


def mistaken(typology: str, known: Iterable[EarlierAlert]) -> bool:
    """Tell whether such an alert of the customer was closed as a mistake lately."""
    return any(
        alert.typology == typology and alert.resolution is Resolution.FALSE_POSITIVE for alert in known
    )
