"""Stream: an answer that is written piece by piece, as fast as its client reads it."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from vettance.web.asgi import Message, Pieces
from vettance.web.request_body import Body
from vettance.web.server import CLIENT_GONE

#: What an answer holds while it is written: the item that is being read and the one that is being written.
STREAM_BYTES: Final = 2 * 1024 * 1024
#: Bytes handed to the server at once; what the client does not take of them is in memory meanwhile.
_PART_BYTES: Final = 64 * 1024

_CLOSE: Final = (b"connection", b"close")


async def send_stream(
    scope: Message,
    status: int,
    headers: list[tuple[bytes, bytes]],
    pieces: Pieces,
    body: Body,
    send: Callable[[Message], Awaitable[None]],
    log_error: Callable[[str, BaseException], None],
) -> None:
    """Send an answer; one that fails in the middle is left without its end, for the server to cut off.

    Its length is not known, so that it comes in chunks. Clients of HTTP/1.0 know none (RFC 9112, section
    6.1): for them everything is made twice, first only to be measured. `headers` begin with the request's id.
    """
    if body.is_left_over and _CLOSE not in headers:
        headers.append(_CLOSE)
    try:
        if scope.get("http_version") == "1.0":
            headers.append((b"content-length", b"%d" % await _length_of(pieces)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if scope["method"] != "HEAD":
            await _send_pieces(pieces, send, scope.get("extensions", {}).get(CLIENT_GONE, bool))
    except Exception as error:  # noqa: BLE001  The status is sent; all that can be said is that this is not all.
        log_error(headers[0][1].decode(), error)
        return
    if body.is_left_over:
        await body.drain()
    await send({"type": "http.response.body", "body": b""})


async def _send_pieces(
    pieces: Pieces, send: Callable[[Message], Awaitable[None]], is_gone: Callable[[], bool]
) -> None:
    async with contextlib.aclosing(pieces()) as made:
        async for piece in made:
            for start in range(0, len(piece), _PART_BYTES):
                part = piece[start : start + _PART_BYTES]
                await send({"type": "http.response.body", "body": part, "more_body": True})
                if is_gone():
                    return


async def _length_of(pieces: Pieces) -> int:
    async with contextlib.aclosing(pieces()) as made:
        return sum([len(piece) async for piece in made])
