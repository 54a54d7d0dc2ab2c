"""The answer to a request as it is sent: status, bytes and headers."""

from collections.abc import Callable
from typing import Final

import msgspec

from vettance.db.engine import StoreDown
from vettance.errors import InternalError, Refusal, Unavailable
from vettance.web.asgi import Header, Message, Pieces
from vettance.web.routing import Page, RouteReply
from vettance.wire.payload import encode, error_body

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


def answer_of_error(
    request_id: str, error: Exception, log_error: Callable[[str, BaseException], None]
) -> Response:
    """Turn any exception into the answer that tells of it; what nobody foresaw is logged."""
    if isinstance(error, Refusal):
        refusal = error
    elif isinstance(error, StoreDown):
        refusal = Unavailable("The store cannot be reached at the moment. Try again.")
    else:
        log_error(request_id, error)
        refusal = InternalError(request_id)
    return Response(refusal.status, encode(error_body(refusal)), (JSON_TYPE, *encoded(refusal.headers)))


def encoded(headers: tuple[tuple[str, str], ...]) -> tuple[Header, ...]:
    """Put headers into the form in which they are sent."""
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)


def content_of(scope: Message, answer: Response) -> bytes:
    """Return what is sent of an answer: nothing with HEAD."""
    return answer.content if scope["method"] != "HEAD" else b""


def complete_headers(answer: Response) -> list[Header]:
    """Return the headers of an answer and its length, where it is known and allowed."""
    # RFC 9110, section 8.6: none with 204; with 304 it would have to be the length of what is not sent.
    if answer.pieces is not None or answer.status in (204, 304):
        return [*answer.headers]
    return [*answer.headers, (b"content-length", b"%d" % len(answer.content))]
