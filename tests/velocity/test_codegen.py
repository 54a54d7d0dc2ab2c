"""The functions written for a plan: whatever the plan, they answer as a naive memory does."""

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.velocity.oracle import Oracle
from tests.velocity.plans import HOUR, MINUTE, MOMENTS, NUMBERS, TEXTS, make_plan
from tests.velocity.test_memory import hold_equal
from vettance.velocity.memory import packed_record
from vettance.velocity.memory.busy_codegen import busy_source
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.memory.packed_codegen import packed_source
from vettance.velocity.memory.plan_codegen import read_source, write
from vettance.velocity.plan_layout import arrange
from vettance.velocity.port import Aggregate, Observation, Plan, Series

NOW = 1_790_000_000_000
ASKED = {"moments": MOMENTS, "numbers": (*MOMENTS, *NUMBERS), "texts": (*MOMENTS, *TEXTS)}


@st.composite
def plans(draw) -> Plan:
    """Plans whose series are asked different questions over windows of very different lengths."""
    kinds = draw(st.lists(st.sampled_from(sorted(ASKED)), min_size=1, max_size=5))
    values = {"moments": None, "numbers": 0, "texts": 1}
    series = tuple(Series(draw(st.integers(0, 1)), values[kind], kind) for kind in kinds)
    spans = st.sampled_from([500, MINUTE, 3 * MINUTE, HOUR, 30 * HOUR])
    aggregates = tuple(
        Aggregate(draw(st.sampled_from(ASKED[kind])), index, draw(spans))
        for index, kind in enumerate(kinds)
        for _ in range(draw(st.integers(0, 5)))
    )
    return make_plan((*series, Series(1, None, "moments")), aggregates)


@pytest.mark.parametrize("threshold", [0, 5, 200])
@given(plan=plans(), number=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_any_plan_is_answered_as_a_memory_that_keeps_everything_would(threshold, plan, number):
    seed = random.Random(number)
    before = packed_record.ENTRIES_MAX
    packed_record.ENTRIES_MAX = threshold
    try:
        velocity, oracle, now_ms = MemoryVelocity(), Oracle(plan), NOW
        velocity.install("A", plan)
        for index in range(80):
            now_ms += seed.choice([0, 1, 400, 30_000, 2 * MINUTE, seed.choice([0, 0, HOUR])])
            seen = Observation(
                (seed.choice("xy"), "z"),
                seed.randrange(2 ** len(plan.series)),
                (seed.choice([None, seed.uniform(-5, 900), 0.1]), seed.choice(["a", "ü", 1, True, None])),
            )
            late_ms = seed.choice([0, 0, 0, 900, 4 * MINUTE])
            hold_equal(velocity, oracle, "A", f"e{index}", now_ms - late_ms, seen)
    finally:
        packed_record.ENTRIES_MAX = before


def test_a_question_ahead_of_its_time_changes_no_later_answer():
    plan = make_plan((Series(0, 0, "numbers"),), (Aggregate("count", 0, MINUTE), Aggregate("sum", 0, MINUTE)))
    velocity, oracle = MemoryVelocity(), Oracle(plan)
    velocity.install("A", plan)
    for index in range(120):
        at_ms, mask = NOW + index * 900, 1
        if index % 10 == 9:
            # Five minutes ahead, and of no series: it only asks.
            at_ms, mask = at_ms + 5 * MINUTE, 0
        hold_equal(velocity, oracle, "A", f"e{index}", at_ms, Observation(("k",), mask, (index / 7,)))


def test_a_running_sum_of_tenths_is_as_exact_as_if_it_were_added_up_anew():
    plan = make_plan((Series(0, 0, "numbers"),), (Aggregate("sum", 0, HOUR),))
    velocity = MemoryVelocity()
    velocity.install("A", plan)
    for index in range(200):
        answer = velocity.observe("A", f"e{index}", NOW + index, Observation(("k",), 1, (0.1,)))
        assert answer == ((pytest.approx(index / 10, rel=1e-15),), 0)


def test_a_huge_amount_leaves_no_trace_in_a_sum_once_it_has_left_the_window():
    plan = make_plan((Series(0, 0, "numbers"),), (Aggregate("sum", 0, MINUTE), Aggregate("max", 0, MINUTE)))
    velocity, oracle = MemoryVelocity(), Oracle(plan)
    velocity.install("A", plan)
    for index in range(400):
        value = 1e290 if index % 100 == 50 else index / 3
        hold_equal(velocity, oracle, "A", f"e{index}", NOW + index * 1000, Observation(("k",), 1, (value,)))


def test_the_source_holds_no_text_of_a_plan():
    plan = make_plan((Series(0, 0, "texts"),), (Aggregate("seen", 0, HOUR), Aggregate("distinct", 0, MINUTE)))
    plan = plan._replace(keys=("key0__",), series_names=("__import__",), aggregate_names=("__import__",) * 2)
    layout = arrange(plan)
    (group,) = layout.groups
    for source in (read_source(layout), packed_source(group), busy_source(group)):
        assert "__" not in source
        assert "key0" not in source
    assert write(plan) is write(plan)
