"""Keys with more observations than are kept one by one: the error is bounded, and the answer says so."""

import random
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.velocity.engines import ENGINES, make_velocity, observe_all
from tests.velocity.oracle import Oracle, agree
from tests.velocity.plans import HOUR, MINUTE, make_plan
from vettance.velocity.memory import last_seen
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.memory.sub_buckets import BUCKETS
from vettance.velocity.port import Aggregate, Observation, Series

NOW = 1_600_000_000_000  # Nothing here may be ahead of the clock of Redis.
SPANS = (MINUTE, 10 * MINUTE, HOUR, 24 * HOUR)
NUMBER_KINDS = ("count", "sum", "avg", "min", "max", "distinct", "seen", "first_seen", "last_seen", "last")
PLAN = make_plan(
    (Series(0, 0, "numbers"), Series(0, 1, "texts"), Series(0, None, "moments")),
    tuple(
        Aggregate(kind, series, span)
        for series, kinds in enumerate(
            (NUMBER_KINDS, ("distinct", "seen", "count"), ("count", "first_seen", "last_seen"))
        )
        for kind in kinds
        for span in SPANS
    ),
)


def bounds(oracle, index, at_ms, seen, *, is_late):
    """Return what a count and the extremes may be when an edge of the window is off by one sub-bucket."""
    span = PLAN.aggregates[index].window_ms
    width = -(-span // BUCKETS)
    ahead = width if is_late else 0
    return oracle.inside("A", index, at_ms - span - width, at_ms + ahead, seen)


def check(oracle, index, at_ms, seen, mine, *, is_late):
    aggregate = PLAN.aggregates[index]
    true = oracle.ask("A", index, at_ms, seen)
    wide = bounds(oracle, index, at_ms, seen, is_late=is_late)
    values = [value for _, value in wide]
    if aggregate.kind == "count":
        assert true <= mine <= len(wide)
    elif aggregate.kind == "sum":
        assert true - 1e-6 <= mine <= sum(values) + 1e-6
    elif aggregate.kind == "min":
        assert min(values) <= mine <= true
    elif aggregate.kind == "max":
        assert true <= mine <= max(values)
    elif aggregate.kind == "avg":
        assert min(values) - 1e-9 <= mine <= max(values) + 1e-9
    elif aggregate.kind == "first_seen":
        assert true - span_s(aggregate) / BUCKETS - 1e-9 <= mine <= true + 1e-9
    elif aggregate.kind == "distinct":
        assert is_late
        assert mine <= true


def span_s(aggregate):
    return aggregate.window_ms / 1000


@pytest.mark.parametrize("pace_ms", [300, 4000, 60_000])
@pytest.mark.parametrize("late_ms", [0, 20_000])
@pytest.mark.parametrize(("engine", "seed"), [("memory", 0), ("memory", 1), ("redis", 2), ("cluster", 3)])
def test_beyond_the_raw_entries_a_window_is_off_by_one_sub_bucket_at_most(pace_ms, late_ms, engine, seed):
    draw = random.Random(seed)
    velocity, oracle = make_velocity(engine), Oracle(PLAN)
    velocity.install("A", PLAN)
    now_ms, newest_ms, inexact_seen = NOW, 0, 0
    unasked = []
    for step in range(1000):
        now_ms += (
            int(draw.expovariate(1 / pace_ms)) if draw.random() < 0.9 else draw.choice([0, 10 * pace_ms])
        )
        at_ms = now_ms - (draw.randrange(late_ms) if late_ms and draw.random() < 0.3 else 0)
        seen = Observation(("k",), 7, (draw.choice([1, 2.5, draw.random() * 99]), f"v{draw.randrange(30)}"))
        unasked.append((f"e{step}", at_ms, seen))
        is_late = at_ms < newest_ms
        newest_ms = max(newest_ms, at_ms)
        if step % 41 == 0 or step > 990 or (is_late and step % 7 == 0):
            answer = observe_all(velocity, "A", unasked)[-1]
            unasked = []
            for index, mine in enumerate(answer.values):
                if answer.inexact >> index & 1:
                    inexact_seen += 1
                    check(oracle, index, at_ms, seen, mine, is_late=is_late)
                else:
                    true = oracle.ask("A", index, at_ms, seen)
                    assert agree(mine, true), (PLAN.aggregates[index], mine, true)
        oracle.log.append(("A", at_ms, seen))
    assert inexact_seen or pace_ms != 4000


@pytest.mark.parametrize("engine", ENGINES)
def test_up_to_256_observations_every_answer_is_exact_and_says_so(engine):
    velocity, oracle = make_velocity(engine), Oracle(PLAN)
    velocity.install("A", PLAN)
    draw = random.Random(5)
    events = []
    for step in range(257):
        at_ms = NOW + step * 1000 - draw.choice([0, 0, 5000])
        events.append((f"e{step}", at_ms, Observation(("k",), 7, (draw.random(), f"v{draw.randrange(300)}"))))
    for step, answer in enumerate(observe_all(velocity, "A", events)):
        _, at_ms, seen = events[step]
        assert answer.inexact == 0
        if step % 16 == 0:
            for index, mine in enumerate(answer.values):
                assert agree(mine, oracle.ask("A", index, at_ms, seen)), PLAN.aggregates[index]
        oracle.log.append(("A", at_ms, seen))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(5))
def test_of_amounts_that_cancel_out_the_sum_is_exact_too(engine, seed):
    velocity, oracle, draw = make_velocity(engine), Oracle(PLAN), random.Random(seed)
    velocity.install("A", PLAN)
    sums = [index for index, aggregate in enumerate(PLAN.aggregates) if aggregate.kind in ("sum", "avg")]
    at_ms, taken_back = NOW, 0.0
    for step in range(256):
        at_ms += draw.choice([0, 700, 9000])
        # Now and then one far above all others, which the next one takes back.
        amount = -taken_back or draw.choice([0.1, 0.1, 3, 1e-9, 1e12, 1e15])
        taken_back = amount if amount >= 1e12 else 0.0
        seen = Observation(("k",), 1, (amount, "v"))
        answer = velocity.observe("A", f"e{step}", at_ms, seen)
        assert answer.inexact == 0
        for index in sums:
            assert agree(answer.values[index], oracle.ask("A", index, at_ms, seen)), PLAN.aggregates[index]
        oracle.log.append(("A", at_ms, seen))


def test_a_busy_key_that_falls_quiet_becomes_exact_again():
    plan = make_plan((Series(0, 0, "numbers"),), (Aggregate("count", 0, MINUTE), Aggregate("sum", 0, MINUTE)))
    velocity = MemoryVelocity()
    velocity.install("A", plan)
    for step in range(2000):
        busy = velocity.observe("A", f"e{step}", NOW + step * 50, Observation(("k",), 1, (1,)))
    assert busy.inexact == 3
    for step in range(3):
        at_ms = NOW + HOUR + step * 1000
        quiet = velocity.observe("A", f"q{step}", at_ms, Observation(("k",), 1, (0.5,)))
        assert quiet == ((step, step * 0.5), 0)
    (records,) = (keys.records for keys in velocity._memories["A"].keys)
    (busy_key,) = records.values()
    assert not busy_key[0].has_buckets
    assert busy_key[0].runs[0].buckets is None


def test_distinct_values_of_a_hot_key_are_counted_exactly_and_their_number_is_bounded(monkeypatch):
    monkeypatch.setattr(last_seen, "VALUES_MAX", 3000)
    plan = make_plan((Series(0, 0, "texts"),), (Aggregate("distinct", 0, HOUR), Aggregate("seen", 0, HOUR)))
    velocity = MemoryVelocity()
    velocity.install("A", plan)
    moments: dict[str, int] = {}
    for step in range(6000):
        at_ms, value = NOW + step * 10, f"v{step if step < 4000 else step % 100}"
        answer = velocity.observe("A", f"e{step}", at_ms, Observation(("k",), 1, (value,)))
        if step <= 3000:
            assert answer == ((step, False), 0)
        elif answer.inexact & 1:
            assert 2000 <= answer.values[0] <= len(moments)
        moments[value] = at_ms
    (busy_key,) = velocity._memories["A"].keys[0].records.values()
    assert len(busy_key[0].latest.of) <= 3000
    assert answer.inexact & 1


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3000)), max_size=200))
def test_the_latest_of_values_answers_as_a_scan_does(observed):
    kept, last = last_seen.LatestValues(), {}
    for value, at_ms in observed:
        kept.add(value, at_ms)
        last[value] = max(at_ms, last.get(value, -1))
        newest = max(last.values())
        for span in (1, 100, 2000):
            assert kept.distinct(newest - span, newest) == (
                sum(moment > newest - span for moment in last.values()),
                True,
            )
            assert kept.last_ms(value, newest - span, newest) == (last[value], True)
    kept.drop(1500)
    assert kept.of == {value: moment for value, moment in last.items() if moment > 1500}
    assert list(kept.moments) == sorted(kept.of.values())
    assert bisect_right(kept.moments, 1500) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_later_than_the_sub_buckets_reach_says_that_it_may_be_off(engine):
    plan = make_plan((Series(0, None, "moments"),), (Aggregate("count", 0, MINUTE),))
    velocity, oracle = make_velocity(engine), Oracle(plan)
    velocity.install("A", plan)
    seen = Observation(("k",), 1, ())
    events = [(f"e{step}", NOW + step * 250, seen) for step in range(8000)]
    observe_all(velocity, "A", events)
    oracle.log += [("A", at_ms, seen) for _, at_ms, seen in events]
    at_ms = events[-1][1]
    for seconds in range(30, 600, 15):
        late_ms = at_ms - seconds * 1000
        answer = velocity.observe("A", f"l{seconds}", late_ms, seen)
        true = oracle.ask("A", 0, late_ms, seen)
        oracle.log.append(("A", late_ms, seen))
        assert answer.inexact or answer.values[0] == true
        # Five minutes back, the allowance for an event that is ahead of the others, the buckets always reach.
        if seconds <= 300:
            assert true <= answer.values[0] <= true + 10
