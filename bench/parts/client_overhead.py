"""What the clients cost a call over the bare HTTP library, in processor time, and what importing costs.

    python bench client_overhead --calls 150 --rounds 60

A server in a process of its own answers every request with one decision. The caller asks it by the client
(`evaluate`: body to JSON, key, answer to a value) and by the library alone (bytes there, bytes back), one
call after the other, in rounds that take turns, so that a machine busy with other things is busy for both.
The figure is the difference of the lower quartiles of the rounds: the best ones are luck on a busy machine.
The median difference of neighbouring rounds is next to it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import msgspec
import urllib3

from bench import BENCH
from bench.fixtures.processes import say
from vettance_client import AsyncClient, Client
from vettance_client.bodies import EventBody
from vettance_client.stand_in_schema import example_of

PATH = "/api/v1/decisions/evaluate"
CLIENTS = BENCH.parent / "clients"
EVENT: EventBody = {
    "eventName": "payment.attempt",
    "eventCategory": "TRANSACTION",
    "customer": {"externalId": "c-1001", "email": "anna@example.com"},
    "ip": "203.0.113.9",
    "metadata": {"amount": 20, "currency": "EUR"},
}
#: Aims, in microseconds a call and milliseconds.
AIMS = {"python async": 150.0, "node": 100.0, "import": 100.0}


class OneAnswer(asyncio.Protocol):
    """Answers each request of a connection with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer when a request is whole."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end].lower()
            found = head.find(b"content-length:")
            body = int(head[found + 15 :].split(b"\r\n", 1)[0]) if found >= 0 else 0
            if len(self.waiting) < end + 4 + body:
                return
            self.waiting = self.waiting[end + 4 + body :]
            self.transport.write(self.answer)


def decision() -> bytes:
    """Return a decision as the OpenAPI document describes it, with one reason."""
    document = json.loads((CLIENTS / "openapi.json").read_bytes())
    operation = document["paths"][PATH]["post"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return msgspec.json.encode(example_of(document, schema))


async def serve() -> None:
    """Print the address, and answer until the end."""
    body = decision()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: OneAnswer(head.encode() + body), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Run the server in a process of its own; yields its address."""
    code = "import asyncio; from bench.parts.client_overhead import serve; asyncio.run(serve())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.kill()


def cost_of(bare_us: list[float], client_us: list[float]) -> dict[str, float]:
    """Return the microseconds a call of both, and by how much the client's are more."""
    bare, client = (statistics.quantiles(took, n=4)[0] for took in (bare_us, client_us))
    differences = [mine - theirs for theirs, mine in zip(bare_us, client_us, strict=True)]
    return {
        "bare_us": round(bare, 1),
        "client_us": round(client, 1),
        "overhead_us": round(client - bare, 1),
        "median_overhead_us": round(statistics.median(differences), 1),
    }


def python_sync(url: str, calls: int, rounds: int) -> dict[str, float]:
    """Measure `Client` over urllib3."""
    pool, content = urllib3.connection_from_url(url), msgspec.json.encode(EVENT)
    headers = {"content-type": "application/json", "x-api-key": "key", "accept": "application/json"}

    def bare() -> None:
        assert pool.urlopen("POST", PATH, content, headers, retries=False).data

    with Client(url, "key") as client:
        return cost_of(*in_turn(bare, lambda: client.evaluate(EVENT, deadline_ms=10_000), calls, rounds))


def in_turn(
    bare: Callable[[], Any], client: Callable[[], Any], calls: int, rounds: int
) -> tuple[list[float], list[float]]:
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for call, kept in zip((bare, client), took, strict=True):
            began = time.process_time()
            for _ in range(calls):
                call()
            if number:  # The first one warms up.
                kept.append((time.process_time() - began) / calls * 1e6)
    return took


async def python_async(url: str, calls: int, rounds: int) -> dict[str, float]:
    """Measure `AsyncClient` over aiohttp."""
    content = msgspec.json.encode(EVENT)
    headers = {"content-type": "application/json", "x-api-key": "key", "accept": "application/json"}
    took: tuple[list[float], list[float]] = ([], [])
    async with aiohttp.ClientSession() as session, AsyncClient(url, "key") as client:
        for number in range(rounds + 1):
            began = time.process_time()
            for _ in range(calls):
                async with session.post(url + PATH, data=content, headers=headers) as answer:
                    await answer.read()
            between = time.process_time()
            for _ in range(calls):
                await client.evaluate(EVENT, deadline_ms=10_000)
            ended = time.process_time()
            if number:
                took[0].append((between - began) / calls * 1e6)
                took[1].append((ended - between) / calls * 1e6)
    return cost_of(*took)


def node(url: str, calls: int, rounds: int) -> dict[str, float] | None:
    """Measure the TypeScript client over `fetch`; None where it is not built."""
    built = CLIENTS / "typescript" / "dist" / "index.js"
    if shutil.which("node") is None or not built.exists():
        say("the TypeScript client is not built (`make typescript`): left out")
        return None
    script = BENCH / "parts" / "client_overhead.mjs"
    asked = [str(built), url + PATH, json.dumps(EVENT), str(calls), str(rounds)]
    done = subprocess.run(["node", str(script), *asked], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return cost_of(said["bare"], said["client"])


def import_ms(rounds: int) -> dict[str, float]:
    """Measure `import vettance_client` in fresh processes, less what an empty one takes."""
    took: dict[str, list[float]] = {"pass": [], "import vettance_client": []}
    environment = {**os.environ, "PYTHONPATH": str(CLIENTS / "python" / "src")}
    for _ in range(rounds):
        for code, kept in took.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            kept.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    empty, whole = (min(kept) for kept in took.values())
    return {"empty_ms": round(empty, 1), "import_ms": round(whole - empty, 1)}


def main() -> None:
    """Measure, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=150, help="calls of a round")
    parser.add_argument("--rounds", type=int, default=60, help="rounds of each kind")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: quartiles take two at least")
    calls, rounds = arguments.calls, arguments.rounds
    found: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    with serving() as url:
        found["python async"] = asyncio.run(python_async(url, calls, rounds))
        found["python sync"] = python_sync(url, calls, rounds)
        found["node"] = node(url, calls, rounds)
    found["import"] = import_ms(min(rounds, 20))
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    print(f"load when it began: {found['load']}")
    for name in ("python async", "python sync", "node"):
        one = found[name]
        if one is not None:
            aim = f", aim {AIMS[name]:.0f}" if name in AIMS else ""
            print(
                f"{name:<13} {one['client_us']:>6} µs a call, bare {one['bare_us']:>6}: "
                f"{one['overhead_us']} more (median {one['median_overhead_us']}{aim})"
            )
    print(f"import        {found['import']['import_ms']:>6} ms, aim {AIMS['import']:.0f}")


if __name__ == "__main__":
    main()
