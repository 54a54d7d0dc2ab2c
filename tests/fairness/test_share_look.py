"""A shared look: who asks is answered by a look that began after it asked, and those who wait share one."""

import asyncio

import pytest

from vettance.fairness.share_look import SharedLook


class Source:
    """Something that is read slowly, and fails when it is told to."""

    def __init__(self) -> None:
        self.value = self.seen = self.looks = 0
        self.fails = False
        self.shared = SharedLook(self.look)

    async def look(self) -> None:
        self.looks += 1
        found = self.value
        await asyncio.sleep(0.01)
        if self.fails:
            raise OSError
        self.seen = found


async def test_who_asks_during_a_look_waits_for_the_next_and_shares_it() -> None:
    source = Source()
    first = asyncio.create_task(source.shared.ask())
    await asyncio.sleep(0)
    source.value = 1  # The look under way has read it already.

    async def ask() -> int:
        await source.shared.ask()
        return source.seen

    assert await asyncio.gather(*(ask() for _ in range(20))) == [1] * 20
    await first
    assert source.looks == 2


async def test_a_look_that_fails_answers_nobody_else() -> None:
    source = Source()
    source.value, source.fails = 1, True
    asked = [asyncio.create_task(source.shared.ask()) for _ in range(3)]
    await asyncio.sleep(0.015)
    source.fails = False
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found] == [OSError, type(None), type(None)]
    assert source.seen == 1


async def test_one_who_gives_up_keeps_nobody_from_looking() -> None:
    source = Source()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await source.shared.ask()
    source.value = 1
    await source.shared.ask()
    assert source.seen == 1
