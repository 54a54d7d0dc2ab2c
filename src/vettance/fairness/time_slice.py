"""Time slices: what computes for long on the event loop leaves it to others, and to decisions first."""

import asyncio
import time
from types import TracebackType
from typing import Final

#: So long one request keeps others waiting. A large page takes 20 ms, and decisions should not wait for it.
SLICE_S: Final = 0.001
#: How long what can wait lets decisions go first, each time; one takes 4 ms on a quiet machine.
GIVE_WAY_S_MAX: Final = 0.008
_LOOK_S: Final = 0.001


class UrgentWork:
    """Counts what is under way in this process for which a customer waits: a block of it is urgent."""

    def __init__(self) -> None:
        self._under_way = 0

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._under_way -= 1

    async def go_first(self) -> None:
        """Leave the loop to others, and for at most `GIVE_WAY_S_MAX` until nothing urgent is under way.

        A decision comes back to the loop five times: if something computed for a slice each time, it would
        take twice as long.
        """
        await asyncio.sleep(0)
        if self._under_way:
            until_s = time.perf_counter() + GIVE_WAY_S_MAX
            while self._under_way and time.perf_counter() < until_s:  # noqa: ASYNC110 - events cost decisions more
                await asyncio.sleep(_LOOK_S)


#: Decisions of this process, which pages and the like let go first.
DECISIONS: Final = UrgentWork()


class TimeSlice:
    """Measures the time since the loop was last left to others; begins when it is made."""

    def __init__(self) -> None:
        self._began_s = time.perf_counter()

    async def pause_when_over(self) -> None:
        """Leave the loop to others if the slice is over, decisions first, and begin the next one."""
        if time.perf_counter() - self._began_s > SLICE_S:
            await DECISIONS.go_first()
            self._began_s = time.perf_counter()
