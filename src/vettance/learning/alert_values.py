"""What the model that orders alerts reads of one: itself, its event, what officers said before."""

import heapq
import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.case import NO_PRIORITY, AlertOrigin, Resolution
from vettance.aml.evidence import Figures
from vettance.aml.findings import SEVERITIES, Severity
from vettance.clock import DAY_MS
from vettance.learning.training_rows import TrainingRow
from vettance.models.trees import log_odds_of, probability_of

#: Alerts of a customer that are looked at, the newest of them.
CUSTOMER_ALERTS_MAX: Final = 200
#: Names that a model reads; those that most alerts have, where there are more.
NAMES_MAX: Final = 300
PRIORITY_MAX: Final = 1_000
_RECENT_MS: Final = 30 * DAY_MS
#: The share of alerts that has to have a value, and how many.
_SHARE_MIN: Final = 0.02
_ALERTS_MIN: Final = 10
_figures_of: Final = msgspec.json.Decoder(Figures).decode


class OrderedAlert(NamedTuple):
    """An alert as it is stored. Moments are Unix milliseconds; `record` is that of its first event."""

    id: str
    customer: str
    typology: str
    rule_id: str
    severity: str
    origin: str
    figures: bytes
    created_at_ms: int
    priority: int
    resolution: str | None
    resolved_at_ms: int | None
    record: bytes | None


class ResolutionCount(NamedTuple):
    """How many earlier alerts of a kind officers confirmed, and how many they closed as false positives."""

    true: int = 0
    false: int = 0

    def plus(self, resolution: str | None, count: int = 1) -> "ResolutionCount":
        """Return the counts with more alerts that ended so."""
        if resolution == Resolution.TRUE_MATCH:
            return self._replace(true=self.true + count)
        return self._replace(false=self.false + count)

    @property
    def share(self) -> float:
        """The part that was confirmed, drawn to a half while there are few."""
        return (self.true + 1) / (self.true + self.false + 2)


class Resolutions:
    """What officers said of alerts, by rule and by typology."""

    def __init__(self) -> None:
        self.rules: dict[str, ResolutionCount] = {}
        self.typologies: dict[str, ResolutionCount] = {}

    def add(self, rule_id: str, typology: str, resolution: str | None, count: int = 1) -> None:
        """Count alerts that were closed."""
        for counts, name in ((self.rules, rule_id), (self.typologies, typology)):
            counts[name] = counts.get(name, ResolutionCount()).plus(resolution, count)


class CustomerAlert(NamedTuple):
    """An earlier alert of a customer, as far as it is counted; one that is open has no resolution."""

    typology: str
    created_at_ms: int
    resolution: str | None
    resolved_at_ms: int | None


def values_of(
    alert: OrderedAlert, outcomes: Resolutions, customer: Sequence[CustomerAlert], facts: Mapping[str, float]
) -> dict[str, float]:
    """Return everything that is known of an alert when it is raised, by name.

    `customer` are the earlier alerts of its customer, `facts` the numbers of its event.
    """
    now_ms = alert.created_at_ms
    closed = [one for one in customer if one.resolved_at_ms is not None and one.resolved_at_ms < now_ms]
    matches = [one for one in closed if one.resolution == Resolution.TRUE_MATCH]
    recent = [one for one in customer if one.created_at_ms >= now_ms - _RECENT_MS]
    rule = outcomes.rules.get(alert.rule_id, ResolutionCount())
    typology = outcomes.typologies.get(alert.typology, ResolutionCount())
    found = {
        **facts,
        "alert.severity": float(SEVERITIES.index(Severity(alert.severity))),
        "alert.screening": float(alert.origin == AlertOrigin.SCREENING),
        "rule.confirmed": float(rule.true),
        "rule.mistaken": float(rule.false),
        "rule.share": rule.share,
        "typology.share": typology.share,
        "customer.confirmed": float(len(matches)),
        "customer.mistaken": float(len(closed) - len(matches)),
        "customer.alerts_30d": float(len(recent)),
        "customer.typologies_30d": float(len({one.typology for one in recent})),
    }
    if matches:
        last_ms = max(one.resolved_at_ms or 0 for one in matches)
        found["customer.confirmed_days_ago"] = (now_ms - last_ms) / DAY_MS
    return found | _figures(alert)


def _figures(alert: OrderedAlert) -> dict[str, float]:
    """Return what the figures of an alert say: how many rules and parties, how well a name matches."""
    try:
        if alert.origin == AlertOrigin.SCREENING:
            return numbers_of(msgspec.json.decode(alert.figures).items(), "screening.")
        figures = _figures_of(alert.figures)
    except (msgspec.MsgspecError, AttributeError):
        return {}
    return {"alert.rules": 1.0 + len(figures.with_rules), "alert.parties": float(len(figures.path))}


def numbers_of(pairs: Any, before: str = "") -> dict[str, float]:
    """Return the numbers and flags among (name, value) pairs."""
    return {
        before + name: float(value)
        for name, value in pairs
        if isinstance(value, int | float) and math.isfinite(value)
    }


def priority_of(log_odds: float) -> int:
    """Return the priority (thousandths) that log-odds stand for."""
    return round(PRIORITY_MAX * probability_of(log_odds))


class AlertTable:
    """Takes a tenant's alerts, oldest first, and keeps what a model can be trained on.

    What officers have said counts from the moment at which they said it.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._rows: list[tuple[OrderedAlert, array[float]]] = []
        self._outcomes = Resolutions()
        self._customers: dict[str, deque[CustomerAlert]] = {}
        self._coming: list[tuple[int, str, str, str, str | None]] = []

    def take(self, alert: OrderedAlert, facts: Mapping[str, float]) -> None:
        """Take the next alert with the numbers of its event."""
        while self._coming and self._coming[0][0] < alert.created_at_ms:
            _, _, rule_id, typology, resolution = heapq.heappop(self._coming)
            self._outcomes.add(rule_id, typology, resolution)
        known = self._customers.setdefault(alert.customer, deque(maxlen=CUSTOMER_ALERTS_MAX))
        if alert.resolved_at_ms is not None:
            values = values_of(alert, self._outcomes, known, facts)
            for name in values:
                self._places.setdefault(name, len(self._places))
            row = array("d", [math.nan]) * len(self._places)
            for name, value in values.items():
                row[self._places[name]] = value
            self._rows.append((alert._replace(figures=b"", record=None), row))
            ended = alert.resolved_at_ms, alert.id, alert.rule_id, alert.typology, alert.resolution
            heapq.heappush(self._coming, ended)
        known.append(
            CustomerAlert(alert.typology, alert.created_at_ms, alert.resolution, alert.resolved_at_ms)
        )

    @property
    def matches(self) -> int:
        """How many alerts were confirmed."""
        return sum(alert.resolution == Resolution.TRUE_MATCH for alert, _ in self._rows)

    @property
    def mistakes(self) -> int:
        """How many were closed as false positives."""
        return len(self._rows) - self.matches

    def names(self) -> tuple[str, ...]:
        """Return the names of the values that enough alerts have."""
        counts = dict.fromkeys(self._places, 0)
        names = [*self._places]
        for _, row in self._rows:
            for name, value in zip(names, row, strict=False):
                counts[name] += not math.isnan(value)
        least = max(_ALERTS_MIN, _SHARE_MIN * len(self._rows))
        enough = sorted(
            (name for name in names if counts[name] >= least), key=lambda name: (-counts[name], name)
        )
        return tuple(sorted(enough[:NAMES_MAX]))

    def rows(self, names: Sequence[str]) -> list[TrainingRow]:
        """Return a row for each alert that was closed, in the order in which they were raised."""
        places = [self._places[name] for name in names]
        found = []
        for alert, row in self._rows:
            width = len(row)
            values = array("d", [row[place] if place < width else math.nan for place in places]).tobytes()
            is_match = alert.resolution == Resolution.TRUE_MATCH
            severity = SEVERITIES.index(Severity(alert.severity))
            said = _log_odds(alert.priority)
            found.append(TrainingRow(alert.created_at_ms, values, is_match, 1.0, severity, said))
        return found


def _log_odds(priority: int) -> float | None:
    """Return the log-odds that a priority stands for; a certainty counts as a little less."""
    if priority == NO_PRIORITY:
        return None
    half = 0.5 / PRIORITY_MAX
    return log_odds_of(min(max(priority / PRIORITY_MAX, half), 1 - half))
