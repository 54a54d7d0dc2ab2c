"""A clock that is hours ahead: what it dated so costs nobody else their velocity, in either engine."""

import time

import pytest

from tests.velocity.engines import ENGINES, make_velocity
from tests.velocity.oracle import Oracle, agree
from tests.velocity.plans import HOUR, MINUTE, make_plan
from tests.velocity.redis_processes import TENANT, processes, until
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Aggregate, Observation, Series

SPANS = (MINUTE, HOUR)
KINDS = ("count", "sum", "distinct", "seen")
PLAN = make_plan(
    (Series(0, 0, "numbers"), Series(1, None, "moments")),
    tuple(
        Aggregate(kind, series, span)
        for series, kinds in enumerate((KINDS, ("count",)))
        for kind in kinds
        for span in SPANS
    ),
)
COUNTING = make_plan((Series(0, None, "moments"),), (Aggregate("count", 0, MINUTE),))
MAX_AHEAD = 400 * 24 * HOUR


def clock_ms():
    return time.time_ns() // 1_000_000


def clocked(engine):
    return MemoryVelocity(now_ms=clock_ms) if engine == "memory" else make_velocity(engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before", [0, 3, 40, 200, 400])
@pytest.mark.parametrize("ahead_ms", [11 * MINUTE, 3 * HOUR, MAX_AHEAD])
def test_an_event_dated_by_a_clock_far_ahead_changes_no_answer_of_the_others(engine, before, ahead_ms):
    velocity, oracle, now_ms = clocked(engine), Oracle(PLAN), clock_ms()
    velocity.install("A", PLAN)
    moments = [now_ms - 20 * MINUTE + step * 2000 for step in range(before)]
    # Half a minute for the machine to get so far.
    after_ms = now_ms + MINUTE // 2
    moments += [now_ms + ahead_ms, after_ms, after_ms + 10, after_ms + 10, after_ms + 2 * MINUTE]
    for step, at_ms in enumerate(moments):
        seen = Observation((f"k{step % 2}" if before < 100 else "k", "all"), 3, (step % 7,))
        answer = velocity.observe("A", f"e{step}", at_ms, seen)
        counted_ms = at_ms
        if step == before:
            # Live it counts as of now; in a memory of one process as of the one before it.
            counted_ms = now_ms if engine != "memory" or not before else moments[step - 1]
        naive = oracle.observe("A", f"e{step}", counted_ms, seen)
        if step > before:
            for index, (mine, true) in enumerate(zip(answer.values, naive, strict=True)):
                is_exact = not answer.inexact >> index & 1
                assert not is_exact or agree(mine, true), (PLAN.aggregates[index], mine, true)
                assert is_exact or before >= 200
            assert answer.values[-1] >= step - before - 1


def test_a_process_whose_clock_was_hours_ahead_counts_again_when_it_is_right():
    now_ms = 1_790_000_000_000
    velocity = MemoryVelocity(now_ms=lambda: now_ms)
    velocity.install("A", COUNTING)
    seen = Observation(("k",), 1, ())
    velocity.observe("A", "e0", now_ms, seen)
    now_ms += 3 * HOUR
    velocity.observe("A", "e1", now_ms, seen)
    now_ms -= 3 * HOUR
    for step in range(3):
        now_ms += 1000
        answer = velocity.observe("A", f"l{step}", now_ms, seen)
        assert answer.values[0] >= step
        # What the wrong clock had it forget is not known any more, and it says so.
        assert answer.inexact


async def test_an_event_of_a_host_whose_clock_is_hours_ahead_is_seen_by_the_others_and_after_a_filling(
    tmp_path, server
):
    async with processes(tmp_path, server.url) as (one, other):
        await one.decide()
        await one.decide(waited_ms=-3 * HOUR)
        evaluated = await other.decide()
        assert await other.answers(evaluated) == [2]
        other.memory.follow_astray(TENANT)
        await until(lambda: not other.memory.astray)
        assert await one.answers(await one.decide()) == [3]
        assert await one.answers(await one.decide(waited_ms=-3 * HOUR)) == [4]
        assert await one.answers(await other.decide()) == [5]
