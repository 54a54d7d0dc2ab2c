"""Driving a server over real sockets: order for each customer, faults, and what is made of the answers."""

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from vettance.demo.demo_client import ClientFault, Connection, DemoTarget, post
from vettance.demo.drive import drive
from vettance.demo.feed import Sample
from vettance.generate.generated_event import ORDINARY

ANSWER = {"decision": "approve", "riskScore": 0, "reasonCodes": []}


@asynccontextmanager
async def listening(serve: Callable[..., Coroutine[Any, Any, None]]) -> AsyncIterator[DemoTarget]:
    """Serve each connection with `serve`, and wait for all of them at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(one(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield DemoTarget("127.0.0.1", server.sockets[0].getsockname()[1], "vtc_x")
    finally:
        server.close()
        await asyncio.gather(*tasks)


def answering(
    answer: Callable[[bytes], bytes | None], delay_s: float = 0.0
) -> AbstractAsyncContextManager[DemoTarget]:
    """Answer each request with what `answer` makes of its body; None hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            body = await reader.readexactly(length)
            await asyncio.sleep(delay_s * (len(body) % 5))
            reply = answer(body)
            if reply is None:
                return
            writer.write(reply)

    return listening(serve)


def http(status: int, body: object) -> bytes:
    content = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(content), content)


def samples(count: int, customers: int) -> Iterator[Sample]:
    for number in range(count):
        customer = f"c{number % customers if number % 3 else 0}"
        yield Sample(json.dumps([customer, number]).encode(), customer, ORDINARY, "")


async def test_events_of_one_customer_arrive_in_their_order() -> None:
    arrived: dict[str, list[int]] = defaultdict(list)

    def answer(body: bytes) -> bytes:
        customer, number = json.loads(body)
        arrived[customer].append(number)
        return http(200, ANSWER)

    async with answering(answer, delay_s=0.0005) as to:
        run = await drive(samples(600, 7), to, 16, lambda _done: None)
    assert run.card.decided == 600
    assert all(numbers == sorted(numbers) for numbers in arrived.values())
    assert sum(len(numbers) for numbers in arrived.values()) == 600


async def test_events_of_different_customers_do_not_wait_for_each_other() -> None:
    under_way = most = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, most
        while await reader.read(65536):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            writer.write(http(200, ANSWER))

    async with listening(serve) as to:
        await drive((Sample(b"{}", f"c{n}", ORDINARY, "") for n in range(40)), to, 8, lambda _done: None)
    assert most == 8


async def test_refusals_are_counted_and_the_first_is_kept() -> None:
    def answer(body: bytes) -> bytes:
        number = json.loads(body)[1]
        return http(503, {"error": number}) if number in (4, 6) else http(200, ANSWER)

    async with answering(answer) as to:
        run = await drive(samples(10, 3), to, 1, lambda _done: None)
    assert run.card.decided == 8
    assert run.card.refused == {503: 2}
    assert run.refusal == b'{"error": 4}'


async def test_a_service_that_refuses_everything_ends_the_run_early() -> None:
    async with answering(lambda _body: http(500, {"error": {}})) as to:
        with pytest.raises(ClientFault, match="refuses most events, now with 500"):
            await drive(samples(100_000, 5), to, 4, lambda _done: None)


async def test_a_service_that_hangs_up_is_a_clear_fault() -> None:
    async with answering(lambda _body: None) as to:
        with pytest.raises(ClientFault, match="closed the connection"):
            await drive(samples(10, 3), to, 2, lambda _done: None)


async def test_a_service_that_is_not_there_is_a_clear_fault() -> None:
    async with answering(lambda _body: None) as to:
        pass
    with pytest.raises(ClientFault, match="cannot be reached"):
        await drive(samples(10, 3), to, 2, lambda _done: None)


async def test_an_answer_in_pieces_is_read_whole() -> None:
    content = json.dumps({"a": "x" * 5000}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(content) + content
        for start in range(0, len(answer), 997):
            writer.write(answer[start : start + 997])
            await writer.drain()
            await asyncio.sleep(0.001)

    async with listening(serve) as to:
        connection = await Connection.open(to)
        answer = await connection.ask(post(to, "/", b"{}"))
        connection.close()
    assert (answer.status, answer.body) == (200, content)
