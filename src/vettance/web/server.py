"""The server's side of a connection: bounds on what arrives before there is a request to check."""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from vettance.errors import Invalid
from vettance.ids import IdSource
from vettance.wire import encode, error_body

#: Bytes of request line and headers that may arrive in several pieces. Browsers and proxies stay below
#: 16 KiB; a single read, which is bounded by the event loop, may hold more.
HEAD_BYTES_MAX: Final = 64 * 1024

#: Seconds between two looks at a connection. Whoever owes us bytes at two looks in a row has had at least
#: this long, and at most twice as long, to send the rest of a head (or of a body that was refused early).
LOOK_EVERY_S: Final = 10.0

_NOTHING: Final = object()
_URLS_MAX: Final = 256  # Most requests go to a few URLs; those with ids in them push each other out.
_URL_BYTES_KEPT: Final = 128
_ids: Final = IdSource()


#: The ASGI extension by which the edge gives a whole answer at once: `answer(status, headers, content)`.
#: It tells whether it took the answer; if not, the ordinary messages must be sent.
WHOLE_ANSWER: Final = "vettance.answer"

#: The extension by which the edge asks for a body that is there already: the whole of it, or None.
ARRIVED_BODY: Final = "vettance.body"


class EdgeProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, which by itself waits for ever for a head of any length.

    Give it to uvicorn as `http=EdgeProtocol`. It also offers `WHOLE_ANSWER`: uvicorn writes head and body of
    an answer in two system calls and looks at every header with two regular expressions, which together cost
    more than most decisions.
    """

    look_every_s = LOOK_EVERY_S

    def __init__(self, *args: Any, tell: Callable[[int], None] | None = None, **named: Any) -> None:
        """Arguments are uvicorn's; `tell` hears how many connections are open whenever one comes or goes."""
        super().__init__(*args, **named)
        self._tell = tell

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch a new connection."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._owing: object = _NOTHING
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        if self._tell is not None:
            self._tell(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._timer.cancel()
        super().connection_lost(exc)
        if self._tell is not None:
            self._tell(len(self.connections))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; asked to confirm before the body comes, do so."""
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
        scope["method"] = parser.get_method().decode("ascii")
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
            version != "1.0" and parser.should_keep_alive(),
            self.on_response_complete,
        )
        extensions: Any = {
            WHOLE_ANSWER: functools.partial(_answer_whole, cycle),
            ARRIVED_BODY: functools.partial(_arrived_body, cycle),
        }
        scope["extensions"] = extensions
        if existing is None or existing.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, and refuse a head that grows beyond its bound."""
        super().data_received(data)
        cycle: Any = self.cycle
        if self.scope is None or (cycle is not None and cycle.scope is self.scope):
            self._head_bytes = 0
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self.send_400_response("The request line and headers are too long.")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with the error body that everything else is answered with."""
        if self.transport.is_closing():
            return
        content = encode(error_body(Invalid(msg)))
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"x-request-id: {_ids.make('req')}\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + content)
        self.transport.close()

    def _look(self) -> None:
        """Close the connection when the client has owed bytes for the same request since the last look."""
        cycle: Any = self.cycle
        at_work = cycle is not None and not cycle.response_complete
        if at_work or self.timeout_keep_alive_task is not None:
            self._owing = _NOTHING
        elif self._owing is cycle:
            self.transport.close()
            return
        else:
            self._owing = cycle
        self._timer = self.loop.call_later(self.look_every_s, self._look)


def _parts_of(url: bytes) -> tuple[str, bytes, bytes]:
    """Take a URL apart: path, path as sent, query. Raises `HttpParserInvalidURLError`."""
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
