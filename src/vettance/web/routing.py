"""Routes as tables: what a path is, who may call it, what it takes and answers."""

import enum
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

import msgspec

from vettance.db.engine import Statement
from vettance.errors import Invalid, InvalidBody, NotFound, Refusal, Unprocessable
from vettance.tenants.browser_token import TokenClaims
from vettance.tenants.key_scope import KeyScope
from vettance.tenants.tenant import Key, Tenant
from vettance.web.asgi import Header, Pieces
from vettance.wire.large_body import parse_body, parse_in_steps
from vettance.wire.payload import JSON
from vettance.wire.suggestions import NO_NAMES, KnownNames


class Access(enum.Enum):
    """Which credential a route asks for."""

    NONE = "none"
    KEY = "key"
    TOKEN = "token"  # noqa: S105 (a kind of access, no secret)


class RouteReply(msgspec.Struct, frozen=True, gc=False):
    """An answer: a status, a payload to be written as JSON, and headers of its own."""

    payload: Any
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Page(msgspec.Struct, frozen=True):
    """An answer that is not JSON: bytes with a content type (health pages, documentation, static files).

    With `pieces`, the answer is what those make, which is too large to be held whole.
    """

    content: bytes
    content_type: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pieces: Pieces | None = None


#: Who calls a route that asks for no credential. Empty ids reach nothing: `db.engine.scoped` refuses them.
NOBODY: Final = Tenant(id="", name="")
NO_KEY: Final = Key(id="", tenant="", digest=b"", hint="", created_at_ms=0)


class Keeper(Protocol):
    """Keeps the answer of one request for retries with the same `Idempotency-Key`."""

    def keep(self, reply: RouteReply, hints: tuple[Header, ...]) -> tuple[Statement, ...]:
        """Return the statements that keep a reply with the hints on its request.

        They belong into the commit of the effect.
        """


class Call(msgspec.Struct, gc=False):
    """One request after all checks that do not concern its meaning.

    `path` holds the parameters, decoded once from the raw path. `headers` has lower-case names; of a header
    sent twice, the last value. `body` is empty on a route that takes none. On a route without a credential,
    `tenant` and `key` are `NOBODY` and `NO_KEY`. `idempotency_key` is set on routes that honour one, `claims`
    and `client` (the address of the browser, as far as it is known) on routes that browsers call; `claims` is
    None there for a caller with an API key.
    """

    request_id: str
    path: dict[str, str]
    query_string: bytes
    headers: dict[bytes, bytes]
    body: bytes
    received_at_ms: int
    tenant: Tenant
    key: Key
    idempotency_key: str | None = None
    claims: TokenClaims | None = None
    client: str | None = None
    keeper: Keeper | None = None
    actor: str | None = None  # the user who is signed in, where a page of the console asks in process
    parsed: JSON | None = None  # the body, once it is parsed
    route: "Route | None" = None
    find_hints: "Callable[[Call], tuple[Header, ...]] | None" = None
    hints: tuple[Header, ...] | None = None  # headers for who writes a client, once they are found
    unreadable: Refusal | None = None  # why it could not be, when that was found out before the handler asked

    def keep(self, reply: RouteReply) -> tuple[Statement, ...]:
        """Return what must be written in the commit of this call's effect, so that a retry gets this reply.

        Nothing for a request without an `Idempotency-Key`.
        """
        if self.keeper is None:
            return ()
        return self.keeper.keep(reply, () if self.find_hints is None else self.find_hints(self))

    def json(self) -> JSON:
        """Parse the body, which must be one JSON object. Raises `Invalid` (400)."""
        if self.unreadable is not None:
            try:
                raise self.unreadable
            finally:
                # Its traceback leads back to this call: a circle, and calls are unknown to the collector.
                self.unreadable = None
        if self.parsed is None:
            self.parsed = parse_body(self.body, self._shape)
        return self.parsed

    def parse_ahead(self) -> Iterator[None]:
        """Parse the body in steps before the handler asks for it; what is wrong with it is kept for then."""
        try:
            self.parsed = yield from parse_in_steps(self.body, self._shape)
        except Refusal as refusal:
            self.unreadable = refusal.with_traceback(None)

    @property
    def _shape(self) -> type | None:
        return self.route.takes if self.route is not None and self.route.is_bounded else None


#: Below it any fault of a well-formed body is 422.
_AML: Final = "/api/v1/aml/"

Handler = Callable[[Call], Awaitable[RouteReply | Page]]


class Route(msgspec.Struct, frozen=True):
    """One row of the route table. `takes`, `query` and `answers` name the schemas of the OpenAPI document."""

    method: str
    path: str  # `/api/v1/lists/{id}`: a parameter is one whole segment of the raw path
    handler: Handler
    summary: str
    tag: str
    access: Access = Access.KEY
    takes: type | None = None  # a msgspec Struct that describes the body; None: no body is read
    is_bounded: bool = False  # the body is held to `hold_bounds`, and may have members beyond the declared
    may_lack_body: bool = False  # an absent body is read as `{}`
    query: type | None = None  # a Struct whose fields are the query parameters
    answers: type | None = None
    status: int = 200
    otherwise: tuple[tuple[int, type], ...] = ()  # other statuses that come with a payload of their own
    refusals: tuple[int, ...] = ()  # statuses beyond those that every route of its access can answer
    idempotent: bool = False  # honours `Idempotency-Key`
    deprecated: bool = False
    in_openapi: bool = True
    key_setting: str | None = None  # a boolean field of `Tenant` that lets API keys in where tokens are asked
    knows: KnownNames = NO_NAMES  # names with a meaning in members of the body that may have any form
    unreadable: Callable[[JSON], Sequence[str]] | None = None  # the members that hold no number and should
    scopes: tuple[KeyScope, ...] = (KeyScope.DECIDE,)  # a key needs one of them
    product: str | None = None  # the product a tenant must have: a boolean field of `Tenant`, such as `aml`


def reached_by(routes: Iterable[Route], *scopes: KeyScope) -> tuple[Route, ...]:
    """Return routes as keys with any of these scopes may call them; a refusal names the first."""
    return tuple(msgspec.structs.replace(route, scopes=scopes) for route in routes)


def _with_faults_of_its_area(route: Route) -> Route:
    """Return a route that answers 422 to any fault of a well-formed body where its area is to."""
    if not route.path.startswith(_AML) or route.takes is None:
        return route
    handler = route.handler

    async def handle(call: Call) -> RouteReply | Page:
        try:
            return await handler(call)
        except InvalidBody as refused:
            raise Unprocessable(refused.message, refused.details) from None

    return msgspec.structs.replace(route, handler=handle)


def path_parameters(route: Route) -> tuple[str, ...]:
    """Return the names of the parameters of a route's path, in order."""
    return tuple(re.findall(r"{([^{}]+)}", route.path))


def is_id_name(parameter: str) -> bool:
    """Tell whether a path parameter is an id, of which a malformed one is simply not found."""
    return parameter.lower().endswith("id")


def refuse_path(names: tuple[str, ...]) -> None:
    """Refuse path parameters that are no storable text: an id of this kind names nothing, a value is bad."""
    values = [name for name in names if not is_id_name(name)]
    if not values:
        raise NotFound
    message = "must be UTF-8 text, percent-encoded, without NUL characters"
    raise Invalid("The path cannot be read; see details.", dict.fromkeys(values, message))


class RouteMatch(msgspec.Struct, frozen=True, gc=False):
    """Where a path led: a route, or the methods that the path does take.

    `unreadable` names the parameters whose bytes are no text that could be stored (not UTF-8, or with NUL).
    `is_for_browsers` says that pages of other origins may call the path.
    """

    route: Route | None
    parameters: dict[str, str]
    allow: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    is_for_browsers: bool = False


class _Node:
    __slots__ = ("allow", "fixed", "is_for_browsers", "methods", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[bytes, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, tuple[Route, tuple[tuple[str, int], ...]]] = {}
        self.allow: tuple[str, ...] = ()
        self.is_for_browsers = False


class RouteTable:
    """Finds the route of a method and a raw path in a time that does not depend on the number of routes.

    Matching is on the raw (still percent-encoded) path, so that an encoded slash belongs to its parameter.
    A fixed segment wins over a parameter, an empty segment matches no parameter, and a slash at the end makes
    another path. HEAD is taken wherever GET is.
    """

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = tuple(map(_with_faults_of_its_area, routes))
        self._root = _Node()
        self._exact: dict[tuple[str, bytes], RouteMatch] = {}
        for route in self.routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        if not route.path.startswith("/") or not route.method.isupper():
            raise ValueError(f"{route.method} {route.path} is no method and path")
        node = self._root
        parameters: list[tuple[str, int]] = []
        for index, segment in enumerate(route.path.split("/")[1:]):
            if segment.startswith("{") and segment.endswith("}"):
                parameters.append((segment[1:-1], index))
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.fixed.setdefault(segment.encode(), _Node())
        node.is_for_browsers |= route.access is Access.TOKEN
        methods = (route.method, "HEAD") if route.method == "GET" else (route.method,)
        for method in methods:
            if method in node.methods:
                raise ValueError(f"{method} {route.path} stands twice in the route table")
            node.methods[method] = route, tuple(parameters)
            if not parameters:
                self._exact[method, route.path.encode()] = RouteMatch(
                    route, {}, is_for_browsers=node.is_for_browsers
                )
        node.allow = tuple(sorted(node.methods))

    def find(self, method: str, raw_path: bytes) -> RouteMatch | None:
        """Return the match of a request, or None when no route has this path."""
        exact = self._exact.get((method, raw_path))
        if exact is not None:
            return exact
        segments = raw_path.split(b"/")[1:]
        node = _walk(self._root, segments, 0)
        if node is None:
            return None
        found = node.methods.get(method)
        if found is None:
            return RouteMatch(None, {}, node.allow, is_for_browsers=node.is_for_browsers)
        route, names = found
        parameters: dict[str, str] = {}
        unreadable: tuple[str, ...] = ()
        for name, index in names:
            try:
                parameters[name] = text = unquote_to_bytes(segments[index]).decode()
            except UnicodeDecodeError:
                unreadable += (name,)
                continue
            if "\x00" in text:
                unreadable += (name,)
        return RouteMatch(route, parameters, (), unreadable, node.is_for_browsers)


def _walk(node: _Node, segments: list[bytes], at: int) -> _Node | None:
    if at == len(segments):
        return node if node.methods else None
    segment = segments[at]
    if (fixed := node.fixed.get(segment)) is not None and (found := _walk(fixed, segments, at + 1)):
        return found
    if node.parameter is not None and segment:
        return _walk(node.parameter, segments, at + 1)
    return None
