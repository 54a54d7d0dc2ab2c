"""Reads a log in the order of the events' own time, for imports that are decided as of that time."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from vettance.db.engine import Row, Statement, Store, still_asked

#: Places read at a time: two numbers each.
_PLACES: Final = 20_000
#: Events read at a time: some milliseconds of the thread that decides.
_CHUNK: Final = 128


class TimedLog(NamedTuple):
    """How a log is asked for the places of a span of time, and for the events at some places."""

    select_moments: Callable[[str, int, int, tuple[int, int], int], Statement]
    select_rows: Callable[[str, Sequence[int]], Statement]


class LogByTime:
    """The events of a tenant's log up to a place, in the order of their own time.

    Those of one moment come in the order of the log. Of each event sixteen bytes are kept, the rest is read
    when its turn comes.
    """

    def __init__(self, store: Store, log: TimedLog, tenant: str, base: int, span: tuple[int, int]) -> None:
        """`span` is the first and the last moment (Unix milliseconds) of the events that are wanted."""
        self._store = store
        self._log = log
        self._tenant = tenant
        self._base = base
        self._span = span
        self._order: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = None
        self._next = 0
        self._ahead: deque[tuple[int, Row]] = deque()

    async def until(self, at_ms: int) -> AsyncIterator[Row]:
        """Yield the events up to a moment that have not been yielded yet."""
        if self._order is None:
            self._order = await self._arrange()
        moments = self._order[0]
        while True:
            while self._ahead and self._ahead[0][0] <= at_ms:
                yield self._ahead.popleft()[1]
            if self._ahead or self._next >= len(moments) or moments[self._next] > at_ms:
                return
            await self._read_ahead(*self._order)

    async def _arrange(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the moments and the places of all events, in the order of the moments."""
        found = [np.empty((0, 2), np.int64)]
        after = 0
        while rows := await self._store.read(
            self._log.select_moments(self._tenant, after, self._base, self._span, _PLACES)
        ):
            found.append(np.array(rows, np.int64))
            after = rows[-1][0]

        def ordered() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
            seqs, moments = np.concatenate(found).T
            order = np.lexsort((seqs, moments))
            return moments[order], seqs[order]

        return await asyncio.to_thread(ordered)

    async def _read_ahead(self, moments: np.ndarray[Any, Any], seqs: np.ndarray[Any, Any]) -> None:
        end = self._next + _CHUNK
        wanted: list[int] = seqs[self._next : end].tolist()
        found = await self._store.read(self._log.select_rows(self._tenant, wanted))
        missing = set(still_asked(wanted, found))
        if wanted[0] in missing:
            # A piece has rows in any order, and this one comes first.
            found += await self._store.read(self._log.select_rows(self._tenant, wanted[:1]))
            missing.discard(wanted[0])
        rows = {row[0]: row for row in found}
        for moment, seq in zip(moments[self._next : end].tolist(), wanted, strict=True):
            if seq in missing:
                break
            # What retention has removed meanwhile is left out.
            if seq in rows:
                self._ahead.append((moment, rows[seq]))
            self._next += 1
