"""Under which name planted cases are found, and how early: the measure behind `python bench aml rules|other`.

A name is right when one of the rules that the manual lists for the typology gave it. A case is as long as the
time from its first event to its last (of a sleeper: from when it wakes); a name comes in time when an alert
has it within half of that. By the end it counts only where an alert still has it. No name can come before the
step that sets the shape apart, such as the transfer that closes a circle: *at best* counts the cases whose
step comes in time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

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


#: Of the typologies that count something, with which event it is half of what their rules look for.
_PARTS: Final = {
    **dict.fromkeys(("structuring", "round_sums", "round_amounts", "funnel", "layering", "stack"), 2),
    **dict.fromkeys(("mismatch", "profile_mismatch", "shared_instrument"), 2),
    **dict.fromkeys(("smurfing", "fan_in", "fan_out"), 3),
    **dict.fromkeys(("many_counterparties", "burst", "velocity"), 8),
}


class CaseEvent(NamedTuple):
    """One event of a planted case."""

    at_ms: int
    customer: str
    body: dict[str, Any]

    @property
    def leaves(self) -> bool:
        """Whether money leaves the customer."""
        return bool(self.body["metadata"].get("direction") == "out")

    @property
    def is_paid(self) -> str:
        """Name who is on the other side, the account of a customer as its id."""
        metadata = self.body["metadata"]
        other = metadata.get("counterpartyId") or metadata.get("counterpartyAccount") or ""
        return str(other).replace("ACC/", "").replace("acc-", "")


def _tells(typology: str, events: Sequence[CaseEvent]) -> bool:
    """Tell whether the last of these events of a case sets its shape apart from what is ordinary."""
    last = events[-1]
    kind = f"{last.body['eventName']} {last.body['metadata'].get('transactionType', '')}".lower()
    match typology:
        case "cycle":
            return False  # The one that closes it comes at the very end.
        case "new_instrument":
            return "amount" in last.body["metadata"]
        case "early_repayment":
            return "repayment" in kind
        case "rapid" | "rapid_in_out" | "gather_scatter":
            return last.leaves
        case "scatter_gather":
            return last.leaves and last.customer != events[0].customer
        case "bipartite":
            paid: dict[str, set[str]] = defaultdict(set)
            for event in events:
                if event.leaves:
                    paid[event.customer].add(event.is_paid)
            own = paid[last.customer]
            return any(len(own & others) >= 2 for who, others in paid.items() if who != last.customer)
        case _:
            return len(events) >= _PARTS.get(typology, 1)


class CaseNames:
    """What the events of planted cases were called, as they came."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[int, int]] = {}
        self._kinds: dict[str, str] = {}
        self._first: dict[str, dict[str, int]] = defaultdict(dict)
        self._alerts: dict[str, list[TriedAlert]] = defaultdict(list)
        self._events: dict[str, list[CaseEvent]] = defaultdict(list)
        self._told: dict[str, int] = {}

    def note(self, typology: str, case: str, event: CaseEvent, alerts: Iterable[TriedAlert]) -> None:
        """Take note of an event of a case, and of the alerts that it made, repeated or raised."""
        at_ms = event.at_ms
        begun, _ = self._spans.setdefault(case, (at_ms, at_ms))
        if typology == "dormant" and at_ms - begun > 30 * DAY_MS:
            begun = at_ms
            self._told.pop(case, None)
        self._events[case].append(event)
        if case not in self._told and _tells(typology, self._events[case]):
            self._told[case] = at_ms
        self._kinds[case] = typology
        self._spans[case] = (begun, at_ms)
        for alert in alerts:
            self._first[case].setdefault(alert.typology, at_ms)
            self._alerts[case].append(alert)

    def report(self) -> None:
        """Print for each typology how many cases get their right name, in time and by their end."""
        total = [0, 0, 0, 0, 0]
        print("| typology | cases | found | right name | within half | at best | first of all, otherwise |")
        print("|---|---|---|---|---|---|---|")
        for typology in sorted(set(self._kinds.values())):
            cases = [case for case, kind in self._kinds.items() if kind == typology]
            counts = [len(cases), sum(bool(self._first[case]) for case in cases), 0, 0, 0]
            before: Counter[str] = Counter()
            for case in cases:
                first = self._first[case]
                named = min((at for name, at in first.items() if name in RIGHT[typology]), default=None)
                begun, ended = self._spans[case]
                counts[2] += any(alert.typology in RIGHT[typology] for alert in self._alerts[case])
                counts[3] += named is not None and named <= (begun + ended) / 2
                counts[4] += self._told.get(case, ended + 1) <= (begun + ended) / 2
                if first and (earliest := min(first, key=first.__getitem__)) not in RIGHT[typology]:
                    before[earliest] += 1
            total = [old + new for old, new in zip(total, counts, strict=True)]
            others = ", ".join(f"{name} {count}" for name, count in before.most_common(3))
            print(f"| {typology} | {' | '.join(map(str, counts))} | {others} |")
        cases_, found, right, early, best = total
        print(
            f"found {found / cases_:.3f}, right name {right / cases_:.3f}, within half {early / cases_:.3f}"
            f" (at best {best / cases_:.3f}) of {cases_} cases"
        )
