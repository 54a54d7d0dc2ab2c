"""The edge: one ASGI application that takes every request through the order of checks to its handler."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from vettance import clock
from vettance.errors import (
    Invalid,
    LimitReached,
    MethodNotAllowed,
    NotFound,
    ShareUsedUp,
    Unauthorized,
    Unavailable,
)
from vettance.ids import IdSource
from vettance.limits.shares import EqualShares
from vettance.telemetry.meters import Meters
from vettance.web.admission import Admission
from vettance.web.answer_room import SMALL_ANSWER_BYTES_MAX, UNREAD_BYTES_MAX, AnswerRoom
from vettance.web.asgi import Header, Message
from vettance.web.cors import client_address, is_preflight, preflight_headers, sharing_headers
from vettance.web.gate import Gate
from vettance.web.hints import hints_of
from vettance.web.lifespan import Lifespan, live
from vettance.web.request_body import (
    ARRIVAL_S_MAX,
    HELD_BYTES_MAX,
    SMALL_BYTES_MAX,
    Arrivals,
    Body,
    Disconnected,
    Receive,
)
from vettance.web.response import (
    Response,
    answer_of,
    answer_of_error,
    answer_of_page,
    complete_headers,
    content_of,
)
from vettance.web.routing import (
    NO_KEY,
    NOBODY,
    Access,
    Call,
    Page,
    Route,
    RouteReply,
    RouteTable,
    refuse_path,
)
from vettance.web.server import ARRIVED_BODY, CONNECTION_OWNER, WHOLE_ANSWER
from vettance.web.streaming import STREAM_BYTES, send_stream

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]
LogError = Callable[[str, BaseException], None]

#: Requests at work at one time: enough for many patient clients, few enough to be answered within seconds.
#: Those whose bodies still arrive do not count: slow clients hold up nobody, and `web.body` bounds them.
#: Beyond this number, tenants that have more at work than an equal share of it are turned away; beyond
#: `_OVERLOAD` times as many, everybody is.
IN_FLIGHT_MAX: Final = 1024
_OVERLOAD: Final = 2

#: A caller past a limit waits this long for the refusal (ADR 56): one who asks again at once then costs
#: everybody else next to nothing. One who heeds `Retry-After` waits ten times as long anyway.
HOLD_S: Final = 0.1
#: Refusals held back at one time; what is beyond is answered at once.
HELD_MAX: Final = 512

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_IDEMPOTENCY_KEY: Final = re.compile(rb"[\x20-\x7e]{1,255}")
# Answers are one tenant's and of one moment: no cache between here and the caller may keep them.
_NO_STORE: Final = (b"cache-control", b"no-store")
_NO_EXTENSIONS: Final[dict[str, Any]] = {}
_CLOSE: Final = (b"connection", b"close")
#: Refusals that are charged to nobody, and so would be asked for as fast as they are answered.
_HELD_BACK: Final = (LimitReached.status, Unauthorized.status)


class Replays(Protocol):
    """Remembers answers by `Idempotency-Key`, so that a retry has no second effect."""

    async def answer(self, call: Call, raw_path: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        """Return the stored answer of `call.tenant`, `raw_path` and `call.idempotency_key`.

        When there is none, await `work` (reading the body and handling it) exactly once, keep its answer
        unless its status is 5xx, and return it. Simultaneous calls wait for the one that works; when that
        one ends without an answer (`work` raised: its client left), the next of them works.
        """


class Edge:
    """The ASGI application.

    While `draining` is set, and beyond `in_flight_max`, requests are answered 503; open routes still answer.
    `log_error` receives every exception that is no refusal, with the id of its request; outages of the store
    are logged by the store, once for all requests. `proxies` is how many proxies of ours are in front.
    Of the requests `in_flight`, those `held` are refused already. `is_new_key` tells of an API key that the
    gate does not know whether it has just been made, and makes it known.
    """

    def __init__(
        self,
        routes: RouteTable,
        gate: Gate,
        *,
        ids: IdSource,
        log_error: LogError,
        replays: Replays | None = None,
        lifespan: Lifespan | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        hold_s: float = HOLD_S,
        held_max: int = HELD_MAX,
        body_arrival_s_max: float = ARRIVAL_S_MAX,
        body_bytes_held_max: int = HELD_BYTES_MAX,
        unread_bytes_max: int = UNREAD_BYTES_MAX,
        proxies: int = 0,
        meters: Meters | None = None,
        is_new_key: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self.draining = False
        self.in_flight = 0
        self.in_flight_max = in_flight_max
        self.held = 0
        self._hold_s = hold_s
        self._held_max = held_max
        self._find = routes.find
        self._gate = gate
        self._admit = gate.admit
        self._is_new_key = is_new_key
        self._make_id = ids.make
        self._log_error = log_error
        self._replays = replays
        self._lifespan = lifespan
        self._answered = (meters or Meters()).answered
        self._proxies = proxies
        self._arrivals = Arrivals(body_arrival_s_max, body_bytes_held_max)
        self._unread = AnswerRoom(unread_bytes_max)
        self._admitted = EqualShares(in_flight_max)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: a request, or the life of the process."""
        if scope["type"] == "http":
            self.in_flight += 1
            try:
                await self._serve(scope, receive, send)
            finally:
                self.in_flight -= 1
        elif scope["type"] == "lifespan":
            await live(self._lifespan, receive, send, self._log_error)
        else:
            await send({"type": "websocket.close"})

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        sent: list[Header] = scope["headers"]
        headers = dict(sent)
        given = headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            request_id = given.decode()
        else:
            request_id = self._make_id("req")
            given = request_id.encode()
        extensions = scope.get("extensions", _NO_EXTENSIONS)
        body = Body(headers, receive, self._arrivals, extensions.get(ARRIVED_BODY))
        answering: list[Header] = [(b"x-request-id", given)]
        try:
            answer = await self._check(scope, sent, headers, request_id, body, answering)
        except Disconnected:
            return
        except ShareUsedUp as refusal:
            await self._refund(body, answering)
            answer = answer_of_error(request_id, refusal, self._log_error)
        except Exception as error:  # noqa: BLE001  Whatever goes wrong, the caller gets an answer.
            answer = answer_of_error(request_id, error, self._log_error)
        finally:
            body.release()
            if body.holders:
                self._admitted.give(body.holders[0])
                if body.answer_bytes:
                    self._unread.give(body.answer_bytes, body.holders)
        if answer.status in _HELD_BACK and self.held < self._held_max:
            await self._hold()
        if self._give_at_once(scope, answer, answering, body, extensions):
            return
        size = _size_of(answer)
        # Callers without a key share by address: pages such as the documentation are large too.
        holders = body.holders or (f"address {(scope.get('client') or ('unknown',))[0]}",)
        try:
            size = self._unread.take(size, holders)
        except Unavailable as refusal:
            size, answer = 0, answer_of_error(request_id, refusal, self._log_error)
        try:
            await self._give(scope, answer, answering, body, send)
        finally:
            self._unread.give(size, holders)

    def _give_at_once(
        self,
        scope: Message,
        answer: Response,
        answering: list[Header],
        body: Body,
        extensions: dict[str, Any],
    ) -> bool:
        """Send an answer where the server can take it whole; it takes no room, for nobody waits for it."""
        whole = extensions.get(WHOLE_ANSWER)
        if whole is None or answer.pieces is not None or body.is_left_over:
            return False
        content = content_of(scope, answer)
        headers = answering + complete_headers(answer)
        if len(content) > SMALL_ANSWER_BYTES_MAX or _CLOSE in headers:
            return False
        if not whole(answer.status, headers, content):
            return False
        self._answered(answer.status)
        return True

    async def _give(
        self, scope: Message, answer: Response, answering: list[Header], body: Body, send: Send
    ) -> None:
        """Send an answer as fast as it is read."""
        self._answered(answer.status)
        answering += complete_headers(answer)
        if answer.pieces is not None:
            await send_stream(scope, answer.status, answering, answer.pieces, body, send, self._log_error)
            return
        await self._send(answer.status, content_of(scope, answer), answering, body, send)

    async def _check(
        self,
        scope: Message,
        sent: list[Header],
        headers: dict[bytes, bytes],
        request_id: str,
        body: Body,
        answering: list[Header],
    ) -> Response:
        """Go through the order of checks. `answering` gains the headers that every later answer carries."""
        raw_path: bytes = scope["raw_path"]
        match = self._find(scope["method"], raw_path)
        if match is None:
            raise NotFound
        route = match.route
        if match.is_for_browsers:
            answering += sharing_headers(headers)
        if route is None:
            if match.is_for_browsers and is_preflight(scope["method"], headers):
                return Response(204, b"", preflight_headers(match.allow))
            raise MethodNotAllowed(match.allow)
        tenant, key, claims = NOBODY, NO_KEY, None
        if route.access is not Access.NONE:
            if self.draining:
                raise Unavailable("The service is about to stop. Try again.")
            at_work = self.in_flight - len(self._arrivals) - self.held
            if at_work > self.in_flight_max * _OVERLOAD:
                raise Unavailable("The service is at its limit. Try again.")
            admission = await self._let_in(route, headers, sent)
            answering.append(_NO_STORE)
            answering += admission.headers
            if admission.refusal is not None:
                raise admission.refusal
            body.admission = admission
            tenant, key, claims = admission.tenant, admission.key, admission.claims
            self._share(scope, body, tenant.id, key.id if claims is None else claims.sdk_session, at_work)
        if match.unreadable:
            refuse_path(match.unreadable)
        call = Call(
            request_id,
            match.parameters,
            scope["query_string"],
            headers,
            b"",
            clock.now_ms(),
            tenant,
            key,
            route=route,
            find_hints=hints_of,
        )
        if match.is_for_browsers:
            call.claims, call.client = claims, client_address(scope.get("client"), sent, self._proxies)
            if claims is not None:
                # What one session's retry is answered must never reach another session of the same tenant.
                raw_path += b"#" + claims.sdk_session.encode()
        try:
            return await self._work(route, call, raw_path, body)
        except Exception:
            answering += hints_of(call)
            raise

    def _work(self, route: Route, call: Call, raw_path: bytes, body: Body) -> Awaitable[Response]:
        if route.idempotent and b"idempotency-key" in call.headers:
            return self._replay(route, call, raw_path, body)
        return self._handle(route, call, body)

    def _share(self, scope: Message, body: Body, tenant: str, caller: str, at_work: int) -> None:
        """Have a request count for its tenant; raises `ShareUsedUp` where that has more."""
        if not self._admitted.take(tenant, at_work):
            raise ShareUsedUp("You have as many requests at work as you can have now. Try again.")
        body.holders = tenant, caller
        owns = scope.get("extensions", _NO_EXTENSIONS).get(CONNECTION_OWNER)
        if owns is not None and not owns(tenant):
            refusal = ShareUsedUp("You hold as many connections as you can have. Use fewer, and keep them.")
            refusal.headers = (*refusal.headers, ("connection", "close"))
            raise refusal

    async def _refund(self, body: Body, answering: list[Header]) -> None:
        """Take back what a request was charged that is refused because there is no room."""
        if (admission := body.admission) is not None:
            limits = await self._gate.refund(admission)
            answering[:] = [header for header in answering if header not in admission.headers] + limits

    async def _hold(self) -> None:
        """Hold back a refusal. It takes no place among the requests at work."""
        self.held += 1
        try:
            await asyncio.sleep(self._hold_s)
        finally:
            self.held -= 1

    async def _let_in(self, route: Route, headers: dict[bytes, bytes], sent: list[Header]) -> Admission:
        try:
            return await self._admit(route, headers, sent)
        except Unauthorized:
            key = headers.get(b"x-api-key")
            if key is None or self._is_new_key is None or not await self._is_new_key(key.decode("latin-1")):
                raise
            return await self._admit(route, headers, sent)

    async def _replay(self, route: Route, call: Call, raw_path: bytes, body: Body) -> Response:
        """Answer a request that carries an `Idempotency-Key`: from memory, or by working once."""
        sent = call.headers[b"idempotency-key"]
        if not _IDEMPOTENCY_KEY.fullmatch(sent):
            raise Invalid(
                "The Idempotency-Key cannot be used.",
                {"Idempotency-Key": "must be 1 to 255 printable ASCII characters"},
            )
        call.idempotency_key = sent.decode()
        if self._replays is None:
            return await self._handle(route, call, body)

        async def work() -> Response:
            try:
                return await self._handle(route, call, body)
            except (Disconnected, ShareUsedUp):
                raise
            except Exception as error:  # noqa: BLE001  A refusal is an answer too, and is replayed.
                refused = answer_of_error(call.request_id, error, self._log_error)
                return Response(refused.status, refused.content, refused.headers + hints_of(call))

        return await self._replays.answer(call, raw_path, work)

    async def _handle(self, route: Route, call: Call, body: Body) -> Response:
        """Read the body if the route takes one, run the handler, and put its reply into bytes."""
        if route.takes is not None:
            call.body = await body.read()
            if len(call.body) > SMALL_BYTES_MAX:
                await self._arrivals.pace.run_steps(call.tenant.id, call.parse_ahead())
                await asyncio.sleep(0)  # Others go on between the parsing and the checking of a large body.
        if route.method != "GET":
            return _answer(call, await route.handler(call))
        body.answer_bytes = self._unread.reserve(route.path, call.query_string, body.holders)
        answer = _answer(call, await route.handler(call))
        self._unread.note(route.path, call.query_string, body.holders, _size_of(answer))
        return answer

    async def _send(self, status: int, content: bytes, headers: list[Header], body: Body, send: Send) -> None:
        """Send an answer in pieces, each when the client has read enough of those before it."""
        left_over = body.is_left_over
        if left_over and _CLOSE not in headers:
            headers.append(_CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for start in range(0, len(content) or 1, SMALL_ANSWER_BYTES_MAX):
            end = start + SMALL_ANSWER_BYTES_MAX
            more = left_over or end < len(content)
            await send({"type": "http.response.body", "body": content[start:end], "more_body": more})
        if left_over:
            # The answer went out at once; the connection ends after the rest of the body was dropped.
            await body.drain()
            await send({"type": "http.response.body", "body": b""})


def _answer(call: Call, reply: RouteReply | Page) -> Response:
    if isinstance(reply, RouteReply):
        return answer_of(reply, hints_of(call))
    return answer_of_page(reply, hints_of(call))


def _size_of(answer: Response) -> int:
    """Return how much memory an answer takes while nobody reads it."""
    return len(answer.content) if answer.pieces is None else STREAM_BYTES
