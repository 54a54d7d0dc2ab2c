"""A naive memory: it keeps a list of everything and scans it for every question."""

import math

from vettance.velocity.aggregates import AGGREGATES
from vettance.velocity.port import Observation, Plan, Value


def same(value: Value) -> tuple[str, Value]:
    """Tell values apart as rules do: 1 is 1.0, True is not 1, a text is no number."""
    return ("bool" if type(value) is bool else "text" if type(value) is str else "number", value)


def keeps(kind: str, value: Value) -> bool:
    if kind == "moments":
        return True
    if type(value) is str or type(value) is bool:
        return kind == "texts"
    return value is not None and math.isfinite(value)


class Oracle:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.log: list[tuple[str, int, Observation]] = []
        self.known: dict[tuple[str, str], tuple[Value, ...]] = {}
        self._found: dict[int, tuple[tuple, list[tuple[int, Value]]]] = {}

    def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> tuple[Value, ...]:
        if (tenant, event_id) in self.known:
            return self.known[tenant, event_id]
        answer = tuple(self.ask(tenant, index, at_ms, seen) for index in range(len(self.plan.aggregates)))
        self.log.append((tenant, at_ms, seen))
        self.known[tenant, event_id] = answer
        return answer

    def inside(self, tenant: str, index: int, after_ms: int, until_ms: int, seen: Observation):
        """Return (moment, value) of what the aggregate looks at, oldest first, in call order where equal."""
        number = self.plan.aggregates[index].series
        key = same(seen.keys[self.plan.series[number].key])
        return [pair for pair in self._of_key(tenant, number, key) if after_ms < pair[0] <= until_ms]

    def _of_key(self, tenant: str, number: int, key: tuple[str, Value]) -> list[tuple[int, Value]]:
        """Return what a series has of a key, of all times; all aggregates of an event ask for the same."""
        asked = (len(self.log), tenant, number, key)
        if self._found.get(number, ((), []))[0] != asked:
            series = self.plan.series[number]
            found = []
            for owner, moment, past in self.log:
                value = None if series.value is None else past.values[series.value]
                if (
                    owner == tenant
                    and past.mask >> number & 1
                    and past.keys[series.key] is not None
                    and same(past.keys[series.key]) == key
                    and keeps(series.kind, value)
                ):
                    found.append((moment, value))
            self._found[number] = (asked, sorted(found, key=lambda pair: pair[0]))
        return self._found[number][1]

    def ask(self, tenant: str, index: int, at_ms: int, seen: Observation) -> Value:
        aggregate = self.plan.aggregates[index]
        series = self.plan.series[aggregate.series]
        if seen.keys[series.key] is None:
            return None
        own = None if series.value is None else seen.values[series.value]
        if aggregate.kind == "seen" and not keeps(series.kind, own):
            return None
        inside = self.inside(tenant, index, at_ms - aggregate.window_ms, at_ms, seen)
        if not inside:
            return AGGREGATES[aggregate.kind].default
        moments, values = zip(*inside, strict=True)
        return {
            "frauds": lambda: float(max(sum(values), 0)),
            "legits": lambda: float(max(sum(values), 0)),
            "first_fraud": lambda: since(labels_of(inside)[:1], at_ms),
            "last_fraud": lambda: since(labels_of(inside)[-1:], at_ms),
            "count": lambda: len(inside),
            "sum": lambda: math.fsum(values),
            "avg": lambda: math.fsum(values) / len(values),
            "min": lambda: min(values),
            "max": lambda: max(values),
            "distinct": lambda: len({same(value) for value in values}),
            "seen": lambda: same(own) in {same(value) for value in values},
            "first_seen": lambda: (at_ms - moments[0]) / 1000,
            "last_seen": lambda: (at_ms - moments[-1]) / 1000,
            "last": lambda: values[-1],
        }[aggregate.kind]()


def labels_of(inside: list) -> list[int]:
    """Return the moments of labels of which each was not taken back, oldest first."""
    if not all(type(value) in (int, float) for _, value in inside):
        return []
    summed: dict[int, float] = {}
    for moment, value in inside:
        summed[moment] = summed.get(moment, 0) + value
    return [moment for moment, weight in summed.items() if weight > 0]


def since(moments: list[int], at_ms: int) -> float | None:
    """Return the seconds since the only moment of a list; None for none."""
    return (at_ms - moments[0]) / 1000 if moments else None


def agree(mine: Value, naive: Value) -> bool:
    """Tell whether two answers are equal, sums up to the rounding of floating point."""
    if type(mine) is float and isinstance(naive, float | int) and type(naive) is not bool:
        return math.isclose(mine, naive, rel_tol=1e-9, abs_tol=1e-9)
    return type(mine) is type(naive) and mine == naive
