"""Suppression: which findings repeat or raise an open alert, and which are quiet after a mistake."""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from vettance.aml.case import AlertState, Resolution
from vettance.aml.findings import BEGINS, SEVERITIES, AmlFinding, Severity
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
    def severity(self) -> Severity:
        """How urgent it is."""

    @property
    def resolution(self) -> Resolution | None:
        """What its case turned out to be."""


_Alert = TypeVar("_Alert", bound=EarlierAlert)


def repeated(finding: AmlFinding, known: Iterable[_Alert], at_ms: int) -> _Alert | None:
    """Find the open alert that an event of this moment belongs to: of the same typology, else one of low
    severity about a shape that begins so, where what was found is more severe.
    """
    begun = None
    for alert in known:
        if alert.state is not AlertState.OPEN or abs(at_ms - alert.last_at_ms) > REPEAT_MS:
            continue
        if alert.typology == finding.typology:
            return alert
        if alert.severity is Severity.LOW and finding.typology in BEGINS.get(alert.typology, ()):
            begun = begun or alert
    return begun if finding.severity is not Severity.LOW else None


def is_raised(finding: AmlFinding, alert: EarlierAlert) -> bool:
    """Tell whether a finding is more severe than the alert that it belongs to."""
    return SEVERITIES.index(finding.severity) > SEVERITIES.index(alert.severity)


def mistaken(finding: AmlFinding, known: Iterable[EarlierAlert]) -> bool:
    """Tell whether such an alert of the customer was closed as a mistake lately; of one of low severity that
    says nothing about more severe ones.
    """
    return any(
        alert.typology == finding.typology
        and alert.resolution is Resolution.FALSE_POSITIVE
        and (finding.severity is Severity.LOW or alert.severity is not Severity.LOW)
        for alert in known
    )
