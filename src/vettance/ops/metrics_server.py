"""The operator's door: `GET /metrics`, on an address of its own that tenants never reach."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from vettance.telemetry.exposition import CONTENT_TYPE

#: A scraper asks every few seconds, with one connection; more than this is a mistake.
_CALLERS_MAX: Final = 16
_HEAD_BYTES_MAX: Final = 16 * 1024
_HEAD_S_MAX: Final = 5.0
_ANSWER_S_MAX: Final = 10.0


class MetricsDoor:
    """A small HTTP/1.1 server of one page. Open it with `start`, end it with `stop`."""

    def __init__(self, text: Callable[[], Awaitable[bytes]]) -> None:
        self._text = text
        self._server: asyncio.Server | None = None
        self._callers = 0

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return where: port 0 takes a free one. Raises `OSError`."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES_MAX)
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers += 1
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                writer.write(await self._answer(reader))
                async with asyncio.timeout(_ANSWER_S_MAX):
                    await writer.drain()
        finally:
            self._callers -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(_HEAD_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _response("431 Request Header Fields Too Large", b"")
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != b"/metrics":
            return _response("404 Not Found", b"metrics are at /metrics\n")
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"", "Allow: GET, HEAD\r\n")
        if self._callers > _CALLERS_MAX:
            return _response("503 Service Unavailable", b"", "Retry-After: 1\r\n")
        return _response("200 OK", await self._text(), is_head=method == b"HEAD")


async def try_address(host: str, port: int) -> None:
    """Listen for a moment where something is to answer later. Raises `OSError`."""

    async def nothing() -> bytes:
        return b""

    door = MetricsDoor(nothing)
    await door.start(host, port)
    await door.stop()


def _response(status: str, content: bytes, headers: str = "", *, is_head: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n{headers}\r\n"
    )
    return head.encode() + (b"" if is_head else content)
