"""The capacity model: queues behave as theory says, and plans follow from the costs they are given."""

import random

import pytest

from bench.scaling.capacity import Plan, parts_of, plan
from bench.scaling.queue_simulation import PATIENCE_S, Failure, Parts, simulate

RNG = random.Random(7)
#: Service times of a mean of 10 ms that have no memory, so that one process is a queue M/M/1.
EXPONENTIAL = [RNG.expovariate(100.0) for _ in range(50_000)]
ONE = Parts(webs=1, shards=0, web_s=EXPONENTIAL, redis_s=0.0, commit_fixed_s=0.0, commit_write_s=0.0)
COSTS = {
    "kinds": {
        "evaluate": {
            "web": 200.0,
            "postgres": 100.0,
            "redis": 50.0,
            "sentBytes": 1_000.0,
            "storedBytes": 2_000.0,
            "loggedBytes": 3_000.0,
        },
        "look": {"web": 1_000.0},
    },
    "commit": {"fixedMs": 1.0, "writeMs": 0.1},
    "evaluateAloneMs": [1.0, 2.0, 3.0],
    "readyS": 3.0,
    "webMb": 100.0,
}


@pytest.mark.parametrize("busy", [0.3, 0.6, 0.8])
def test_one_process_is_as_slow_as_queueing_theory_says(busy: float) -> None:
    run = simulate(ONE, busy * 100, 1_000)
    mean_s = sum(took for _, took in run.latencies) / len(run.latencies)
    assert mean_s == pytest.approx(0.01 / (1 - busy), rel=0.2)  # M/M/1: service / (1 - utilisation).


def test_commits_take_more_at_a_time_the_more_there_are() -> None:
    parts = ONE._replace(webs=50, web_s=[0.001], commit_fixed_s=0.004, commit_write_s=0.0001)
    for rate in (100, 5_000):  # One by one it would bear 240 a second.
        run = simulate(parts, rate, 5)
        assert run.refused == 0
        assert run.quantile_ms(0.99) < 40


@pytest.mark.parametrize("part", ["web", "redis", "database"])
def test_every_request_is_answered_or_refused_whatever_fails(part: str) -> None:
    parts = Parts(2, 2, [0.002], 0.0001, 0.002, 0.0001)
    for lasts_s in (2.0, 2 * PATIENCE_S):
        calm = simulate(parts, 120, 40)
        run = simulate(parts, 120, 40, [Failure(part, 10, lasts_s)])
        assert len(calm.latencies) == pytest.approx(120 * 40, rel=0.05)
        assert len(run.latencies) + run.refused == pytest.approx(120 * 40, rel=0.05)
        assert all(took <= PATIENCE_S for _, took in run.latencies)
        assert (run.refused > 0) == (part != "web" and lasts_s > PATIENCE_S)
        if not run.refused:
            assert run.quantile_ms(0.99, 10, 11) > calm.quantile_ms(0.99, 10, 11)


def test_a_plan_has_enough_of_each_part_and_says_what_is_first_beyond_its_bound() -> None:
    others = {"look": 0.1}
    made = plan(COSTS, 5_000, 0.5, 30, others)
    numbers = {part.name: part.number for part in made.parts}
    assert (made.cells, made.breaks_first) == (1, "commits")
    assert numbers == {"web": 3, "redis": 1, "postgres": 1, "commits": 1}  # 5,000 × 300 µs at half: 3.
    assert made.stored_gb_day == pytest.approx(2_000 * 86_400 * 2_000 / 1e9)
    assert plan(COSTS, 50_000, 0.5, 30, others).cells == 10  # One database commits 5,000 a second at half.


def test_a_plan_without_a_shared_store_has_one_process_in_each_cell() -> None:
    own = {**COSTS, "kinds": {"evaluate": {"web": 400.0, "writer": 100.0, "sentBytes": 1.0}}}
    made: Plan = plan(own, 10_000, 0.5, 30, {})
    assert made.cells == 8  # One process decides 1,250 a second at half.
    assert {part.name: part.number for part in made.parts}["web"] == 1
    assert parts_of(own, made, {}).shards == 0
