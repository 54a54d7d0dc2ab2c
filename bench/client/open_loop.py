"""An open-loop HTTP load client: requests go out when they are due, whatever became of earlier ones.

Latencies count from the moment a request was due, so that a service that stalls is charged for everybody who
would have come meanwhile (G. Tene's "coordinated omission").
"""

import asyncio
import contextlib
import itertools
import json
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

HEAD_END = b"\r\n\r\n"
SETTLE_S = 20.0  # How long answers may still come in after the last request.
WAITING_MAX = 20_000  # Requests that are due and find no free connection.


class Ask(NamedTuple):
    """One request: what kind it is counted under, its bytes, and who wants to see the body of its answer."""

    kind: str
    content: bytes
    heed: Callable[[int, bytes], None] | None = None


def request(
    method: str, path: str, key: str, body: Any = None, headers: Sequence[str] = (), host: str = "127.0.0.1"
) -> bytes:
    """Return the bytes of a request; `key` is an API key, or empty where `headers` hold a credential."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if key:
        lines.append(f"x-api-key: {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join(lines).encode() + HEAD_END + content


class Paced:
    """A pool of kept connections that sends what is due, and counts the answers by kind."""

    def __init__(self, host: str, port: int, connections: int = 32) -> None:
        self._address = (host, port)
        self._connections = connections
        self._idle: list[Line] = []
        self._due: deque[tuple[float, Ask]] = deque()
        self._ending = False
        self._settled = asyncio.Event()
        self.open = 0
        #: Milliseconds from due to answered, and statuses (0: the connection broke), by kind.
        self.latencies_ms: defaultdict[str, list[float]] = defaultdict(list)
        self.statuses: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.sent = 0

    async def run(self, asks: Iterable[Ask], rate: float, seconds: float) -> None:
        """Send `rate` requests a second for so long, then wait for the answers."""
        now = time.perf_counter
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
        for line in self._idle:
            line.close()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self.open += 1
        try:
            _, line = await loop.create_connection(lambda: Line(self), *self._address)
        except OSError:
            self.open -= 1
            return
        self._idle.append(line)
        self._send()

    def _send(self) -> None:
        while self._due and self._idle:
            due, ask = self._due.popleft()
            self._idle.pop().send(due, ask)
        self._settle()

    def _settle(self) -> None:
        if self._ending and not self._due and len(self._idle) >= self.open:
            self._settled.set()

    def answered(self, line: "Line", due: float, ask: Ask, status: int, body: bytes) -> None:
        """Count an answer and give the connection its next request."""
        self.note(due, ask, status)
        self._idle.append(line)
        if ask.heed is not None:
            ask.heed(status, body)
        self._send()

    def note(self, due: float, ask: Ask, status: int) -> None:
        """Count how a request ended; 0 is a connection that broke."""
        self.latencies_ms[ask.kind].append((time.perf_counter() - due) * 1000)
        self.statuses[ask.kind][status] += 1

    def lost(self, line: "Line") -> None:
        """Take a closed connection out and open another one."""
        self.open -= 1
        if line in self._idle:
            self._idle.remove(line)
        self._settle()
        if not line.closing and not self._settled.is_set():
            self._opening = asyncio.get_running_loop().create_task(self._connect())

    def forget(self) -> None:
        """Begin to count anew."""
        self.latencies_ms.clear()
        self.statuses.clear()


class Line(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self, pool: Paced) -> None:
        self._pool = pool
        self._buffer = b""
        self._asked: tuple[float, Ask] | None = None
        self._transport: Any = None
        self.closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def send(self, due: float, ask: Ask) -> None:
        self._asked = (due, ask)
        self._transport.write(ask.content)

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        head_end = data.find(HEAD_END)
        start = data.find(b"content-length: ", 0, head_end)
        if head_end < 0 or start < 0:
            self._buffer = data
            return
        length = int(data[start + 16 : data.find(b"\r", start)])
        if len(data) < head_end + 4 + length:
            self._buffer = data
            return
        self._buffer = b""
        assert self._asked is not None
        (due, ask), self._asked = self._asked, None
        self._pool.answered(self, due, ask, int(data[9:12]), data[head_end + 4 :])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._asked is not None:
            self._pool.note(*self._asked, 0)
        self._pool.lost(self)

    def close(self) -> None:
        self.closing = True
        self._transport.close()


def quantile(values: Sequence[float], part: float) -> float:
    """The least value that `part` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.nan
