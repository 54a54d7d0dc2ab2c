"""Work that takes long at a time is spread out, and holders take turns."""

import asyncio
import sys
import time
from collections.abc import Iterator

import pytest
import uvloop

from vettance.errors import Unprocessable
from vettance.limits.loop_time import Pace
from vettance.web.routing import NO_KEY, NOBODY, Call


def slow_work(done: list[str], name: str, seconds: float) -> Iterator[None]:
    """Work of one step that keeps the loop for so long."""
    time.sleep(seconds)
    done.append(name)
    yield from ()


def failing_work() -> Iterator[None]:
    """Work that fails before its first step is over."""
    raise ValueError("bad")
    yield


def pace_without_credit(part: float = 0.5, part_of_one: float = 0.5) -> Pace:
    return Pace(part, part_of_one, credit_s=0)


async def test_holders_take_turns_whatever_each_has_waiting() -> None:
    pace, done = pace_without_credit(), list[str]()

    def run(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(pace.run_steps(name, slow_work(done, name, 0.002)))

    waiting = [run("loud") for _ in range(10)]
    await asyncio.sleep(0)
    waiting.append(run("quiet"))
    await asyncio.gather(*waiting)
    assert done.index("quiet") <= 2
    assert done.count("loud") == 10


async def test_the_loop_is_free_for_its_part_of_the_time() -> None:
    pace, done = pace_without_credit(part=0.1), list[str]()
    started = time.perf_counter()
    await asyncio.gather(*(pace.run_steps("one", slow_work(done, "one", 0.005)) for _ in range(5)))
    # Behind each but the last there is a pause nine times as long as the work.
    assert time.perf_counter() - started >= 0.95 * 5 * 0.005 / 0.1 * 4 / 5


async def test_one_holder_has_a_part_of_its_own_and_leaves_the_rest_to_others() -> None:
    pace = Pace(part=0.5, part_of_one=0.1, credit_s=0)
    started = time.perf_counter()

    async def spend(name: str) -> float:
        for _ in range(3):
            await pace.spend(name, 0.02)
        return time.perf_counter() - started

    loud = await asyncio.gather(*(spend("loud") for _ in range(2)), spend("quiet"))
    # Six times .02 s for the one, at a tenth of the time, three for the other; each waits but the first.
    assert max(loud[:2]) >= 0.95 * 5 * 0.02 / 0.1
    assert 0.95 * 2 * 0.02 / 0.1 <= loud[2] < max(loud[:2])


async def test_who_was_quiet_waits_for_nothing() -> None:
    pace = Pace(part=0.05, part_of_one=0.025, credit_s=0.01)
    waited: list[float] = []
    for _ in range(4):
        started = time.perf_counter()
        await pace.spend("one", 0.004)
        waited.append(time.perf_counter() - started)
    # The credit is used up by the third; the fourth waits until what is beyond it was paid for.
    assert max(waited[:3]) < 0.05
    assert waited[3] >= 0.95 * (3 * 0.004 - 0.01) / 0.025 - sum(waited[:3])


def test_turns_are_given_on_the_loop_of_the_service_too() -> None:
    """Its timers of moments that have passed are not those of asyncio."""

    async def crowd() -> None:
        pace = pace_without_credit(part=1, part_of_one=1)

        async def spend_again(holder: str) -> None:
            for _ in range(10):
                await pace.spend(holder, 0.0)
                await pace.spend(holder, 0.001)

        await asyncio.gather(*(spend_again(f"tenant {number % 3}") for number in range(9)))

    uvloop.run(crowd())


async def test_what_a_crowd_was_quiet_for_is_forgotten() -> None:
    pace = pace_without_credit(part=1, part_of_one=1)
    for number in range(3_000):
        await pace.spend(f"tenant {number}", 0.0)
    assert len(pace) <= 1_024


async def test_who_leaves_while_waiting_keeps_nobody_waiting() -> None:
    pace, done = pace_without_credit(), list[str]()
    first = asyncio.create_task(pace.run_steps("a", slow_work(done, "first", 0.005)))
    await asyncio.sleep(0)
    leaving = [asyncio.create_task(pace.spend("a", 0.0)) for _ in range(3)]
    staying = asyncio.create_task(pace.run_steps("b", slow_work(done, "stayed", 0)))
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    await asyncio.wait_for(staying, 5)
    await asyncio.gather(first, *leaving, return_exceptions=True)
    await pace.run_steps("c", slow_work(done, "next", 0))
    assert done == ["first", "stayed", "next"]


async def test_what_fails_gives_its_turn_away() -> None:
    pace, done = pace_without_credit(), list[str]()
    results = await asyncio.gather(
        pace.run_steps("a", failing_work()),
        pace.run_steps("a", slow_work(done, "second", 0)),
        pace.run_steps("b", slow_work(done, "third", 0)),
        return_exceptions=True,
    )
    assert str(results[0]) == "bad"
    assert sorted(done) == ["second", "third"]


def test_a_large_body_that_is_refused_is_held_by_nothing() -> None:
    body = b'{"a":' + b"[]," * 200_000 + b"[]}"
    before = sys.getrefcount(body)
    call = Call("req_1", {}, b"", {}, body, 0, NOBODY, NO_KEY)
    assert list(call.parse_ahead()) == []
    with pytest.raises(Unprocessable):
        call.json()
    # Calls are unknown to the collector: a circle through one would never be found.
    del call
    assert sys.getrefcount(body) == before
