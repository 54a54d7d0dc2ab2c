"""What each part of a request costs: processor time of the thread that serves, sockets to clients left out.

Requests are handed to the protocol of the server in process, 64 at a time, and answers are taken from it.
Each line does what the line above does, and more; the least of many rounds counts.

    python bench request_parts [--seconds 60] [--json]
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import uvloop
from uvicorn.server import ServerState

from bench.fixtures.fifty_rules import fifty_rules
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import machine
from vettance.demo.demo_client import request
from vettance.demo.launch import QUOTA, THROTTLE, command, make_fresh
from vettance.events.event import EventBody, check_event
from vettance.server.application import Service
from vettance.server.lifecycle import running
from vettance.server.web_process import server_config
from vettance.settings.settings import read_settings
from vettance.web.routing import Call, Route, RouteReply
from vettance.web.server import WHOLE_ANSWER, EdgeProtocol

CONNECTIONS = 64
REQUESTS = 1_500  # In a round: some tenths of a second.
CONTENT = b'{"status":"accepted","message":"' + b"x" * 120 + b'"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(CONTENT))]
REPLY = RouteReply({"status": "accepted", "message": "x" * 120}, 202)


class Round:
    """Some requests sent over all connections, each connection's next one when it is answered."""

    def __init__(self, requests: Sequence[bytes], first: int, count: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.requests = requests
        self.next = first
        self.left = count
        self.open = CONNECTIONS

    def send(self, to: "Wire") -> None:
        if self.left:
            self.left -= 1
            self.next += 1
            self.loop.call_soon(to.protocol.data_received, self.requests[self.next % len(self.requests)])
            return
        self.open -= 1
        if not self.open:
            self.done.set_result(None)


class Wire(asyncio.Transport):
    """A connection without a socket."""

    def __init__(self, round_: Round, protocol: EdgeProtocol) -> None:
        super().__init__()
        self.round = round_
        self.protocol = protocol
        protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: Any) -> None:
        assert data[9:10] == b"2", data
        self.round.send(self)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""


async def bare(scope: dict[str, Any], _receive: Any, _send: Any) -> None:
    """Answer at once, in one piece."""
    scope["extensions"][WHOLE_ANSWER](200, HEADERS, CONTENT)


async def keyed(_call: Call) -> RouteReply:
    """Answer what has passed all checks."""
    return REPLY


async def parsed(call: Call) -> RouteReply:
    """Parse the body as well."""
    call.json()
    return REPLY


async def checked(call: Call) -> RouteReply:
    """Hold it to everything that an event must be, as well."""
    check_event(call.json(), call.body, call.received_at_ms)
    return REPLY


async def round_us(app: Any, requests: Sequence[bytes], first: int, count: int = REQUESTS) -> float:
    """Return the microseconds of one request in a round."""
    config, state = server_config(app), ServerState()
    config.load()
    round_ = Round(requests, first, count)
    wires = [Wire(round_, EdgeProtocol(config, state, {})) for _ in range(CONNECTIONS)]
    began = time.thread_time()
    for wire in wires:
        round_.send(wire)
    await round_.done
    took = time.thread_time() - began
    for wire in wires:
        wire.protocol.connection_lost(OSError())
        wire.protocol._unset_keepalive_if_required()
    return took / count * 1e6


async def parts_of(service: Service, key: str) -> dict[str, tuple[Any, list[bytes]]]:
    """Return the application and the requests of each part."""
    await service.jobs.stop()  # Deciding what is accepted would take its part of every round.
    for handler in (keyed, parsed, checked):
        service.routes._add(Route("POST", f"/{handler.__name__}", handler, "", "", takes=EventBody))
    parts = {
        "a handler that answers at once": (bare, "/"),
        "+ routing, key, limits, body": (service.app, "/keyed"),
        "+ body parsed": (service.app, "/parsed"),
        "+ event checked": (service.app, "/checked"),
        "+ job stored: POST /events/async": (service.app, "/api/v1/events/async"),
        "decided and stored: POST /events": (service.app, "/api/v1/events"),
        "decided and stored: evaluate": (service.app, "/api/v1/decisions/evaluate"),
    }
    bodies = payment_bodies(4_000)
    return {
        name: (app, [request("POST", path, key, body) for body in bodies])
        for name, (app, path) in parts.items()
    }


async def measure(service: Service, key: str, seconds: float) -> dict[str, float]:
    """Go round all parts again and again, and return the least of each."""
    parts = await parts_of(service, key)
    least: dict[str, float] = {}
    first, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for name, (app, sent) in parts.items():
            took = await round_us(app, sent, first)
            least[name] = min(took, least.get(name, took))
        first += REQUESTS
    return least


async def run(
    folder: Path, measured: Callable[[Service, str], Coroutine[Any, Any, dict[str, float]]]
) -> dict[str, float]:
    """Set up a service with fifty rules in this process, and measure; what measures gets it and a key."""
    make_fresh(folder)
    tenant = command(folder, "tenant", "create", "Parts")["tenantId"]
    command(folder, "tenant", "set", tenant, "--throttle", str(THROTTLE), "--quota", str(QUOTA))
    key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
    rules = folder / "fifty-rules.yaml"
    rules.write_text(fifty_rules())
    command(folder, "rules", "push", str(rules), "--yes", "--tenant", tenant)
    async with running(read_settings(data=str(folder))) as service:
        return await measured(service, key)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-parts-") as folder:
        least = uvloop.run(
            run(Path(folder) / "data", lambda service, key: measure(service, key, asked.seconds))
        )
    if asked.json:
        print(json.dumps({"machine": machine(), "us": {name: round(us, 1) for name, us in least.items()}}))
        return
    print(machine())
    for name, us in least.items():
        print(f"{name:<36} {us:7.1f} µs")
