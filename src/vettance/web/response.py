"""The answer to a request as it is sent: status, bytes and headers."""

from typing import Final

import msgspec

from vettance.web.asgi import Header, Pieces
from vettance.web.routing import Page, RouteReply
from vettance.wire.payload import encode

JSON_TYPE: Final = (b"content-type", b"application/json")


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer: status, body as bytes, and the headers that belong to it alone."""

    status: int
    content: bytes
    headers: tuple[Header, ...] = (JSON_TYPE,)
    pieces: Pieces | None = None  # makes the body, where it is too large to be held whole


def answer_of(reply: RouteReply, hints: tuple[Header, ...] = ()) -> Response:
    """Put a reply into bytes, always the same for the same reply; `hints` are headers of its request."""
    headers = (JSON_TYPE, *encoded(reply.headers), *hints) if reply.headers or hints else (JSON_TYPE,)
    return Response(reply.status, encode(reply.payload), headers)


def answer_of_page(page: Page, hints: tuple[Header, ...] = ()) -> Response:
    """Make the answer that gives a page; `hints` are headers of its request."""
    kind = ((b"content-type", page.content_type.encode("latin-1")),) if page.content_type else ()
    return Response(page.status, page.content, (*kind, *encoded(page.headers), *hints), page.pieces)


def encoded(headers: tuple[tuple[str, str], ...]) -> tuple[Header, ...]:
    """Put headers into the form in which they are sent."""
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)
