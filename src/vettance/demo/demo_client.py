"""A small HTTP/1.1 client for one service: keep-alive connections with one request at a time on each.

It understands what the service answers (a status line, `Content-Length`, a body) and nothing else, so that
the demo and the benchmarks spend the machine on the service rather than on asking it.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

ANSWER_S_MAX: Final = 20.0
HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
_CHUNKED: Final = b"transfer-encoding: chunked"


class HttpAnswer(NamedTuple):
    """A whole answer; `head` is everything before the body."""

    status: int
    head: bytes
    body: bytes


def read_answer(received: bytes) -> HttpAnswer | None:
    """Return the answer that was received, or None while a part of it is missing.

    Raises `ValueError` for what is not HTTP.
    """
    head_end = received.find(HEAD_END)
    if head_end < 0:
        return None
    body_at, length = head_end + 4, 0
    start = received.find(_LENGTH, 0, head_end)
    if start < 0:  # The service writes names in small letters; others need not.
        head = received[:head_end].lower()
        start = head.find(_LENGTH)
        if start < 0 and _CHUNKED in head:
            body = _read_chunks(received, body_at)
            return None if body is None else HttpAnswer(int(received[9:12]), received[:body_at], body)
    if start >= 0:
        start += len(_LENGTH)
        length = int(received[start : received.index(b"\r", start)])
    if len(received) < body_at + length:
        return None
    return HttpAnswer(int(received[9:12]), received[:body_at], received[body_at : body_at + length])


def _read_chunks(received: bytes, place: int) -> bytes | None:
    """Return a body that came in chunks (RFC 9112, section 7.1), or None while a part of it is missing."""
    parts: list[bytes] = []
    while (line_end := received.find(b"\r\n", place)) >= 0:
        size = int(received[place:line_end].partition(b";")[0], 16)
        start = line_end + 2
        place = start + size + 2
        if len(received) < place:
            return None
        if size == 0:
            return b"".join(parts)
        parts.append(received[start : start + size])
    return None


def request(
    method: str, path: str, key: str, body: Any = None, headers: Sequence[str] = (), host: str = "127.0.0.1"
) -> bytes:
    """Return the bytes of a request; `key` is an API key, or empty where `headers` hold a credential.

    A body of bytes is sent as it is, any other as JSON.
    """
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if key:
        lines.append(f"x-api-key: {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join(lines).encode() + HEAD_END + content


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


class HttpConnection(asyncio.Protocol):
    """One keep-alive connection; what becomes of an answer, and of a loss, is up to those that inherit."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._fault = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by the event loop)."""
        # uvloop's transports do not descend from asyncio's, though they do the same.
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""

    def send(self, content: bytes) -> None:
        """Send a whole request; the one before is answered."""
        assert self._transport is not None
        self._transport.write(content)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    @property
    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport is None or self._transport.is_closing()

    def data_received(self, data: bytes) -> None:
        """Gather the answer (called by the event loop)."""
        received = self._received + data if self._received else data
        try:
            answer = read_answer(received)
        except ValueError:
            self._fault = "the service answered what is not HTTP"
            self.close()
            return
        if answer is None:
            self._received = received
            return
        self._received = b""
        self.answered(answer)

    def answered(self, answer: HttpAnswer) -> None:
        """Take a whole answer."""
        raise NotImplementedError

    def failed(self, message: str) -> None:
        """Take why the connection ended."""
        raise NotImplementedError

    def connection_lost(self, exc: Exception | None) -> None:
        """Say why it is closed (called by the event loop)."""
        self.failed(self._fault or f"the service closed the connection ({exc or 'end of stream'})")


class Connection(HttpConnection):
    """One keep-alive connection; `ask` sends a request and waits for its answer."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: asyncio.Future[DemoResponse] | None = None
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

    async def ask(self, content: bytes) -> DemoResponse:
        """Send a whole request and return its answer. Raises `ClientFault`."""
        if self.is_closing:
            raise ClientFault("the service closed the connection")
        waiting: asyncio.Future[DemoResponse] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        self._sent_at = time.perf_counter()
        self.send(content)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await waiting
        except TimeoutError:
            self.close()
            raise ClientFault(f"no answer within {ANSWER_S_MAX:g} s") from None

    def answered(self, answer: HttpAnswer) -> None:
        """Give the answer to its request."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            took_s = time.perf_counter() - self._sent_at
            waiting.set_result(DemoResponse(answer.status, answer.body, took_s))

    def failed(self, message: str) -> None:
        """Fail the request that waits."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(ClientFault(message))


def post(to: DemoTarget, path: str, body: bytes) -> bytes:
    """Return the bytes of a POST request with a JSON body."""
    return request("POST", path, to.api_key, body, host=to.host)
