"""A small HTTP/1.1 client for one service: keep-alive connections with one request at a time on each.

It understands what the service answers (a status line, `Content-Length`, a body) and nothing else, so that
the demo spends the machine on the service rather than on asking it.
"""

import asyncio
import time
from typing import Final, NamedTuple, cast

ANSWER_S_MAX: Final = 20.0
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class DemoTarget(NamedTuple):
    """A service to ask, and the key to ask with."""

    host: str
    port: int
    api_key: str

    @property
    def base_url(self) -> str:
        """The address to call."""
        return f"http://{self.host}:{self.port}"


class DemoResponse(NamedTuple):
    """What came back: the HTTP status, the body, and the seconds it took."""

    status: int
    body: bytes
    took_s: float


class ClientFault(Exception):
    """The service could not be reached, hung up, or answered what is not HTTP."""


class Connection(asyncio.Protocol):
    """One keep-alive connection; `ask` sends a request and waits for its answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[DemoResponse] | None = None
        self._received = bytearray()
        self._sent_at = 0.0

    @classmethod
    async def open(cls, to: DemoTarget) -> "Connection":
        """Connect. Raises `ClientFault`."""
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(cls, to.host, to.port)
        except OSError as error:
            raise ClientFault(f"the service cannot be reached: {error}") from None
        return connection

    async def ask(self, request: bytes) -> DemoResponse:
        """Send a whole request and return its answer. Raises `ClientFault`."""
        if self._transport is None or self._transport.is_closing():
            raise ClientFault("the service closed the connection")
        waiting: asyncio.Future[DemoResponse] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        self._sent_at = time.perf_counter()
        self._transport.write(request)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await waiting
        except TimeoutError:
            self.close()
            raise ClientFault(f"no answer within {ANSWER_S_MAX:g} s") from None

    def close(self) -> None:
        """Let go of the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by the event loop)."""
        # uvloop's transports do not descend from asyncio's, though they do the same.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Gather the answer (called by the event loop)."""
        self._received += data
        head_end = self._received.find(_HEAD_END)
        if head_end < 0:
            return
        head = bytes(self._received[:head_end]).lower()
        start = head.find(_LENGTH)
        try:
            status = int(head[9:12])
            length = int(head[start + len(_LENGTH) :].split(b"\r\n", 1)[0]) if start >= 0 else 0
        except ValueError:
            self._fail("the service answered what is not HTTP")
            return
        if len(self._received) < head_end + 4 + length:
            return
        body = bytes(self._received[head_end + 4 : head_end + 4 + length])
        self._received.clear()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(DemoResponse(status, body, time.perf_counter() - self._sent_at))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits (called by the event loop)."""
        self._fail(f"the service closed the connection ({exc or 'end of stream'})")

    def _fail(self, message: str) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(ClientFault(message))
        self.close()


def post(to: DemoTarget, path: str, body: bytes) -> bytes:
    """Return the bytes of a POST request with a JSON body."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {to.host}\r\nx-api-key: {to.api_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
