"""Several processes on one socket: each takes its share of the connections, and none is left waiting."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from vettance.web.accept import Acceptor

WITHIN_S = 10.0


class Kept(asyncio.Protocol):
    """A connection that is kept open."""

    def __init__(self, held: "set[Kept]") -> None:
        self._held = held
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._held.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.discard(self)

    def shutdown(self) -> None:
        self.transport.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as made:
        made.settimeout(0)
        yield made


@contextlib.contextmanager
def clients(listener: socket.socket, count: int) -> Iterator[list[socket.socket]]:
    """Connect so many at once."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(count)]


def accept(listener: socket.socket, held: set[Kept], others: Callable[[], Sequence[int]]) -> Acceptor:
    return Acceptor(listener, lambda: Kept(held), held, others)  # type: ignore[arg-type, return-value]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():  # noqa: ASYNC110 - what waits is in the kernel
            await asyncio.sleep(0.001)


async def end(acceptors: Sequence[Acceptor], *held: set[Kept]) -> None:
    for acceptor in acceptors:
        acceptor.close()
        await acceptor.wait_closed()
    for one in list(set().union(*held)):
        one.transport.abort()
    await until(lambda: not any(held))


@pytest.mark.parametrize(("processes", "count"), [(2, 32), (4, 32), (4, 5), (3, 2)])
async def test_connections_that_come_at_once_are_shared_evenly(
    listener: socket.socket, processes: int, count: int
) -> None:
    held: list[set[Kept]] = [set() for _ in range(processes)]

    def others(of: int) -> list[int]:
        return [len(one) for number, one in enumerate(held) if number != of]

    with contextlib.ExitStack() as stack:
        # A loop watches each descriptor once; those of several processes differ, too.
        listeners = [stack.enter_context(listener.dup()) for _ in held]
        acceptors = [
            accept(one, held[number], partial(others, number)) for number, one in enumerate(listeners)
        ]
        stack.enter_context(clients(listener, count))
        await until(lambda: sum(map(len, held)) == count)
        assert max(map(len, held)) - min(map(len, held)) <= 1
        await end(acceptors, *held)


async def test_what_others_do_not_take_is_taken(listener: socket.socket) -> None:
    held: set[Kept] = set()
    acceptor = accept(listener, held, lambda: [0])
    with clients(listener, 200):
        await until(lambda: len(held) == 200)
        await end([acceptor], held)


async def test_who_is_alone_takes_everything_at_once(listener: socket.socket) -> None:
    held: set[Kept] = set()
    acceptor = accept(listener, held, list)
    with clients(listener, 100):
        await asyncio.sleep(0)
        await until(lambda: len(held) == 100)
        await end([acceptor], held)


async def test_out_of_descriptors_connections_wait_and_are_taken_afterwards(listener: socket.socket) -> None:
    held: set[Kept] = set()
    acceptor = accept(listener, held, list)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with clients(listener, 3) as asking:
        resource.setrlimit(resource.RLIMIT_NOFILE, (asking[0].fileno(), limits[1]))
        try:
            await asyncio.sleep(0.05)
            assert not held
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        await until(lambda: len(held) == 3)
        await end([acceptor], held)


async def test_after_the_end_nothing_more_is_taken(listener: socket.socket) -> None:
    held: set[Kept] = set()
    acceptor = accept(listener, held, list)
    acceptor.close()
    with clients(listener, 1):
        await asyncio.sleep(0.05)
        assert not held


async def test_a_connection_that_was_taken_just_before_the_end_is_ended(listener: socket.socket) -> None:
    held: set[Kept] = set()
    acceptor = accept(listener, held, list)
    with clients(listener, 1) as (client,):
        acceptor._take()
        acceptor.close()
        await acceptor.wait_closed()
        client.settimeout(WITHIN_S)
        assert await asyncio.to_thread(client.recv, 1) == b""
