"""Receivers that behave and misbehave, on free ports of 127.0.0.1."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, NamedTuple

#: Turns of the loop until a connection that was accepted is served: its transport, its stream, its task.
_TURNS_TO_BE_SERVED = 8


class Received(NamedTuple):
    """One request as it arrived. `at_ms` is Unix milliseconds; `answered_at_ms` that of the answer's end."""

    at_ms: float
    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


#: Given the number of the request (from 0) and the request, what to do: a status, or a whole answer in bytes.
Behaviour = Callable[[int, Received], int | bytes | float]


class Receiver:
    """An HTTP server that notes what it gets. `behave` may be replaced at any time."""

    def __init__(self, behave: Behaviour | None = None) -> None:
        self.behave: Behaviour = behave or (lambda _number, _received: 200)
        self.received: list[Received] = []
        self.answered_at_ms: list[float] = []
        self.port = 0
        self.connections = 0
        self._serving: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}
        self._changed = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving[asyncio.current_task()] = writer
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                received = Received(time.time() * 1000, headers, body, head[0].split(" ")[1])
                number = len(self.received)
                self.received.append(received)
                answer = self.behave(number, received)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    self._note()
                    await writer.drain()
                    break
                if isinstance(answer, float):
                    await asyncio.sleep(answer)
                    answer = 200
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % answer)
                self._note()
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # The worker hung up, or the test is over.
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            del self._serving[asyncio.current_task()]

    async def end(self) -> None:
        """Hang up on everybody, those included who were let in a moment ago."""
        for _ in range(_TURNS_TO_BE_SERVED):
            await asyncio.sleep(0)
        serving = dict(self._serving)
        for task, writer in serving.items():
            writer.transport.abort()
            assert task is not None
            task.cancel()
        await asyncio.gather(*(task for task in serving if task is not None), return_exceptions=True)

    def _note(self) -> None:
        self.answered_at_ms.append(time.time() * 1000)
        self._changed.set()

    async def wait_for(self, count: int, seconds: float = 10.0) -> list[Received]:
        """Wait until so many requests were answered."""
        async with asyncio.timeout(seconds):
            while len(self.answered_at_ms) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.received

    async def wait_for_arrival(self, count: int = 1, seconds: float = 10.0) -> None:
        """Wait until so many requests came in, answered or not."""
        async with asyncio.timeout(seconds):
            while len(self.received) < count:  # noqa: ASYNC110 - short and bounded
                await asyncio.sleep(0.005)

    def gaps_ms(self, webhook_id: str) -> list[float]:
        """How long after each answer the next attempt of a delivery came."""
        marks = [n for n, one in enumerate(self.received) if one.id == webhook_id]
        return [
            self.received[later].at_ms - self.answered_at_ms[earlier] for earlier, later in pairwise(marks)
        ]


@asynccontextmanager
async def receiving(
    behave: Behaviour | None = None, port: int = 0, tls: Any = None
) -> AsyncIterator[Receiver]:
    """Run a receiver until the block ends."""
    receiver = Receiver(behave)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        # Closed while it lets somebody in, the server would leave their socket open: the door is shut first.
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await receiver.end()
        server.close()
