"""A stand-in for the service, for the tests of your own program: it answers by the OpenAPI document.

```python
from vettance_client import Client
from vettance_client.testing import StandIn

with StandIn() as service, Client(service.url, "any-key") as client:
    service.answers("evaluate", {"decision": "deny", "riskScore": 91})
    assert my_login(client) == "denied"
    service.fails("evaluate", 503)
    assert my_login(client) == "asked for a second factor"
    assert service.requests[0].body["eventName"] == "user.login"
```
"""

import importlib.resources
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from vettance_client import endpoints
from vettance_client.endpoint import Endpoint
from vettance_client.errors import BY_STATUS
from vettance_client.stand_in_schema import example_of, faults_of

ALWAYS = -1


@dataclass(frozen=True)
class Received:
    """A request that the stand-in received. `name` is the client's method, None for an unknown path."""

    name: str | None
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class _Plan:
    """What an endpoint is to answer: members that differ from the example, or a failure."""

    times: int
    members: dict[str, Any] = field(default_factory=dict)
    status: int | None = None
    code: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    delay_s: float = 0.0


class StandIn:
    """A server on a free port of this machine; use it as a context."""

    def __init__(self) -> None:
        text = importlib.resources.files("vettance_client").joinpath("openapi.json").read_text("utf-8")
        self._document: dict[str, Any] = json.loads(text)
        known = [one for one in vars(endpoints).values() if isinstance(one, Endpoint)]
        self._names = {one.name for one in known}
        self._routes = [
            (one, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(one.path)))) for one in known
        ]
        self._plans: dict[str, list[_Plan]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.requests: list[Received] = []
        self.url = ""

    def answers(
        self, name: str, members: dict[str, Any], *, times: int = ALWAYS, delay_s: float = 0.0
    ) -> None:
        """Have the endpoint of a client's method answer these members, `times` times or from now on."""
        self._plan(name, _Plan(times, members=members, delay_s=delay_s))

    def fails(
        self,
        name: str,
        status: int,
        *,
        code: str | None = None,
        details: dict[str, Any] | None = None,
        times: int = ALWAYS,
        delay_s: float = 0.0,
    ) -> None:
        """Have it fail; status 0 closes the connection without an answer."""
        self._plan(name, _Plan(times, status=status, code=code, details=details or {}, delay_s=delay_s))

    def reset(self) -> None:
        """Forget the plans and the requests."""
        with self._lock:
            self._plans.clear()
            self.requests.clear()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _plan(self, name: str, plan: _Plan) -> None:
        if name not in self._names:
            raise ValueError(f"the client has no method {name!r}")
        with self._lock:
            plans = self._plans.setdefault(name, [])
            plans[:] = [one for one in plans if one.times != ALWAYS] if plan.times == ALWAYS else plans
            plans.append(plan)

    def _next_plan(self, name: str) -> _Plan:
        with self._lock:
            plans = self._plans.get(name, [])
            # What is for a number of times comes before what is from now on.
            for one in sorted(plans, key=lambda plan: plan.times == ALWAYS):
                if one.times == ALWAYS:
                    return one
                one.times -= 1
                if one.times == 0:
                    plans.remove(one)
                return one
        return _Plan(ALWAYS)

    def reply(self, method: str, target: str, headers: dict[str, str], content: bytes) -> tuple[int, Any]:
        """Return status and body for a request; status 0 for none."""
        parts = urlsplit(target)
        endpoint = self._endpoint(method, parts.path)
        body, readable = _parsed(content)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        received = Received(
            endpoint.name if endpoint else None, method, unquote(parts.path), query, headers, body
        )
        with self._lock:
            self.requests.append(received)
        if endpoint is None:
            return 404, _error(404, "There is no such path.")
        operation = self._document["paths"][endpoint.path][method.lower()]
        plan = self._next_plan(endpoint.name)
        if plan.delay_s:
            self._stopped.wait(plan.delay_s)
        if (refusal := self._refusal(operation, headers, body, readable)) is not None:
            return refusal
        if plan.status is not None:
            return plan.status, _error(plan.status, "As the test wants it.", plan.code, plan.details)
        status, answer = next((code, one) for code, one in operation["responses"].items() if code < "400")
        schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
        example = example_of(self._document, schema)
        echoed = {k: v for k, v in body.items() if k in example} if isinstance(body, dict) else {}
        return int(status), {**example, **echoed, **plan.members} if isinstance(example, dict) else example

    def _endpoint(self, method: str, path: str) -> Endpoint[Any] | None:
        found = [one for one, pattern in self._routes if one.method == method and pattern.fullmatch(path)]
        # A path without parameters is meant before one with: /decisions/stats is not a decision.
        return min(found, key=lambda one: one.path.count("{"), default=None)

    def _refusal(
        self, operation: dict[str, Any], headers: dict[str, str], body: Any, readable: bool
    ) -> tuple[int, Any] | None:
        wanted = {scheme for one in operation["security"] for scheme in one}
        if "apiKey" in wanted and not headers.get("x-api-key"):
            return 401, _error(401, "The credential is missing.")
        if "sdkToken" in wanted and not headers.get("authorization", "").startswith("Bearer "):
            return 401, _error(401, "The credential is missing.")
        taken = operation.get("requestBody")
        if taken is None:
            return None
        if not readable:
            return 400, _error(400, "The body is not JSON.")
        if body is None:
            return (400, _error(400, "The body is missing.")) if taken["required"] else None
        faults = faults_of(self._document, taken["content"]["application/json"]["schema"], body)
        return (400, _error(400, "The body is wrong.", details=faults)) if faults else None


def _parsed(content: bytes) -> tuple[Any, bool]:
    try:
        return (json.loads(content), True) if content else (None, True)
    except ValueError:
        return None, False


def _error(status: int, message: str, code: str | None = None, details: dict[str, Any] | None = None) -> Any:
    kind = BY_STATUS.get(status)
    known = code or (kind.code if kind is not None else f"HTTP_{status}")
    return {"error": {"code": known, "message": message, "details": details or {}}}


def _handler_of(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body = stand_in.reply(self.command, self.path, headers, content)
            if status == 0:
                self.close_connection = True
                return
            answer = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Request-Id", headers.get("x-request-id", "req_stand_in"))
            error = body.get("error") if isinstance(body, dict) else None
            if isinstance(error, dict) and "retryAfter" in error["details"]:
                self.send_header("Retry-After", str(error["details"]["retryAfter"]))
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (names of the base class)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler
