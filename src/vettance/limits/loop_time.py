"""Pace: work that takes long at a time gets a small part of the loop's time, in turns by who asks for it."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from vettance.fairness.time_slice import TimeSlice

#: The part of the loop's time that large bodies may take to be received and read: a megabyte of brackets
#: keeps everybody else waiting for milliseconds, and must not do so often.
PART: Final = 0.05
#: The part that one tenant may take. Together with what else such a tenant costs it stays below the twentieth
#: from which on the slowest twentieth of another's answers (their p95) would show it.
PART_OF_ONE: Final = 0.025
#: Loop time that who was quiet has left: a body as large as may be and its parsing wait for nothing.
CREDIT_S: Final = 0.008
#: What a byte of a large body takes of the loop before it is parsed: some twenty turns in which a megabyte is
#: read, put together and bounded (3 to 5 ms of processor measured; parsing a megabyte of text takes 0.5 ms).
RECEIPT_S: Final = 4e-9

_HOLDERS_KEPT: Final = 1024
_END: Final = object()


class Pace:
    """Runs pieces of work one at a time, so that they take `part` of the time, `part_of_one` for each holder.

    Holders (tenants) take turns. What one has waiting delays another by one piece of work; who was quiet for
    long enough has `credit_s` of the loop's time at once.
    """

    def __init__(
        self, part: float = PART, part_of_one: float = PART_OF_ONE, credit_s: float = CREDIT_S
    ) -> None:
        self._all = _Share(part, credit_s)
        self._part_of_one, self._credit_s = part_of_one, credit_s
        self._shares: dict[str, _Share] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_taken = False
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at_s = math.inf

    def __len__(self) -> int:
        """Return of how many holders it is known what they have taken."""
        return len(self._shares)

    async def run_steps(self, holder: str, steps: Iterator[None]) -> None:
        """Do a piece of work when it is the holder's turn.

        Between its steps others have the loop, decisions first.
        """
        loop = await self._wait_for_turn(holder)
        took_s, turn = 0.0, TimeSlice()
        try:
            while True:
                started_s = time.perf_counter()
                is_over = next(steps, _END) is _END
                took_s += time.perf_counter() - started_s
                if is_over:
                    return
                await turn.pause_when_over()
        finally:
            self._leave(loop, holder, took_s)

    async def spend(self, holder: str, spent_s: float) -> None:
        """Count what is about to be taken of the loop's time, when it is the holder's turn."""
        self._leave(await self._wait_for_turn(holder), holder, spent_s)

    def settle(self, holder: str, more_s: float) -> None:
        """Count so much more than was spent, or less if it is negative, without a wait."""
        loop = asyncio.get_running_loop()
        self._take(holder, loop.time(), more_s)
        self._look(loop)

    async def _wait_for_turn(self, holder: str) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._is_taken or holder in self._waiting or loop.time() < self._free_at_s(holder):
            turn = loop.create_future()
            self._waiting.setdefault(holder, deque()).append(turn)
            self._look(loop)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(loop, holder, 0.0)
                raise
        self._is_taken = True
        return loop

    def _free_at_s(self, holder: str) -> float:
        own = self._shares.get(holder)
        return self._all.free_at_s if own is None else max(self._all.free_at_s, own.free_at_s)

    def _leave(self, loop: asyncio.AbstractEventLoop, holder: str, took_s: float) -> None:
        self._is_taken = False
        self._take(holder, loop.time(), took_s)
        self._look(loop)

    def _take(self, holder: str, now_s: float, took_s: float) -> None:
        own = self._shares.get(holder)
        if own is None:
            if len(self._shares) >= _HOLDERS_KEPT:
                self._shares = {name: one for name, one in self._shares.items() if not one.is_whole(now_s)}
            own = self._shares[holder] = _Share(self._part_of_one, self._credit_s)
        own.take(now_s, took_s)
        self._all.take(now_s, took_s)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that the next of those who wait has its turn as soon as there is time for it."""
        if not self._waiting or self._is_taken:
            return
        at_s = min(map(self._free_at_s, self._waiting))
        if self._timer is not None:
            if self._looks_at_s <= at_s:
                return
            self._timer.cancel()
        self._looks_at_s, self._timer = at_s, loop.call_at(at_s, self._give_turn, loop)

    def _give_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = loop.time()
        holder = next((name for name in self._waiting if self._free_at_s(name) <= now_s), None)
        if holder is not None and not self._is_taken:
            turns = self._waiting.pop(holder)
            turn = turns.popleft()
            if turns:
                self._waiting[holder] = turns  # Behind all others.
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
        self._look(loop)


class _Share:
    """A part of the loop's time, and the moment from which on some of it is left."""

    __slots__ = ("_credit_s", "_stretch", "free_at_s")

    def __init__(self, part: float, credit_s: float) -> None:
        self._stretch = 1 / part
        self._credit_s = credit_s * self._stretch
        self.free_at_s = -math.inf

    def take(self, now_s: float, took_s: float) -> None:
        """Take what was used up until now."""
        self.free_at_s = max(self.free_at_s, now_s - took_s - self._credit_s) + took_s * self._stretch

    def is_whole(self, now_s: float) -> bool:
        """Tell whether all of the credit is there again, as if nothing had ever been taken."""
        return self.free_at_s + self._credit_s <= now_s
