"""The alerts that rules would have raised on past events, kept in memory as the service keeps alerts."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vettance.aml.aml_event import AmlEvent
from vettance.aml.case import AlertState, Resolution
from vettance.aml.findings import AmlFinding, Severity, rule_weight
from vettance.aml.suppression import QUIET_MS, is_raised, mistaken, repeated

#: Alerts of one customer that are looked at, of the open ones and of those closed lately, as the store does.
_KNOWN_MAX: Final = 200


class CaseEnd(msgspec.Struct, frozen=True):
    """When the case of a customer was closed (Unix milliseconds), and what it turned out to be."""

    customer: str
    at_ms: int
    resolution: Resolution


class TriedAlert(msgspec.Struct):
    """An alert that was raised in a backtest; `is_counted` tells whether its event lies in the span."""

    rule_id: str
    typology: str
    severity: Severity
    last_at_ms: int
    is_counted: bool
    state: AlertState = AlertState.OPEN
    resolution: Resolution | None = None
    resolved_at_ms: int = 0


class RaisedAlerts:
    """The alerts of all customers so far, and the weights that closed ones leave to their rules.

    A case that was closed closes what its customer has open here: the officer's word is about the customer.
    So alerts that were in fact raised end as they did, and new ones are judged by the same word.
    """

    def __init__(self, ends: Iterable[CaseEnd]) -> None:
        """`ends` are in the order of time."""
        self._open: dict[str, deque[TriedAlert]] = {}
        self._closed: dict[str, deque[TriedAlert]] = {}
        self._ends = deque(ends)
        self._outcomes: dict[str, list[int]] = {}
        self.weights: dict[str, float] = {}
        #: Every alert that was raised on an event of the span.
        self.raised: list[TriedAlert] = []

    def reach(self, at_ms: int) -> None:
        """Close what was closed up to a moment (Unix milliseconds)."""
        while self._ends and self._ends[0].at_ms <= at_ms:
            end = self._ends.popleft()
            for alert in reversed(self._open.pop(end.customer, ())):
                alert.state, alert.resolution, alert.resolved_at_ms = (
                    AlertState.CLOSED,
                    end.resolution,
                    end.at_ms,
                )
                closed = self._closed.setdefault(end.customer, deque(maxlen=_KNOWN_MAX))
                closed.appendleft(alert)
                outcome = self._outcomes.setdefault(alert.rule_id, [0, 0])
                outcome[end.resolution is Resolution.FALSE_POSITIVE] += 1
                self.weights[alert.rule_id] = rule_weight(*outcome)

    def place(
        self, findings: Sequence[AmlFinding], rules: Sequence[str], event: AmlEvent, *, is_counted: bool
    ) -> list[TriedAlert]:
        """Return the alerts that an event raises or repeats; `rules` are the ids of the running rules."""
        found: list[TriedAlert] = []
        for finding in findings:
            known = self._known(finding.subject, event.received_at_ms)
            alert = repeated(finding, known, event.occurred_at_ms)
            if alert is not None:
                alert.last_at_ms = max(alert.last_at_ms, event.occurred_at_ms)
                if is_raised(finding, alert):
                    alert.severity, alert.typology = finding.severity, finding.typology
            elif not finding.mandatory and mistaken(finding, known):
                continue
            else:
                alert = TriedAlert(
                    rules[finding.rule], finding.typology, finding.severity, event.occurred_at_ms, is_counted
                )
                self._open.setdefault(finding.subject, deque(maxlen=_KNOWN_MAX)).appendleft(alert)
                if is_counted:
                    self.raised.append(alert)
            if not any(one is alert for one in found):
                found.append(alert)
        return found

    def _known(self, customer: str, now_ms: int) -> list[TriedAlert]:
        """Return a customer's open alerts and those that were closed lately, as the service looks at them."""
        closed = self._closed.get(customer)
        lately = [one for one in closed or () if one.resolved_at_ms >= now_ms - QUIET_MS]
        return [*self._open.get(customer, ()), *lately]
