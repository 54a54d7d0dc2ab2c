"""Aggregates of labels, held against a naive memory that keeps all of them; labels are taken back, too."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.velocity.engines import ENGINES, make_velocity
from tests.velocity.oracle import Oracle, agree
from tests.velocity.plans import HOUR, LABELS, MINUTE, make_plan
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Aggregate, Observation, Series

NOW = 1_600_000_000_000
DAY = 24 * HOUR
PLAN = make_plan(
    (Series(0, 0, "numbers"), Series(1, 0, "numbers"), Series(0, None, "moments")),
    (
        *(
            Aggregate(kind, index, window)
            for kind in LABELS
            for index in (0, 1)
            for window in (HOUR, 30 * DAY)
        ),
        Aggregate("count", 2, 30 * DAY),
    ),
)
EVENT, LABEL = 0b100, 0b011
KEYS = st.sampled_from(["x", "y", None])
STEPS = st.sampled_from([0, 1, MINUTE]) | st.integers(0, 40 * HOUR)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    st.lists(st.tuples(STEPS, KEYS, KEYS, st.sampled_from(["event", "label", "back"]), st.integers(0, 50)))
)
@settings(max_examples=60, deadline=None)
def test_labels_count_from_when_they_were_given_until_they_are_taken_back(engine, steps):
    velocity, oracle, now_ms = make_velocity(engine), Oracle(PLAN), NOW
    velocity.install("A", PLAN)
    given_labels: list[tuple[int, Observation]] = []
    for number, (gap_ms, one, other, what, which) in enumerate(steps):
        now_ms += gap_ms
        at_ms, seen = now_ms, Observation((one, other), LABEL if what == "label" else EVENT, (1.0,))
        if what == "label":
            given_labels.append((at_ms, seen))
        elif what == "back" and given_labels:
            at_ms, label = given_labels.pop(which % len(given_labels))
            seen = label._replace(values=(-1.0,))
        answer = velocity.observe("A", str(number), at_ms, seen)
        expected = oracle.observe("A", str(number), at_ms, seen)
        if what != "back":
            assert all(map(agree, answer.values, expected)), (answer, expected)


def test_a_snapshot_knows_which_labels_are_in_it():
    velocity = MemoryVelocity()
    velocity.install("A", PLAN)
    velocity.observe("A", "1", NOW, Observation(("x", "y"), LABEL, (1.0,)))
    velocity.note_labels("A", 17)
    velocity.load("B", PLAN, velocity.dump("A"))
    assert velocity.labels("B") == 17
    assert velocity.reached("B") == NOW
    assert velocity.observe("B", "2", NOW, Observation(("x", "y"), EVENT, (1.0,))).values[0] == 1.0


def test_a_memory_without_events_has_reached_no_moment():
    velocity = MemoryVelocity()
    assert velocity.reached("A") is None
    velocity.install("A", PLAN)
    assert velocity.reached("A") is None
