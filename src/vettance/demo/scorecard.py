"""What the decisions were worth: outcomes against the truth, and how long they took."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from vettance.generate.generated_event import ORDINARY

DECISIONS = ("approve", "review", "deny")


class ScenarioResult(NamedTuple):
    """How one scenario came out: events and cases there were, and what was stopped of them."""

    scenario: str
    events: int
    reviewed: int
    blocked: int
    cases: int
    cases_stopped: int


class Scorecard:
    """Collects every decision with its truth; keeps one number for each event, its latency."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()  # (scenario, decision)
        self.reasons: Counter[str] = Counter()
        self.fraud_scores: Counter[int] = Counter()
        self.legit_scores: Counter[int] = Counter()
        self.latencies_s = array("d")
        self.refused: Counter[int] = Counter()
        self._cases: dict[str, dict[str, bool]] = {}

    def note(
        self, scenario: str, case: str, decision: str, score: int, reasons: Sequence[str], took_s: float
    ) -> None:
        """Add one decision."""
        self.counts[scenario, decision] += 1
        self.reasons.update(reasons)
        self.latencies_s.append(took_s)
        if scenario == ORDINARY:
            self.legit_scores[score] += 1
            return
        self.fraud_scores[score] += 1
        cases = self._cases.setdefault(scenario, {})
        if case:
            cases[case] = cases.get(case, False) or decision != "approve"

    @property
    def decided(self) -> int:
        """How many events were decided."""
        return len(self.latencies_s)

    def of(self, decision: str, *, fraud: bool) -> int:
        """Count decisions of a kind among fraud or among ordinary events."""
        return sum(
            count
            for (scenario, outcome), count in self.counts.items()
            if outcome == decision and (scenario != ORDINARY) == fraud
        )

    def caught(self) -> list[ScenarioResult]:
        """Return how each scenario came out, the largest first."""
        found = []
        for scenario, cases in self._cases.items():
            reviewed, blocked = self.counts[scenario, "review"], self.counts[scenario, "deny"]
            events = reviewed + blocked + self.counts[scenario, "approve"]
            stopped = sum(cases.values())
            found.append(ScenarioResult(scenario, events, reviewed + blocked, blocked, len(cases), stopped))
        return sorted(found, key=lambda row: -row.events)

    def precision(self, *, blocked_only: bool) -> float | None:
        """Return which part of the stopped events was fraud; None when nothing was stopped."""
        stopping = ("deny",) if blocked_only else ("review", "deny")
        fraud = sum(self.of(decision, fraud=True) for decision in stopping)
        legit = sum(self.of(decision, fraud=False) for decision in stopping)
        return fraud / (fraud + legit) if fraud + legit else None

    def average_precision(self) -> float | None:
        """Return the average precision of the risk score; None without fraud.

        The sum over the distinct scores, from the highest, of the recall gained times the precision there (no
        interpolation; events of equal score count together). The chance level is the share of fraud.
        """
        frauds = self.fraud_scores.total()
        if not frauds:
            return None
        hits = alarms = 0
        area = 0.0
        for score in sorted({*self.fraud_scores, *self.legit_scores}, reverse=True):
            gained = self.fraud_scores[score]
            hits += gained
            alarms += gained + self.legit_scores[score]
            area += gained / frauds * hits / alarms
        return area

    def quantiles_ms(self, *parts: float) -> list[float]:
        """Return latency quantiles in milliseconds (nearest rank)."""
        return quantiles_ms(self.latencies_s, *parts)


def quantiles_ms(latencies_s: Sequence[float], *parts: float) -> list[float]:
    """Return quantiles of latencies in milliseconds by nearest rank: 0.5 is the median. Zeros when empty."""
    ordered = sorted(latencies_s)
    if not ordered:
        return [0.0 for _ in parts]
    return [ordered[max(0, math.ceil(part * len(ordered)) - 1)] * 1000 for part in parts]
