"""Plans and observations for the tests of the state engine."""

from hypothesis import strategies as st

from vettance.velocity.aggregates import AGGREGATES
from vettance.velocity.port import Aggregate, Observation, Plan, Series

MINUTE = 60_000
HOUR = 60 * MINUTE
WINDOWS = (1, 999, MINUTE, 7 * MINUTE, HOUR, 24 * HOUR)
NUMBERS = tuple(name for name, row in AGGREGATES.items() if row.needs_value and row.fraud is None)
TEXTS = tuple(name for name, row in AGGREGATES.items() if row.takes == "scalar")
LABELS = tuple(name for name, row in AGGREGATES.items() if row.fraud is not None)
MOMENTS = tuple(name for name, row in AGGREGATES.items() if not row.needs_value)


def make_plan(series: tuple[Series, ...], aggregates: tuple[Aggregate, ...]) -> Plan:
    keys = 1 + max(one.key for one in series)
    return Plan(
        tuple(f"key{index}" for index in range(keys)),
        series,
        tuple(f"series{index}" for index in range(len(series))),
        aggregates,
        tuple(f"aggregate{index}" for index in range(len(aggregates))),
    )


def _every_kind() -> Plan:
    series = (
        Series(0, None, "moments"),
        Series(0, 0, "numbers"),
        Series(0, 1, "texts"),
        Series(0, None, "moments"),
        Series(1, 0, "numbers"),
        Series(1, 1, "texts"),
        Series(0, 0, "numbers"),
    )
    asked = {"moments": MOMENTS, "numbers": (*MOMENTS, *NUMBERS), "texts": (*MOMENTS, *TEXTS)}
    aggregates = tuple(
        Aggregate(kind, index, window)
        for index, one in enumerate(series)
        for kind in asked[one.kind]
        for window in WINDOWS
    )
    # What counts labels has a plan of its own: its values are 1 and -1 alone.
    assert {aggregate.kind for aggregate in aggregates} == set(AGGREGATES) - set(LABELS)
    return make_plan(series, aggregates)


#: Every kind of aggregate over every kind of series and every window, two keys, two values.
EVERYTHING = _every_kind()

AMOUNTS = st.sampled_from([0.1, 0.2, 5, 5.0, -3.25, 1e15, 1e-9]) | st.floats(-1e6, 1e6) | st.integers(-9, 9)
WORDS = st.sampled_from(["a", "b", "", "ü", "1", "True"]) | st.sampled_from([1, 1.0, True, False, 0, 2.5])
KEYS = st.sampled_from(["x", "y", 1, True, None])


@st.composite
def observations(draw, keys=KEYS) -> Observation:
    return Observation(
        (draw(keys), draw(keys)),
        draw(st.integers(0, 2 ** len(EVERYTHING.series) - 1)),
        (
            draw(AMOUNTS | st.sampled_from([None, "no number", True, float("inf"), float("nan")])),
            draw(WORDS | st.sampled_from([None, float("nan")])),
        ),
    )
