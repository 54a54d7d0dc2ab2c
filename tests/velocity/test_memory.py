"""The engines, held against a naive one that keeps everything."""

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.velocity.engines import ENGINES, make_velocity
from tests.velocity.oracle import Oracle, agree
from tests.velocity.plans import EVERYTHING, HOUR, MINUTE, make_plan, observations
from vettance.velocity.memory import packed_record
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Aggregate, Observation, Series

NOW = 1_600_000_000_000  # Nothing here may be ahead of the clock of Redis.


def hold_equal(velocity, oracle, tenant, event_id, at_ms, seen):
    answer = velocity.observe(tenant, event_id, at_ms, seen)
    hold_answer_equal(answer, oracle, oracle.observe(tenant, event_id, at_ms, seen))


def hold_answer_equal(answer, oracle, naive):
    for mine, expected, name, aggregate in zip(
        answer.values, naive, oracle.plan.aggregate_names, oracle.plan.aggregates, strict=True
    ):
        assert agree(mine, expected), (name, aggregate, mine, expected)
    assert answer.inexact == 0


# No later than the allowance for late events: the answers must be as if nothing was ever forgotten.
STEPS = st.sampled_from([0, 0, 1, 500, 1000, 61_000, 10 * MINUTE, HOUR]) | st.integers(0, 30 * HOUR)
LATENESS = st.sampled_from([0, 0, 0, 1, 999, MINUTE]) | st.integers(0, 50 * MINUTE)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    st.lists(
        st.tuples(st.sampled_from("AB"), STEPS, LATENESS, observations(), st.integers(0, 40)), max_size=60
    )
)
@settings(max_examples=60, deadline=None)
def test_every_answer_equals_that_of_a_memory_that_keeps_everything(engine, events):
    velocity, oracle, now_ms = make_velocity(engine), Oracle(EVERYTHING), NOW
    for tenant in "AB":
        velocity.install(tenant, EVERYTHING)
    first = {}
    for step_ms, (tenant, gap_ms, late_ms, said, number) in enumerate(events):
        now_ms += gap_ms
        event_id, at_ms, seen = str(number or f"only-{step_ms}"), now_ms - late_ms, said
        # Some ids come again, and then neither time nor content count; but Redis wants to be told the same.
        if engine != "memory":
            at_ms, seen = first.setdefault((tenant, event_id), (at_ms, seen))
        hold_equal(velocity, oracle, tenant, event_id, at_ms, seen)


@pytest.mark.parametrize("threshold", [0, 3, 200])
@given(st.lists(st.tuples(STEPS, LATENESS, observations()), max_size=60))
@settings(max_examples=20, deadline=None)
def test_a_look_answers_as_of_the_moment_reached_and_leaves_no_trace(threshold, events):
    velocity, oracle, now_ms = MemoryVelocity(), Oracle(EVERYTHING), NOW
    velocity.install("A", EVERYTHING)
    before = packed_record.ENTRIES_MAX
    packed_record.ENTRIES_MAX = threshold
    try:
        for step, (gap_ms, late_ms, seen) in enumerate(events):
            if (reached_ms := velocity.reached("A")) is not None:
                answer = velocity.look("A", reached_ms, seen)
                naive = [
                    oracle.ask("A", index, reached_ms, seen) for index in range(len(EVERYTHING.aggregates))
                ]
                hold_answer_equal(answer, oracle, naive)
            now_ms += gap_ms
            hold_equal(velocity, oracle, "A", str(step), now_ms - late_ms, seen)
    finally:
        packed_record.ENTRIES_MAX = before


@pytest.mark.parametrize("threshold", [0, 1, 3, 32, 200])
@given(number=st.integers(0, 2**32))
@settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_a_key_answers_alike_before_and_after_it_becomes_busy(threshold, number):
    seed = random.Random(number)
    before = packed_record.ENTRIES_MAX
    packed_record.ENTRIES_MAX = threshold
    try:
        velocity, oracle, now_ms = MemoryVelocity(), Oracle(EVERYTHING), NOW
        velocity.install("A", EVERYTHING)
        for index in range(120):
            now_ms += seed.choice([0, 1, 700, 40_000, HOUR])
            seen = Observation(
                (seed.choice("xy"), "z"),
                seed.randrange(128),
                (seed.choice([None, seed.uniform(-5, 900), 7]), seed.choice(["a", "b", 1, True, None])),
            )
            hold_equal(
                velocity, oracle, "A", f"e{index}", now_ms - seed.choice([0, 0, 900, 5 * MINUTE]), seen
            )
    finally:
        packed_record.ENTRIES_MAX = before


@pytest.mark.parametrize("engine", ENGINES)
def test_the_hundredth_of_simultaneous_events_sees_ninety_nine(engine):
    velocity = make_velocity(engine)
    velocity.install(
        "A", make_plan((Series(0, None, "moments"),), (Aggregate("count", 0, 1), Aggregate("count", 0, HOUR)))
    )
    for before in range(300):
        answer = velocity.observe("A", f"e{before}", NOW, Observation(("ip",), 1, ()))
        assert answer.values == (before, before)
        assert answer.inexact == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_tenants_never_see_each_other(engine):
    velocity = make_velocity(engine)
    plan = make_plan((Series(0, 0, "texts"),), (Aggregate("count", 0, HOUR), Aggregate("seen", 0, HOUR)))
    for tenant in "AB":
        velocity.install(tenant, plan)
    seen = Observation(("k",), 1, ("v",))
    velocity.observe("A", "e1", NOW, seen)
    assert velocity.observe("B", "e1", NOW, seen).values == (0, False)
    assert velocity.observe("A", "e2", NOW, seen).values == (1, True)
    velocity.uninstall("A")
    with pytest.raises(KeyError):
        velocity.observe("A", "e3", NOW, seen)
    assert velocity.observe("B", "e3", NOW, seen).values == (1, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_installing_a_plan_begins_anew_and_adopting_takes_over_what_was_filled_aside(engine):
    velocity = make_velocity(engine)
    plan = make_plan((Series(0, None, "moments"),), (Aggregate("count", 0, HOUR),))
    velocity.install("A", plan)
    seen = Observation(("k",), 1, ())
    velocity.observe("A", "e1", NOW, seen)
    velocity.install("A#the_next", plan)
    for index in range(5):
        velocity.observe("A#the_next", f"c{index}", NOW, seen)
    velocity.adopt("A", "A#the_next")
    assert velocity.observe("A", "e2", NOW, seen).values == (5,)
    velocity.install("A", plan)
    assert velocity.observe("A", "e3", NOW, seen).values == (0,)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_that_asks_the_impossible_is_refused(engine):
    velocity = make_velocity(engine)
    for kind, series in (("sum", "moments"), ("sum", "texts"), ("seen", "moments"), ("median", "numbers")):
        with pytest.raises(ValueError):
            velocity.install("A", make_plan((Series(0, 0, series),), (Aggregate(kind, 0, HOUR),)))


@pytest.mark.parametrize("engine", ENGINES)
def test_more_series_on_one_key_than_a_packed_entry_has_bits_for_are_all_answered(engine):
    series = tuple(Series(0, None, "moments") for _ in range(47))
    plan = make_plan(series, tuple(Aggregate("count", index, HOUR) for index in range(47)))
    velocity, oracle = make_velocity(engine), Oracle(plan)
    velocity.install("A", plan)
    for index in range(60):
        seen = Observation(("k",), 0x5A5A_1234_9876_F0F0 * (index + 1) & 2**47 - 1, ())
        hold_equal(velocity, oracle, "A", f"e{index}", NOW + index, seen)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_event_five_minutes_ahead_changes_no_answer_of_the_others(engine):
    plan = make_plan(
        (Series(0, 0, "numbers"),), (Aggregate("count", 0, MINUTE), Aggregate("sum", 0, 10 * MINUTE))
    )
    velocity, oracle = make_velocity(engine), Oracle(plan)
    velocity.install("A", plan)
    for index in range(200):
        at_ms = NOW + index * 7000 + (5 * MINUTE if index == 90 else 0)
        hold_equal(velocity, oracle, "A", f"e{index}", at_ms, Observation(("k",), 1, (index,)))


def test_an_event_later_than_what_is_kept_is_answered_as_inexact_and_not_recorded():
    plan = make_plan((Series(0, None, "moments"),), (Aggregate("count", 0, MINUTE),))
    velocity = MemoryVelocity()
    velocity.install("A", plan)
    seen = Observation(("k",), 1, ())
    velocity.observe("A", "e0", NOW, seen)
    late = velocity.observe("A", "e1", NOW - 12 * MINUTE, seen)
    assert late.values == (0,)
    assert late.inexact == 1
    assert velocity.size("A").entries == 1


def test_keys_that_have_wholly_expired_are_forgotten_along_the_way():
    plan = make_plan(
        (Series(0, None, "moments"), Series(1, 0, "texts")),
        (Aggregate("count", 0, MINUTE), Aggregate("distinct", 1, HOUR)),
    )
    velocity = MemoryVelocity()
    velocity.install("A", plan)
    largest = 0
    for index in range(30_000):
        seen = Observation((f"k{index}", f"k{index % 7}"), 3, (f"v{index}",))
        velocity.observe("A", f"e{index}", NOW + index * 1000, seen)
        largest = max(largest, velocity.size("A").keys)
    # A minute and its allowance of ten are 660 keys; a pass of the sweep at most doubles that.
    assert largest < 2 * 660 + 200
    while velocity.sweep("A", 1000):
        pass
    assert velocity.size("A").entries >= 660
    velocity.install("A", plan)
    assert velocity.size("A") == (0, 0, 0)


def test_the_size_is_that_of_what_is_really_remembered():
    velocity = MemoryVelocity()
    velocity.install("A", EVERYTHING)
    for index in range(3000):
        seen = Observation((f"k{index % 40}", "hot"), 127, (index % 9, f"v{index % 11}"))
        velocity.observe("A", f"e{index}", NOW + index * 4000, seen)
    entries = 0
    for keys in velocity._memories["A"].keys:
        for record in keys.records.values():
            if isinstance(record, bytes):
                entries += record[0]
            else:
                entries += sum(len(series.moments) for series in record if series is not None)
    size = velocity.size("A")
    assert size.entries == entries
    assert size.keys == 41
    assert size.bytes > 8 * entries
