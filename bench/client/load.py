"""A closed-loop HTTP load client: keep-alive connections that send the next request once they are answered.

It runs as a process of its own, so that asking takes no time from the event loop that answers, and it reads
no more than status and length, so that it is not the bottleneck (`--self-test` shows its ceiling).

    python bench load --url http://127.0.0.1:8080/api/v1/decisions/evaluate --bodies bodies.ndjson \
        --header "x-api-key: vtc_test_…" --connections 32 --seconds 5
"""

import argparse
import asyncio
import contextlib
import gc
import json
import math
import multiprocessing
import socket
import subprocess
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvloop

from bench import BENCH
from vettance.demo.demo_client import HttpAnswer, HttpConnection, request

REOPEN_S = 0.05
SETTLE_S = 10.0  # How long answers may still come in after the last request.


class Result(NamedTuple):
    """What a run measured. Latencies are milliseconds, from writing a request to reading its whole answer."""

    requests: int
    seconds: float
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    not_2xx: int
    statuses: dict[str, int]
    broken: int  # connections that the server closed early

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"{self.per_second:>9,.0f}/s   p50 {self.p50_ms:6.2f} ms   p99 {self.p99_ms:6.2f} ms   "
            f"{self.requests:,} requests, {self.not_2xx} not 2xx, {self.broken} broken"
        )


class Run:
    """What all connections of a run share: the requests in turn, the clock, and what was measured."""

    def __init__(
        self,
        requests: Sequence[bytes],
        seconds: float,
        count: int | None = None,
        observe: Callable[[HttpAnswer], None] | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.requests = requests
        self.next = 0
        self.left = count if count is not None else 1 << 62
        self.seconds = seconds
        self.began = self.until = 0.0
        self.latencies = array("d")
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self.open = 0
        self.done = asyncio.Event()
        self.observe = observe
        self.pause_s = pause_s  # how long a connection waits between an answer and its next request
        #: What to do with a connection that the server closed early, if anything.
        self.reopen: Callable[[LoopConnection], None] | None = None

    def start(self) -> None:
        self.began = time.perf_counter()
        self.until = self.began + self.seconds

    def result(self) -> Result:
        ordered = sorted(self.latencies)
        took = max(time.perf_counter() - self.began, 1e-9)

        def quantile(part: float) -> float:
            return ordered[max(0, math.ceil(part * len(ordered)) - 1)] * 1000 if ordered else 0.0

        not_2xx = sum(count for status, count in self.statuses.items() if status // 100 != 2)
        return Result(
            len(ordered),
            took,
            len(ordered) / took,
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            quantile(1.0),
            not_2xx,
            {str(status): count for status, count in self.statuses.items()},
            self.broken,
        )


class LoopConnection(HttpConnection):
    """One keep-alive connection of a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._sent_at = 0.0
        self._finished = False
        run.open += 1

    def send_next(self) -> None:
        """Send the next request, or finish when there is none or the time is up."""
        run = self._run
        now = time.perf_counter()
        if run.left <= 0 or now >= run.until:
            self.finish()
            return
        run.left -= 1
        index = run.next
        run.next = index + 1 if index + 1 < len(run.requests) else 0
        self._sent_at = now
        self.send(run.requests[index])

    def answered(self, answer: HttpAnswer) -> None:
        """Count the answer, and go on."""
        run = self._run
        run.latencies.append(time.perf_counter() - self._sent_at)
        run.statuses[answer.status] += 1
        if run.observe is not None:
            run.observe(answer)
        if run.pause_s:
            asyncio.get_running_loop().call_later(run.pause_s, self._go_on, self._transport)
        else:
            self.send_next()

    def _go_on(self, transport: asyncio.Transport | None) -> None:
        if transport is self._transport and not self._finished and not self.is_closing:
            self.send_next()

    def failed(self, message: str) -> None:  # noqa: ARG002
        """Count the loss, and open the connection again where the run says so."""
        if self._finished:
            return
        self._run.broken += 1
        if self._run.reopen is None:
            self.finish()
        else:
            self._run.reopen(self)

    def finish(self) -> None:
        """Leave the run; the last one ends it."""
        if self._finished:
            return
        self._finished = True
        self.close()
        self._run.open -= 1
        if self._run.open <= 0:
            self._run.done.set()


async def drive(run: Run, host: str, port: int, connections: int, *, again: bool = False) -> Result:
    """Open the connections, run, and return what was measured; with `again`, open anew what was closed."""
    loop = asyncio.get_running_loop()
    opening: set[asyncio.Task[None]] = set()

    async def open_again(connection: LoopConnection) -> None:
        while time.perf_counter() < run.until:
            try:
                await loop.create_connection(lambda: connection, host, port)
            except OSError:
                await asyncio.sleep(REOPEN_S)
            else:
                connection.send_next()
                return
        connection.finish()

    def reopen(connection: LoopConnection) -> None:
        task = loop.create_task(open_again(connection))
        opening.add(task)
        task.add_done_callback(opening.discard)

    if again:
        run.reopen = reopen
    opened = [
        (await loop.create_connection(lambda: LoopConnection(run), host, port))[1] for _ in range(connections)
    ]
    run.start()
    for connection in opened:
        connection.send_next()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.done.wait(), run.seconds + SETTLE_S)
    return run.result()


def measure(
    url: str,
    bodies: Sequence[bytes],
    headers: Sequence[str] = (),
    connections: int = 32,
    seconds: float = 5.0,
    count: int | None = None,
) -> Result:
    """Drive a URL from this process and return what was measured."""
    parts = urlsplit(url)
    requests = [request("POST", parts.path or "/", "", body, headers) for body in bodies]
    gc.collect()
    gc.freeze()
    gc.disable()

    async def whole() -> Result:
        return await drive(Run(requests, seconds, count), parts.hostname or "", parts.port or 80, connections)

    try:
        return uvloop.run(whole())
    finally:
        gc.enable()


def measure_apart(
    url: str, bodies: Path, headers: Sequence[str], connections: int, seconds: float, count: int | None = None
) -> Result:
    """Drive a URL from a process of its own and return what it measured."""
    command = [sys.executable, str(BENCH), "load", "--url", url, "--bodies", str(bodies), "--json"]
    command += ["--connections", str(connections), "--seconds", str(seconds)]
    for header in headers:
        command += ["--header", header]
    if count is not None:
        command += ["--count", str(count)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=seconds + 60)
    return Result(**json.loads(done.stdout))


class _Constant(asyncio.Protocol):
    """Answers everything at once with 600 bytes, to measure the client itself."""

    ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n" + b"x" * 600

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:  # noqa: ARG002
        self.transport.write(self.ANSWER)


def _serve_constant(listener: socket.socket) -> None:
    async def whole() -> None:
        server = await asyncio.get_running_loop().create_server(_Constant, sock=listener)
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(whole())


def self_test(connections: int, seconds: float) -> Result:
    """Measure the client's own ceiling against a server that does nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server = multiprocessing.get_context("fork").Process(target=_serve_constant, args=(listener,))
    server.start()
    try:
        return measure(url, [b"x" * 1000], connections=connections, seconds=seconds)
    finally:
        server.terminate()
        server.join(5)
        listener.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="what to POST to; 127.0.0.1 only")
    parser.add_argument("--bodies", type=Path, help="one JSON body a line, sent in turn")
    parser.add_argument("--header", action="append", default=[], help="a header of every request")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--count", type=int, help="stop after so many requests")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--self-test", action="store_true", help="measure the client's own ceiling")
    options = parser.parse_args()
    if options.self_test:
        result = self_test(options.connections, options.seconds)
    else:
        if not options.url or urlsplit(options.url).hostname != "127.0.0.1" or not options.bodies:
            parser.error("--url must be http://127.0.0.1:PORT/…, and --bodies is needed")
        bodies = options.bodies.read_bytes().splitlines()
        result = measure(
            options.url, bodies, options.header, options.connections, options.seconds, options.count
        )
    print(json.dumps(result._asdict()) if options.json else result.line())
