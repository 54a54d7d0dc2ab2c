"""Work that takes long at a time is spread out, and holders take turns."""

import asyncio
import sys
import time

import pytest

from vettance.errors import Unprocessable
from vettance.limits.loop_time import Pace
from vettance.web.routing import NO_KEY, NOBODY, Call


async def test_holders_take_turns_whatever_each_has_waiting() -> None:
    pace, done = Pace(part=0.5), []

    def work(name: str) -> None:
        time.sleep(0.002)
        done.append(name)

    waiting = [asyncio.create_task(pace.run("loud", lambda: work("loud"))) for _ in range(10)]
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(pace.run("quiet", lambda: work("quiet")))]
    await asyncio.gather(*waiting)
    assert done.index("quiet") <= 2
    assert done.count("loud") == 10


async def test_the_loop_is_free_for_its_part_of_the_time() -> None:
    pace = Pace(part=0.1)
    started = time.perf_counter()
    worked = [0.0]

    def work() -> None:
        begun = time.perf_counter()
        time.sleep(0.005)
        worked[0] += time.perf_counter() - begun

    await asyncio.gather(*(pace.run("one", work) for _ in range(5)))
    # Behind each but the last there is a pause nine times as long as the work.
    assert time.perf_counter() - started >= 0.8 * 9 * worked[0] * 4 / 5


async def test_what_was_spent_before_counts_too() -> None:
    pace = Pace(part=0.5)
    started = time.perf_counter()
    for _ in range(3):
        await pace.run("one", lambda: None, 0.05)
    # Each but the last is followed by a pause as long as what was spent.
    assert time.perf_counter() - started >= 0.1


async def test_who_leaves_while_waiting_keeps_nobody_waiting() -> None:
    pace = Pace(part=0.5)
    first = asyncio.create_task(pace.run("a", lambda: time.sleep(0.005)))
    await asyncio.sleep(0)
    leaving = [asyncio.create_task(pace.run("a", lambda: "left")) for _ in range(3)]
    staying = asyncio.create_task(pace.run("b", lambda: "stayed"))
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    assert await asyncio.wait_for(staying, 5) == "stayed"
    await asyncio.gather(first, *leaving, return_exceptions=True)
    assert await pace.run("c", lambda: "next") == "next"


async def test_what_fails_gives_its_turn_away() -> None:
    pace = Pace(part=0.5)

    def fail() -> None:
        raise ValueError("bad")

    results = await asyncio.gather(
        pace.run("a", fail), pace.run("a", lambda: 1), pace.run("b", lambda: 2), return_exceptions=True
    )
    assert [str(results[0]), *results[1:]] == ["bad", 1, 2]


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
