"""A tenant's events are held back by one at a time, and none slips through between two."""

import asyncio

import pytest

from vettance.velocity.sync.drain_gate import DrainGate

TENANT = "ten_a"


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_whoever_holds_waits_for_those_under_way() -> None:
    turnstile = DrainGate()
    turnstile.enter(TENANT)
    turnstile.enter("ten_b")
    holding = asyncio.create_task(turnstile.hold(TENANT))
    await settle()
    assert not holding.done()
    turnstile.leave(TENANT)
    await asyncio.wait_for(holding, 5)
    assert not turnstile.is_open
    turnstile.let_go(TENANT)
    assert turnstile.is_open


async def test_two_who_hold_take_turns_and_both_get_theirs() -> None:
    turnstile = DrainGate()
    turnstile.enter(TENANT)
    first, second = (asyncio.create_task(turnstile.hold(TENANT)) for _ in range(2))
    await settle()
    turnstile.leave(TENANT)
    await asyncio.wait_for(first, 5)
    await settle()
    assert not second.done()
    turnstile.let_go(TENANT)
    await asyncio.wait_for(second, 5)
    turnstile.let_go(TENANT)
    assert turnstile.is_open


async def test_nothing_goes_through_between_two_who_hold() -> None:
    turnstile = DrainGate()
    told: list[str] = []

    async def event() -> None:
        async with asyncio.timeout(5):
            await turnstile.wait(TENANT)
        turnstile.enter(TENANT)
        await settle()
        told.append("stored")
        turnstile.leave(TENANT)

    async def holder() -> None:
        await turnstile.hold(TENANT)
        told.append("held")
        await settle()
        await settle()
        told.append("let go")
        turnstile.let_go(TENANT)

    first = asyncio.create_task(holder())
    await settle()
    await asyncio.gather(first, *(step() for step in (event, holder, event, holder, event)))
    assert told.count("stored") == told.count("held") == 3
    assert all(told[place + 1] == "let go" for place, word in enumerate(told) if word == "held")


async def test_who_gives_up_lets_everybody_through() -> None:
    turnstile = DrainGate()
    turnstile.enter(TENANT)
    holding = asyncio.create_task(turnstile.hold(TENANT))
    waiting = asyncio.create_task(turnstile.hold(TENANT))
    await settle()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    turnstile.leave(TENANT)
    await asyncio.wait_for(waiting, 5)
    waiting_too = asyncio.create_task(turnstile.hold(TENANT))
    await settle()
    waiting_too.cancel()
    await settle()
    turnstile.let_go(TENANT)
    assert turnstile.is_open
    await asyncio.wait_for(turnstile.hold(TENANT), 5)
