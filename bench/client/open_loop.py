"""An open-loop HTTP load client: requests go out when they are due, whatever became of earlier ones.

Latencies count from the moment a request was due, so that a service that stalls is charged for everybody who
would have come meanwhile (G. Tene's "coordinated omission").
"""

import asyncio
import contextlib
import itertools
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vettance.demo.demo_client import HttpAnswer, HttpConnection

SETTLE_S = 20.0  # How long answers may still come in after the last request.
WAITING_MAX = 20_000  # Requests that are due and find no free connection.


class Ask(NamedTuple):
    """One request: what kind it is counted under, its bytes, and what is called with its answer."""

    kind: str
    content: bytes
    observe: Callable[[int, bytes], None] | None = None


class OpenLoop:
    """A pool of kept connections that sends what is due, and counts the answers by kind."""

    def __init__(self, host: str, port: int, connections: int = 32) -> None:
        self._address = (host, port)
        self._connections = connections
        self._idle: list[Line] = []
        self._due: deque[tuple[float, Ask]] = deque()
        self._ending = False
        self._settled = asyncio.Event()
        self._opening: set[asyncio.Task[None]] = set()
        self.open = 0
        #: Milliseconds from due to answered, and statuses (0: the connection broke), by kind.
        self.latencies_ms: defaultdict[str, list[float]] = defaultdict(list)
        self.statuses: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.sent = 0

    async def run(self, asks: Iterable[Ask], rate: float, seconds: float) -> None:
        """Send `rate` requests a second for so long, then wait for the answers."""
        now = time.perf_counter
        self.open = self._connections
        for _ in range(self._connections):
            await self._connect()
        start, source = now(), iter(asks)
        for number in itertools.count():
            due = start + number / rate
            if due >= start + seconds:
                break
            if (early := due - now()) > 0:
                await asyncio.sleep(early)
            if len(self._due) < WAITING_MAX:
                self._due.append((due, next(source)))
                self.sent += 1
                self._send()
        self._ending = True
        self._settle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                await self._settled.wait()
        self._settled.set()
        for line in self._idle:
            line.close()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, line = await loop.create_connection(lambda: Line(self), *self._address)
        except OSError:
            self.open -= 1
            self._settle()
            return
        self._idle.append(line)
        self._send()

    def _send(self) -> None:
        while self._due and self._idle:
            due, ask = self._due.popleft()
            self._idle.pop().ask(due, ask)
        self._settle()

    def _settle(self) -> None:
        if not self._ending:
            return
        if not self.open:  # Nobody is left to ask what is still due.
            while self._due:
                self.note(*self._due.popleft(), 0)
        if not self._due and len(self._idle) >= self.open:
            self._settled.set()

    def answered(self, line: "Line", due: float, ask: Ask, answer: HttpAnswer) -> None:
        """Count an answer and give the connection its next request."""
        self.note(due, ask, answer.status)
        self._idle.append(line)
        if ask.observe is not None:
            ask.observe(answer.status, answer.body)
        self._send()

    def note(self, due: float, ask: Ask, status: int) -> None:
        """Count how a request ended; 0 is a connection that broke."""
        self.latencies_ms[ask.kind].append((time.perf_counter() - due) * 1000)
        self.statuses[ask.kind][status] += 1

    def lost(self, line: "Line") -> None:
        """Open another connection instead of one that was closed."""
        if line in self._idle:
            self._idle.remove(line)
        if not self._settled.is_set():
            opening = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    def forget(self) -> None:
        """Begin to count anew."""
        self.latencies_ms.clear()
        self.statuses.clear()


class Line(HttpConnection):
    """One connection of the pool."""

    def __init__(self, pool: OpenLoop) -> None:
        super().__init__()
        self._pool = pool
        self._asked: tuple[float, Ask] | None = None

    def ask(self, due: float, ask: Ask) -> None:
        """Send what is due."""
        self._asked = (due, ask)
        self.send(ask.content)

    def answered(self, answer: HttpAnswer) -> None:
        """Give the answer to the pool."""
        assert self._asked is not None
        (due, ask), self._asked = self._asked, None
        self._pool.answered(self, due, ask, answer)

    def failed(self, message: str) -> None:  # noqa: ARG002
        """Tell the pool, once."""
        if self._asked is not None:
            self._pool.note(*self._asked, 0)
            self._asked = None
        self._pool.lost(self)


def quantile(values: Sequence[float], part: float) -> float:
    """The least value that `part` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.nan
