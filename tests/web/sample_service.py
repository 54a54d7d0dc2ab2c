"""A small service behind the real edge: a notebook, with one route for each thing the edge must handle."""

import asyncio
import enum
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import uvicorn

from vettance.db.engine import StoreDown
from vettance.errors import BadGateway, Conflict, GatewayTimeout, Invalid, NotFound, Unprocessable
from vettance.ids import IdSource, is_id
from vettance.limits.own_limits import OwnLimits
from vettance.limits.quota import Quota
from vettance.limits.throttle import Throttle
from vettance.tenants.tenant import Key, Tenant, make_key
from vettance.web.edge import Edge
from vettance.web.gate import Gate
from vettance.web.pages import with_pages
from vettance.web.paging import PageLimit, PageNumber
from vettance.web.query import UnixSeconds
from vettance.web.routing import Call, Page, Route, RouteReply
from vettance.web.server import EdgeProtocol
from vettance.wire.payload import Faults, Wire, check_object


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class NoteBody(Wire):
    """What a note is made of."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    metadata: dict[str, Any] | None = None


class Note(Wire):
    """A stored note."""

    id: str
    text: str


class NotePage(Wire):
    """A page of notes."""

    data: list[Note]
    total: int
    page: int
    limit: int
    has_more: bool


class NoteSearch(Wire):
    page: PageNumber = 1
    limit: PageLimit = 50
    colour: Colour | None = None
    from_ms: UnixSeconds | None = msgspec.field(name="from", default=None)
    to_ms: UnixSeconds | None = msgspec.field(name="to", default=None)


class Notebook:
    """The notes of all tenants, the keys, and the edge in front of them."""

    def __init__(self, **options: Any) -> None:
        self.ids = IdSource()
        self.notes: dict[tuple[str, str], Note] = {}
        self.keys: dict[str, tuple[Key, Tenant]] = {}
        self.errors: list[tuple[str, BaseException]] = []
        self.handled = 0
        self.gate_open = threading.Event()
        self.quota = Quota()
        self.built = 0
        self.not_ready: dict[str, str | None] = {"store": None, "rules": None}
        checks = {name: self.check(name) for name in self.not_ready}
        self.table = with_pages(self.routes(), checks, "1.2.3")
        self.edge = Edge(
            self.table,
            Gate(self, OwnLimits(Throttle(), self.quota)),
            ids=self.ids,
            log_error=lambda request_id, error: self.errors.append((request_id, error)),
            **options,
        )

    def find(self, api_key: str) -> tuple[Key, Tenant] | None:
        return self.keys.get(api_key)

    def new_key(self, **settings: Any) -> str:
        """Make a tenant of its own with one key."""
        tenant = Tenant(
            id=self.ids.make("ten"), name="n", **{"throttle": 100_000, "quota": 100_000, **settings}
        )
        text = make_key(live=False)
        key = Key(id=self.ids.make("key"), tenant=tenant.id, digest=b"", hint="", created_at_ms=0)
        self.keys[text] = (key, tenant)
        return text

    def check(self, name: str):
        async def check() -> str | None:
            if self.not_ready[name] == "hangs":
                await asyncio.sleep(60)
            if self.not_ready[name] == "is down":
                raise StoreDown
            return self.not_ready[name]

        return check

    def routes(self) -> tuple[Route, ...]:
        def route(method: str, path: str, handler: Any, **more: Any) -> Route:
            return Route(
                method=method, path=path, handler=handler, summary=f"{method} it", tag="Notes", **more
            )

        notes = "/api/v1/notes"
        return (
            route(
                "POST",
                notes,
                self.add,
                takes=NoteBody,
                answers=Note,
                status=201,
                refusals=(422,),
                idempotent=True,
            ),
            route("GET", notes, self.list, query=NoteSearch, answers=NotePage),
            route("GET", f"{notes}/{{id}}", self.get, answers=Note),
            route("DELETE", f"{notes}/{{id}}", self.remove, answers=Note),
            route("POST", f"{notes}/by-text/{{text}}", self.add_text, answers=Note, status=201),
            route("GET", "/api/v1/aml/notes", self.list, query=NoteSearch, answers=NotePage, product="aml"),
            route("POST", "/api/v1/fail/{kind}", self.fail, in_openapi=False),
            route("GET", "/api/v1/wait", self.wait, in_openapi=False),
            route("GET", "/api/v1/large/{size}", self.large, in_openapi=False),
            route("GET", "/api/v1/streamed/{size}", self.streamed, in_openapi=False),
            route("GET", "/api/v1/parts/{one}/{two}", self.echo, in_openapi=False),
        )

    async def add(self, call: Call) -> RouteReply:
        self.handled += 1
        body = call.json()
        faults = Faults()
        text = body.get("text")
        if type(text) is not str or not 1 <= len(text) <= 1024:
            faults.shape["text"] = "must be a string of 1 to 1024 characters"
        metadata = body.get("metadata")
        if type(metadata) is dict:
            check_object(metadata, "metadata", faults)
        elif metadata is not None:
            faults.shape["metadata"] = "must be an object"
        faults.raise_any()
        return self.keep(call, text)

    async def add_text(self, call: Call) -> RouteReply:
        return self.keep(call, call.path["text"])

    def keep(self, call: Call, text: str) -> RouteReply:
        note = Note(id=self.ids.make("nte"), text=text)
        self.notes[call.tenant.id, note.id] = note
        return RouteReply(note, 201)

    async def list(self, call: Call) -> RouteReply:
        from vettance.web.query import read_query

        search = read_query(call.query_string, NoteSearch)
        own = [note for (tenant, _), note in self.notes.items() if tenant == call.tenant.id]
        start = (search.page - 1) * search.limit
        return RouteReply(
            NotePage(
                data=own[start : start + search.limit],
                total=len(own),
                page=search.page,
                limit=search.limit,
                has_more=start + search.limit < len(own),
            )
        )

    async def get(self, call: Call) -> RouteReply:
        note = self.notes.get((call.tenant.id, call.path["id"]))
        if note is None or not is_id(call.path["id"], "nte"):
            raise NotFound
        return RouteReply(note, headers=(("X-Note", "yes"),))

    async def remove(self, call: Call) -> RouteReply:
        note = self.notes.pop((call.tenant.id, call.path["id"]), None)
        if note is None:
            raise NotFound
        return RouteReply(note)

    async def echo(self, call: Call) -> RouteReply:
        return RouteReply({**call.path, "query": call.query_string.decode(), "tenant": call.tenant.id})

    async def large(self, call: Call) -> Page:
        self.built += 1
        return Page(b"x" * int(call.path["size"]), "text/plain")

    async def streamed(self, call: Call) -> Page:
        self.built += 1

        async def pieces() -> AsyncGenerator[bytes, None]:
            for _ in range(4):
                yield b"x" * (int(call.path["size"]) // 4)

        return Page(b"", "text/plain", pieces=pieces)

    async def wait(self, _call: Call) -> RouteReply:
        await asyncio.to_thread(self.gate_open.wait, 20)
        return RouteReply({})

    async def fail(self, call: Call) -> RouteReply:
        failures = {
            "bug": ZeroDivisionError("secret of the house"),
            "store": StoreDown("disk 7"),
            "invalid": Invalid("It is bad.", {"a.b": "must be good"}),
            "unprocessable": Unprocessable("It makes no sense.", {"a": "must make sense"}),
            "conflict": Conflict("It is there.", "duplicate_entry", id="lst_1"),
            "absent": NotFound(),
            "gateway": BadGateway("The engine is down."),
            "timeout": GatewayTimeout("The engine is late."),
        }
        raise failures[call.path["kind"]]


@contextmanager
def serving(app: Any, http: Any = EdgeProtocol) -> Iterator[int]:
    """Serve an ASGI application on a free port of 127.0.0.1 with the server that production uses."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            http=http,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "the server did not stop"
