"""What computes for long leaves the loop to others, and to what is urgent first."""

import asyncio
import time

import pytest

from vettance.fairness.time_slice import DECISIONS, SLICE_S, TimeSlice, UrgentWork


async def test_what_is_urgent_goes_first_to_its_end() -> None:
    work, order = UrgentWork(), list[str]()

    async def urgent() -> None:
        with work:
            for number in range(3):
                order.append(f"urgent {number}")
                await asyncio.sleep(0)

    async def page() -> None:
        for number in range(2):
            await work.go_first()
            order.append(f"page {number}")

    await asyncio.gather(page(), urgent())
    assert order == ["urgent 0", "urgent 1", "urgent 2", "page 0", "page 1"]


async def test_nothing_waits_for_ever_and_what_failed_is_not_waited_for() -> None:
    work = UrgentWork()
    with work:
        await asyncio.wait_for(work.go_first(), 30)
    with pytest.raises(ZeroDivisionError), work:
        raise ZeroDivisionError
    turns = [0]

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await work.go_first()
    counting.cancel()
    assert turns[0] == 1, "one turn for the others, and no wait"


async def test_a_slice_lets_decisions_go_first_once_it_is_over() -> None:
    order: list[str] = []

    async def decision() -> None:
        with DECISIONS:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            order.append("decided")

    turn = TimeSlice()
    deciding = asyncio.create_task(decision())
    await turn.pause_when_over()
    assert not order, "a slice that is not over is not left"
    time.sleep(SLICE_S * 1.5)  # noqa: ASYNC251 - it computes
    await turn.pause_when_over()
    order.append("page")
    await deciding
    assert order == ["decided", "page"]
