"""Pace: work that takes long at a time gets a small part of the loop's time, in turns by who asks for it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from vettance.fairness.time_slice import TimeSlice

#: The part of the loop's time that large bodies may take to be read: a megabyte of brackets keeps everybody
#: else waiting for tens of milliseconds, and must not do so often.
PART: Final = 0.05
#: What a byte of a large body takes of the loop before it is parsed: some twenty turns in which a megabyte is
#: read, put together and bounded (3 to 5 ms of processor measured; parsing a megabyte of text takes 0.5 ms).
RECEIPT_S: Final = 4e-9

Result = TypeVar("Result")
_END: Final = object()


class Pace:
    """Runs pieces of work one at a time; after each, the next waits so long that `part` of the time is taken.

    Holders (tenants) take turns, so that what one has waiting delays another by one piece of work.
    """

    def __init__(self, part: float = PART) -> None:
        self._pause = 1 / part - 1
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._free_at_s = 0.0
        self._is_taken = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, holder: str, work: Callable[[], Result], spent_s: float = 0.0) -> Result:
        """Do a piece of work when it is the holder's turn, and return what it returned. What it took of the
        loop's time already (`spent_s`) counts with what it takes now."""
        loop = await self._wait_for_turn(holder, spent_s)
        started_s = time.perf_counter()
        try:
            return work()
        finally:
            self._leave(loop, spent_s + time.perf_counter() - started_s)

    async def run_steps(self, holder: str, steps: Iterator[None], spent_s: float = 0.0) -> None:
        """Do work as `run` does, in steps: others have the loop in between, decisions first."""
        loop = await self._wait_for_turn(holder, spent_s)
        took_s, turn = spent_s, TimeSlice()
        try:
            while True:
                started_s = time.perf_counter()
                is_over = next(steps, _END) is _END
                took_s += time.perf_counter() - started_s
                if is_over:
                    return
                await turn.pause_when_over()
        finally:
            self._leave(loop, took_s)

    async def _wait_for_turn(self, holder: str, spent_s: float) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._is_taken or self._waiting or loop.time() < self._free_at_s:
            turn = loop.create_future()
            self._waiting.setdefault(holder, deque()).append(turn)
            self._look(loop)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(loop, spent_s)
                raise
        self._is_taken = True
        return loop

    def _leave(self, loop: asyncio.AbstractEventLoop, took_s: float) -> None:
        self._is_taken = False
        self._free_at_s = loop.time() + took_s * self._pause
        self._look(loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and not self._is_taken and self._timer is None:
            self._timer = loop.call_at(self._free_at_s, self._give_turn)

    def _give_turn(self) -> None:
        self._timer = None
        while self._waiting and not self._is_taken:
            holder = next(iter(self._waiting))
            turns = self._waiting.pop(holder)
            turn = turns.popleft()
            if turns:
                self._waiting[holder] = turns  # Behind all others.
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
