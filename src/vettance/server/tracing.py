"""Trace: tells OpenTelemetry how long each request, store call and attempt took, for those who ask for it.

Only wrapped around the service when `VETTANCE_TRACES` is set; else nothing here is even imported. Spans carry
methods, routes, statuses and counts. Paths, bodies, headers, ids and the texts of exceptions never enter one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from vettance import __version__
from vettance.db.engine import Row, Statement, Store
from vettance.web.asgi import Message
from vettance.web.edge import Edge, Send
from vettance.web.request_body import Receive
from vettance.web.routing import RouteTable
from vettance.web.server import WHOLE_ANSWER
from vettance.webhooks.http_client import Headers, WebhookClient
from vettance.webhooks.retry_policy import ATTEMPT_S_MAX
from vettance.webhooks.webhook import AttemptOutcome

_CONTEXT: Final = TraceContextTextMapPropagator()
_FAULTS: Final = 500
# A span would otherwise hold the text of an exception, which may repeat what a caller sent.
_NO_TEXTS: Final[dict[str, Any]] = {"record_exception": False, "set_status_on_exception": False}
_EXPORT_S_MAX: Final = 5


class Tracing:
    """The spans of one process, sent in batches from a thread of their own."""

    def __init__(self, url: str, role: str) -> None:
        resource = Resource.create({"service.name": f"vettance-{role}", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=url.rstrip("/") + "/v1/traces", timeout=_EXPORT_S_MAX)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self._provider.get_tracer("vettance")

    def edge(self, edge: Edge, routes: RouteTable) -> "TracedEdge":
        """Put a span around each request."""
        return TracedEdge(edge, routes, self.tracer)

    def store(self, store: Store) -> "TracedStore":
        """Put a span around each call of the store."""
        return TracedStore(store, self.tracer)

    def postman(self, *, unsafe: bool, name_servers: Sequence[str]) -> "TracedPostman":
        """Make a postman with a span around each attempt."""
        return TracedPostman(self.tracer, unsafe=unsafe, name_servers=name_servers)

    def close(self) -> None:
        """Send what is left; takes a few seconds at most when nobody takes it."""
        self._provider.shutdown()


class TracedEdge:
    """The edge with a span around each request, which goes on with the trace of the caller."""

    def __init__(self, edge: Edge, routes: RouteTable, tracer: Tracer) -> None:
        self._edge = edge
        self._find = routes.find
        self._tracer = tracer

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._edge(scope, receive, send)
            return
        match = self._find(scope["method"], scope["raw_path"])
        route = match.route.path if match is not None and match.route is not None else "no route"
        with self._tracer.start_as_current_span(
            f"{scope['method']} {route}",
            _CONTEXT.extract(_carried(scope["headers"])),
            SpanKind.SERVER,
            {"http.request.method": scope["method"], "http.route": route},
            **_NO_TEXTS,
        ) as span:
            await self._edge(_watched(scope, span), receive, _watching(send, span))


def _carried(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    names = (b"traceparent", b"tracestate")
    return {name.decode(): value.decode("latin-1") for name, value in headers if name in names}


def _note(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= _FAULTS:
        span.set_status(StatusCode.ERROR)


def _watched(scope: Message, span: Span) -> Message:
    """Return the scope with an ear at the short way out that the server offers (`web.server`)."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    whole = extensions.get(WHOLE_ANSWER)
    if whole is None:
        return scope

    def answer(status: int, headers: Any, content: bytes) -> bool:
        _note(span, status)
        return bool(whole(status, headers, content))

    return {**scope, "extensions": {**extensions, WHOLE_ANSWER: answer}}


def _watching(send: Send, span: Span) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            _note(span, message["status"])
        await send(message)

    return sending


class TracedStore:
    """A store with a span around each call; everything else is that of the store itself."""

    def __init__(self, store: Store, tracer: Tracer) -> None:
        self._store = store
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def healthy(self) -> bool:
        return self._store.healthy()

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query."""
        with self._tracer.start_as_current_span("store read", **_NO_TEXTS):
            return await self._store.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit."""
        count = {"statements": len(statements)}
        with self._tracer.start_as_current_span("store write", attributes=count, **_NO_TEXTS):
            return await self._store.write(*statements)

    async def migrate(self) -> int:
        """Bring the schema to the newest version."""
        return await self._store.migrate()

    async def close(self) -> None:
        """Let go of the store."""
        await self._store.close()


class TracedPostman(WebhookClient):
    """A webhook client with a span around each attempt. Receivers do not see the trace."""

    def __init__(self, tracer: Tracer, *, unsafe: bool, name_servers: Sequence[str]) -> None:
        super().__init__(unsafe=unsafe, name_servers=name_servers)
        self._tracer = tracer

    async def post(
        self, url: str, headers: Headers, body: bytes, attempt_s_max: float = ATTEMPT_S_MAX
    ) -> AttemptOutcome:
        """Make one attempt and tell how it went."""
        with self._tracer.start_as_current_span("webhook attempt", kind=SpanKind.CLIENT, **_NO_TEXTS) as span:
            outcome = await super().post(url, headers, body, attempt_s_max)
            span.set_attribute("result", outcome.failure or "delivered")
            if outcome.status:
                span.set_attribute("http.response.status_code", outcome.status)
            return outcome
