"""Receivers of webhooks for benchmarks, in a process of their own: healthy, hanging, dripping, failing.

Each notes what arrived when; the benchmark asks for the notes through a pipe.
"""

import asyncio
import multiprocessing
import time
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import uvloop

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
FAILED = b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n"


class Arrival(NamedTuple):
    """One attempt as it arrived. Moments are Unix seconds; without an answer `answered_at` is None."""

    kind: str
    webhook_id: str
    subject: str
    attempt: int
    at: float
    answered_at: float | None


class Receiver(asyncio.Protocol):
    """One connection to a receiver of some kind."""

    def __init__(self, kind: str, arrivals: list[Arrival]) -> None:
        self.kind = kind
        self.arrivals = arrivals
        self.buffer = b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data
        while True:
            head_end = data.find(b"\r\n\r\n")
            if head_end < 0:
                break
            start = data.find(b"Content-Length: ") + 16
            end = head_end + 4 + int(data[start : data.find(b"\r", start)])
            if len(data) < end:
                break
            self.answer(data[:head_end], data[head_end + 4 : end])
            data = data[end:]
        self.buffer = data

    def answer(self, head: bytes, body: bytes) -> None:
        now, answered = time.time(), None
        if self.kind in ("healthy", "failing"):
            answered = time.time()  # Before the write: after it, the sender may already know.
            self.transport.write(OK if self.kind == "healthy" else FAILED)
        elif self.kind == "drip":
            asyncio.get_running_loop().create_task(self.drip())
        id_at, attempt_at = head.find(b"webhook-id: ") + 12, head.find(b"X-Webhook-Attempt: ") + 19
        subject_at = body.find(b'"id":"') + 6
        self.arrivals.append(
            Arrival(
                self.kind,
                head[id_at : head.find(b"\r", id_at)].decode(),
                body[subject_at : body.find(b'"', subject_at)].decode(),
                int(head[attempt_at : attempt_at + 1]),
                now,
                answered,
            )
        )

    async def drip(self) -> None:
        """Answer one byte a second."""
        for byte in OK * 9:
            if self.transport.is_closing():
                return
            self.transport.write(bytes([byte]))
            await asyncio.sleep(1)


def main(kinds: list[str], pipe: Connection) -> None:
    """Listen, tell the ports, and answer questions until told to end. `refuse` is a port without a server."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        arrivals: list[Arrival] = []
        ports = []
        for kind in kinds:
            server = await loop.create_server(partial(Receiver, kind, arrivals), "127.0.0.1", 0, backlog=1024)
            ports.append(server.sockets[0].getsockname()[1])
            if kind == "refuse":
                server.close()
        pipe.send(ports)
        while True:
            if pipe.poll():
                question = pipe.recv()
                if question == "end":
                    return
                pipe.send(len(arrivals) if question == "count" else arrivals)
            await asyncio.sleep(0.02)

    uvloop.run(run())


class Receivers:
    """The process, from the benchmark's side."""

    def __init__(self, kinds: list[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=main, args=(kinds, theirs), daemon=True)
        self.process.start()
        self.ports: list[int] = self.pipe.recv()

    def count(self) -> int:
        """How many attempts arrived."""
        self.pipe.send("count")
        return int(self.pipe.recv())

    def arrivals(self) -> list[Arrival]:
        """Everything that arrived so far."""
        self.pipe.send("arrivals")
        return list(self.pipe.recv())

    def end(self) -> None:
        """End the process."""
        self.pipe.send("end")
        self.process.join(5)
