"""Start progress: what a start is doing, told to the log once it takes longer than people wait in silence."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

from vettance.telemetry.logs import logger

#: A start that is done by then needs no explanation.
TELL_S: Final = 5.0

_log = logger()


class StartProgress:
    """Knows the step that a start is at, and how many events that step has read."""

    def __init__(self) -> None:
        self._step = ""
        self._events = 0
        self._since_s = time.monotonic()

    def begin(self, step: str) -> None:
        """Take note of the step that begins now; `step` is read by people."""
        self._step, self._events, self._since_s = step, 0, time.monotonic()

    def count(self, events: int) -> None:
        """Take note of how many events the step has read."""
        self._events = events

    async def tell(self, every_s: float = TELL_S) -> None:
        """Log the step every so many seconds, for ever."""
        while True:
            await asyncio.sleep(every_s)
            seconds = int(time.monotonic() - self._since_s)
            _log.info("still_starting", step=self._step, seconds=seconds, events=self._events)


@contextlib.asynccontextmanager
async def reporting(progress: StartProgress, every_s: float = TELL_S) -> AsyncIterator[None]:
    """Tell of a start's progress while the block runs."""
    task = asyncio.create_task(progress.tell(every_s))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
