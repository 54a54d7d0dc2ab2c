"""Under which name planted cases are found, and how early: the measure behind `python bench aml rules|other`.

A name is right when one of the rules that the manual lists for the typology gave it. A case is as long as the
time from its first event to its last (of a sleeper: from when it wakes); a name comes in time when an alert
has it within half of that. By the end it counts only where an alert still has it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from vettance.backtests.raised_alerts import TriedAlert
from vettance.clock import DAY_MS

#: Typologies as the generators call them, and the names that are right for them.
RIGHT: Final[dict[str, frozenset[str]]] = {
    typology: frozenset(names.split())
    for typology, names in {
        "structuring": "STRUCTURING",
        "smurfing": "SMURFING",
        "fan_in": "FAN_IN",
        "fan_out": "FAN_OUT",
        "cycle": "CYCLE",
        "scatter_gather": "SCATTER_GATHER",
        "gather_scatter": "GATHER_SCATTER",
        "bipartite": "BIPARTITE",
        "layering": "LAYERING",
        "stack": "LAYERING",
        "rapid_in_out": "RAPID_IN_OUT",
        "rapid": "RAPID_IN_OUT",
        "funnel": "FUNNEL_ACCOUNT",
        "dormant": "DORMANT_ACCOUNT",
        "high_risk": "HIGH_RISK_JURISDICTION CALL_FOR_ACTION_JURISDICTION SANCTIONED_JURISDICTION",
        "round_amounts": "ROUND_AMOUNTS",
        "round_sums": "ROUND_AMOUNTS",
        "velocity": "VELOCITY_BURST VOLUME_JUMP",
        "burst": "VELOCITY_BURST VOLUME_JUMP",
        "profile_mismatch": "PROFILE_MISMATCH",
        "mismatch": "PROFILE_MISMATCH",
        "mule": "MULE_ACCOUNT",
        "mispricing": "TRADE_MISPRICING",
        "early_repayment": "EARLY_REPAYMENT",
        "new_instrument": "NEW_INSTRUMENT",
        "shared_instrument": "SHARED_INSTRUMENT",
        "many_counterparties": "MANY_COUNTERPARTIES",
    }.items()
}


class CaseNames:
    """What the events of planted cases were called, as they came."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[int, int]] = {}
        self._kinds: dict[str, str] = {}
        self._first: dict[str, dict[str, int]] = defaultdict(dict)
        self._alerts: dict[str, list[TriedAlert]] = defaultdict(list)

    def note(self, typology: str, case: str, at_ms: int, alerts: Iterable[TriedAlert]) -> None:
        """Take note of an event of a case, and of the alerts that it made, repeated or raised."""
        begun, _ = self._spans.setdefault(case, (at_ms, at_ms))
        if typology == "dormant" and at_ms - begun > 30 * DAY_MS:
            begun = at_ms
        self._kinds[case] = typology
        self._spans[case] = (begun, at_ms)
        for alert in alerts:
            self._first[case].setdefault(alert.typology, at_ms)
            self._alerts[case].append(alert)

    def report(self) -> None:
        """Print for each typology how many cases get their right name, in time and by their end."""
        total = [0, 0, 0, 0]
        print("| typology | cases | found | right name | within half | first of all, otherwise |")
        print("|---|---|---|---|---|---|")
        for typology in sorted(set(self._kinds.values())):
            cases = [case for case, kind in self._kinds.items() if kind == typology]
            counts = [len(cases), sum(bool(self._first[case]) for case in cases), 0, 0]
            before: Counter[str] = Counter()
            for case in cases:
                first = self._first[case]
                named = min((at for name, at in first.items() if name in RIGHT[typology]), default=None)
                begun, ended = self._spans[case]
                counts[2] += any(alert.typology in RIGHT[typology] for alert in self._alerts[case])
                counts[3] += named is not None and named <= (begun + ended) / 2
                if first and (earliest := min(first, key=first.__getitem__)) not in RIGHT[typology]:
                    before[earliest] += 1
            total = [old + new for old, new in zip(total, counts, strict=True)]
            others = ", ".join(f"{name} {count}" for name, count in before.most_common(3))
            print(f"| {typology} | {' | '.join(map(str, counts))} | {others} |")
        cases_, found, right, early = total
        print(
            f"found {found / cases_:.3f}, right name {right / cases_:.3f}, within half {early / cases_:.3f}"
            f" of {cases_} cases"
        )
