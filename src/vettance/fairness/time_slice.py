"""Time slices: what computes for long on the event loop leaves it to others every millisecond."""

import asyncio
import time
from typing import Final

#: So long one request keeps others waiting. A large page takes 20 ms, and decisions should not wait for it.
SLICE_S: Final = 0.001


class TimeSlice:
    """Measures the time since the loop was last left to others; begins when it is made."""

    def __init__(self) -> None:
        self._began_s = time.perf_counter()

    async def pause_when_over(self) -> None:
        """Leave the loop to others if the slice is over, and begin the next one."""
        if time.perf_counter() - self._began_s > SLICE_S:
            await asyncio.sleep(0)
            self._began_s = time.perf_counter()
