"""The clients as tests see them: one way to call the sync, the async and the TypeScript client."""

import asyncio
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import msgspec

from clients.generate.endpoints import Endpoint
from clients.generate.python_files import python_name
from vettance_client import ApiError, AsyncClient, Client, Retry, VettanceError

PATIENCE = {"attempts": 3, "firstWaitMs": 1}
DRIVER = Path(__file__).parent / "driver.mjs"
TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript"


class Result(msgspec.Struct, frozen=True):
    """What a call came to: a value as JSON has it, or an error by its class."""

    value: Any = None
    error: str | None = None
    status: int | None = None
    code: str | None = None
    details: dict[str, Any] = {}
    request_id: str | None = None


class SyncCalls:
    """Calls by the sync Python client."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str | None], Client] = {}

    def call(self, url: str, key: str | None, one: Endpoint, given: "Given", *, rows: bool = False) -> Result:
        client = self.clients.setdefault((url, key), Client(url, key, retry=Retry(3, 0.001)))
        method = getattr(client, one.name.replace("list_", "iterate_", 1) if rows else one.name)
        try:
            value = method(*given.arguments(one), **given.keywords(one))
            return _value(list(value) if rows else value)
        except VettanceError as error:
            return _error(error)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


class AsyncCalls:
    """Calls by the async Python client, in a loop of its own thread."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str | None], AsyncClient] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def call(self, url: str, key: str | None, one: Endpoint, given: "Given", *, rows: bool = False) -> Result:
        return asyncio.run_coroutine_threadsafe(self._call(url, key, one, given, rows), self.loop).result(30)

    async def _call(self, url: str, key: str | None, one: Endpoint, given: "Given", rows: bool) -> Result:
        client = self.clients.setdefault((url, key), AsyncClient(url, key, retry=Retry(3, 0.001)))
        method = getattr(client, one.name.replace("list_", "iterate_", 1) if rows else one.name)
        try:
            called = method(*given.arguments(one), **given.keywords(one))
            return _value([row async for row in called] if rows else await called)
        except VettanceError as error:
            return _error(error)

    def close(self) -> None:
        for client in self.clients.values():
            asyncio.run_coroutine_threadsafe(client.close(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


class NodeCalls:
    """Calls by the TypeScript client, in a Node process, one after another."""

    def __init__(self) -> None:
        self.one_at_once = threading.Lock()
        self.process = subprocess.Popen(
            ["node", str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def call(self, url: str, key: str | None, one: Endpoint, given: "Given", *, rows: bool = False) -> Result:
        settings = {"baseUrl": url, "retry": PATIENCE, **({"apiKey": key} if key else {})}
        name = one.name.replace("list_", "iterate_", 1) if rows else one.name
        arguments = [*given.arguments(one), *([given.query] if one.query else []), given.options()]
        answer = self.ask({"settings": settings, "method": camel(name), "args": arguments, "rows": rows})
        if "error" not in answer:
            return Result(value=answer.get("value"))
        assert answer["known"], answer
        return Result(
            error=answer["error"],
            status=answer.get("status"),
            code=answer["code"],
            details=answer["details"],
            request_id=answer.get("requestId"),
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request to the driver and read its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.one_at_once:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        assert line, "the driver ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()


class Given(msgspec.Struct, frozen=True):
    """What a call is given, by the names of the API."""

    path: tuple[str, ...] = ()
    body: Any = None
    query: dict[str, Any] = {}
    token: str | None = None
    idempotency_key: str | None = None

    def arguments(self, one: Endpoint) -> list[Any]:
        return [*self.path, *([self.body] if one.body else [])]

    def keywords(self, one: Endpoint) -> dict[str, Any]:
        keywords: dict[str, Any] = {python_name(name): value for name, value in self.query.items()}
        if one.credential == "token":
            keywords["token"] = self.token or ""
        if self.idempotency_key is not None:
            keywords["idempotency_key"] = self.idempotency_key
        return keywords

    def options(self) -> dict[str, Any]:
        options = {"token": self.token, "idempotencyKey": self.idempotency_key}
        return {name: value for name, value in options.items() if value is not None}


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda hit: hit[1].upper(), name)


def _value(value: Any) -> Result:
    return Result(value=json.loads(msgspec.json.encode(value)))


def _error(error: VettanceError) -> Result:
    return Result(
        error=type(error).__name__,
        status=error.http_status if isinstance(error, ApiError) else None,
        code=error.code,
        details=error.details,
        request_id=error.request_id,
    )
