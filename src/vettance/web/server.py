"""The server's side of a connection: bounds on what arrives before there is a request to check."""

import asyncio
import functools
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from vettance.errors import HeadTooLarge, Refusal, TargetTooLong, Unavailable
from vettance.ids import IdSource
from vettance.limits.connection_shares import ConnectionShares
from vettance.web.request_head import (
    METHOD_BYTES_MAX,
    HeadRefused,
    StrangeMethod,
    check_head,
    check_target,
    refusal_of,
    without_upgrade,
)
from vettance.wire.payload import encode, error_body

#: Bytes of request line and headers that may arrive in several pieces. Browsers and proxies stay below
#: 16 KiB; a single read, which is bounded by the event loop, may hold more.
HEAD_BYTES_MAX: Final = 64 * 1024

#: Seconds between two looks at a connection. A client that owes bytes at two looks in a row has had at least
#: this long, and at most twice as long, to send the rest of a head (or of a body that was refused early).
LOOK_EVERY_S: Final = 10.0

#: A client that is slow to read must take so many bytes of an answer between two looks: less than the slowest
#: mobile networks carry. The system is set to hold back no more than this many either, so that what is
#: taken shows; it would otherwise gather megabytes before it says that a slow client reads at all.
READ_BYTES_MIN: Final = 16 * 1024
_UNSENT_BYTES_MAX: Final = READ_BYTES_MIN
_NOTSENT_LOWAT: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)

_BESIDE: Final = f"Chunk extensions and trailers must not be longer than {HEAD_BYTES_MAX:,} bytes together."
_BOUND: Final = f"request line and headers must not be longer than {HEAD_BYTES_MAX:,} bytes together."
_NOTHING: Final = object()
_URLS_MAX: Final = 256  # Most requests go to a few URLs; those with ids in them push each other out.
_URL_BYTES_KEPT: Final = 128
_ids: Final = IdSource()


#: The ASGI extension by which the edge gives a whole answer at once: `answer(status, headers, content)`.
#: It tells whether it took the answer; if not, the ordinary messages must be sent.
WHOLE_ANSWER: Final = "vettance.answer"

#: The extension by which the edge asks for a body that is there already: the whole of it, or None.
ARRIVED_BODY: Final = "vettance.body"

#: The extension by which the edge says to which tenant a connection belongs: `owns(tenant) -> bool`, False
#: where the tenant has as many as it may have.
CONNECTION_OWNER: Final = "vettance.owner"

#: The extension that tells whether the client has gone, so that nothing more need be made for it.
CLIENT_GONE: Final = "vettance.gone"


class EdgeProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, which by itself waits for ever for a head of any length.

    Give it to uvicorn as `http=EdgeProtocol`. It also offers `WHOLE_ANSWER`: uvicorn writes head and body of
    an answer in two system calls and looks at every header with two regular expressions, which together cost
    more than most decisions.
    """

    look_every_s = LOOK_EVERY_S

    def __init__(
        self,
        *args: Any,
        tell: Callable[[int], None] | None = None,
        shares: ConnectionShares | None = None,
        **named: Any,
    ) -> None:
        """Arguments are uvicorn's; `tell` hears how many connections are open whenever one comes or goes."""
        super().__init__(*args, **named)
        self._tell = tell
        self._place = (shares or ConnectionShares()).place()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch a new connection."""
        super().connection_made(transport)
        self._head_bytes = self._beside_bytes = 0
        self._begun = b""
        self._strange: StrangeMethod | None = None
        self._method: bytes | None = None
        self._fault: Refusal | None = None
        self._unread_bytes = 0
        self._owing: object = _NOTHING
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        if self._tell is not None:
            self._tell(len(self.connections))
        if not self._place.take(self.client[0] if self.client else ""):
            self._refuse(Unavailable("There are as many connections from here as there can be. Try again."))
        elif _NOTSENT_LOWAT is not None and (taken := transport.get_extra_info("socket")) is not None:
            taken.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, _UNSENT_BYTES_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._timer.cancel()
        self._place.give()
        super().connection_lost(exc)
        if self._tell is not None:
            self._tell(len(self.connections))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; asked to confirm before the body comes, do so.

        Trailers, which come behind a body, say nothing here and are not kept (RFC 9110, section 6.5.1).
        """
        if self.cycle is not None and self.cycle.scope is self.scope:
            return
        name = name.lower()
        # RFC 9110, section 5.5: blanks around a value are no part of it. The parser takes leading ones off.
        value = value.rstrip(b" \t")
        if name == b"expect":
            self.expect_100_continue = self.expect_100_continue or value.lower() == b"100-continue"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Begin a request whose head has just arrived, with the extensions that it may use.

        This is what uvicorn does, without what is switched off here (upgrades, a limit of connections, a path
        in front of all paths), and with each URL taken apart once.
        """
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        check_head(version, self.headers)
        method = self._method or parser.get_method()
        if parser.should_upgrade():
            self._method = method  # The parser stops here, and the request is parsed anew.
            return
        self._method = None
        scope["method"] = method.decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        url = self.url
        parts = _parts_of(url) if len(url) > _URL_BYTES_KEPT else _known_parts_of(url)
        scope["path"], scope["raw_path"], scope["query_string"] = parts
        existing: Any = self.cycle
        self.cycle = cycle = RequestResponseCycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            self.access_log,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive() and method != b"CONNECT",
            self.on_response_complete,
        )
        extensions: Any = {
            WHOLE_ANSWER: functools.partial(_answer_whole, cycle),
            ARRIVED_BODY: functools.partial(_arrived_body, cycle),
            CONNECTION_OWNER: self._place.belong,
            CLIENT_GONE: functools.partial(getattr, cycle, "disconnected"),
        }
        scope["extensions"] = extensions
        if existing is None or existing.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def data_received(self, data: bytes) -> None:
        """Pass bytes on to the parser, and refuse what is no HTTP and heads that grow beyond their bound."""
        self._unset_keepalive_if_required()
        if self._fault is not None or self.transport.is_closing():
            return
        before: Any = self.cycle
        is_in_body = before is not None and before.more_body and not before.response_complete
        body_bytes = len(before.body) if is_in_body else 0
        is_strange = False
        is_between = self.scope is None or (before is not None and before.scope is self.scope)
        try:
            if self._strange is not None:
                self._go_on_with_strange(data)
            else:
                self._feed(data)
        except httptools.HttpParserInvalidMethodError:
            # Of requests that were sent together only the first can be found again, for the parser keeps to
            # itself how far it came: a strange method further behind is answered as what is no HTTP.
            if before is not self.cycle or (is_between and before is not None and before.more_body):
                self._refuse_in_turn(refusal_of(None))
            else:
                is_strange = True
        except httptools.HttpParserError as error:
            self._refuse_in_turn(refusal_of(error.__context__))
        if is_strange:
            # Not while that error is handled: it would take the place of the reason for the next one.
            self._begin_strange(self._begun + data)
        cycle: Any = self.cycle
        if self._strange is None and (
            self.scope is None or (cycle is not None and cycle.scope is self.scope)
        ):
            is_beside = is_in_body and cycle is before and cycle.more_body and len(cycle.body) == body_bytes
            self._beside_bytes = self._beside_bytes + len(data) if is_beside else 0
            if self._beside_bytes > HEAD_BYTES_MAX and self._fault is None:
                self._refuse_in_turn(HeadTooLarge(_BESIDE))
            self._head_bytes, self._begun = 0, b""
            return
        self._begun = data if is_between and len(data) <= METHOD_BYTES_MAX else b""
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX and self._fault is None:
            self._refuse_in_turn(self._too_large())

    def _too_large(self) -> Refusal:
        """Return the refusal of a head that is beyond its bound before it has ended."""
        if self._strange is None and 2 * len(self.url) > self._head_bytes:
            return TargetTooLong(f"The target of the request is too long: {_BOUND}")
        return HeadTooLarge(f"The headers of the request are too long: {_BOUND}")

    def on_message_complete(self) -> None:
        """Note that a body is complete; the parser also says so of a request that is to be parsed anew."""
        cycle: Any = self.cycle
        if cycle is None or cycle.scope is not self.scope or cycle.response_complete:
            return
        cycle.more_body = False
        cycle.message_event.set()

    def _feed(self, data: bytes) -> None:
        """Parse. A request that asks for another protocol is parsed anew without that: none is offered."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                version = self.parser.get_http_version()
                data = without_upgrade(self.url, version, self.headers) + data[upgrade.args[0] :]
                self.parser = _parser_of(self)

    def _begin_strange(self, begun: bytes) -> None:
        self._strange = StrangeMethod()
        try:
            self._go_on_with_strange(begun)
        except httptools.HttpParserError as error:
            self._refuse_in_turn(refusal_of(error.__context__))
        except HeadRefused as refused:
            self._refuse_in_turn(refusal_of(refused))

    def _go_on_with_strange(self, data: bytes) -> None:
        """Once a head with a method that the parser does not know is whole, parse it with another method."""
        strange = self._strange
        assert strange is not None
        whole = strange.add(data)
        if whole is None:
            return
        self._strange, self._method = None, strange.method
        self.parser = _parser_of(self)
        self._feed(whole)

    def _refuse_in_turn(self, refusal: Refusal) -> None:
        """Refuse what is no HTTP once every request before it is answered, and take no more."""
        self._fault = refusal
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self._refuse(refusal)
        elif cycle.more_body:
            # It is the body of the last request that is no HTTP.
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
            elif cycle.response_started:
                self.transport.close()
            else:
                self._refuse(refusal)

    def on_response_complete(self) -> None:
        """Begin the next request that has arrived; after the last one, refuse what came behind it."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._fault is not None and not self.transport.is_closing():
            self._refuse(self._fault)

    def resume_writing(self) -> None:
        """Go on writing: the client reads."""
        self._unread_bytes = 0
        super().resume_writing()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what there is no request for with the error body of all others, and end the connection."""
        if self.transport.is_closing():
            return
        content = encode(error_body(refusal))
        more = "".join(f"{name}: {value}\r\n" for name, value in refusal.headers)
        head = (
            f"content-type: application/json\r\nx-request-id: {_ids.make('req')}\r\n{more}"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[refusal.status] + head.encode("ascii") + content)
        self.transport.close()

    def _look(self) -> None:
        """End the connection when the client has owed bytes for the same request since the last look.

        So too when it has not read what it was answered: as long as that holds writing up, and when it is
        all that is left to do, nothing is added to what is unread.
        """
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        transport = self.transport
        if self.flow.write_paused or transport.is_closing():
            unread = transport.get_write_buffer_size()
            if self._unread_bytes and unread and self._unread_bytes - unread < READ_BYTES_MIN:
                transport.abort()
                return
            self._unread_bytes = unread
        cycle: Any = self.cycle
        at_work = cycle is not None and not cycle.response_complete
        if at_work or self.timeout_keep_alive_task is not None:
            self._owing = _NOTHING
        elif self._owing is cycle:
            transport.close()
        else:
            self._owing = cycle


def _parser_of(protocol: EdgeProtocol) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    # As uvicorn does: else a request that ends its connection could not be answered before what follows it.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _parts_of(url: bytes) -> tuple[str, bytes, bytes]:
    """Take a URL apart: path, path as sent, query. Raises `HeadRefused` or `HttpParserInvalidURLError`."""
    check_target(url)
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


_known_parts_of: Final = functools.lru_cache(maxsize=_URLS_MAX)(_parts_of)


def _arrived_body(cycle: Any) -> bytes | None:
    """Return the body when all of it has arrived, which it has for nearly every request that is not large."""
    if cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue or cycle.flow.read_paused:
        return None
    return bytes(cycle.body)


def _answer_whole(cycle: Any, status: int, headers: Sequence[tuple[bytes, bytes]], content: bytes) -> bool:
    """Write an answer in one piece; False where its client reads too slowly, or has gone.

    The names and values of `headers` are ours, or of a request that was parsed: free of line breaks.
    """
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
        return False
    parts = [STATUS_LINE[status]]
    for name, value in cycle.default_headers:
        parts += (name, b": ", value, b"\r\n")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts += (b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n", content)
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(b"".join(parts))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    # The extensions lead back to the cycle: left so, each request would have to be found by the collector.
    cycle.scope["extensions"].clear()
    return True
