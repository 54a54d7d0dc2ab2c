"""One attempt: bounded in time and bytes whatever the receiver does, and honest about how it went."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.webhooks.receivers import Received, receiving
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.webhook import AttemptFailure


@pytest.fixture
async def postman() -> AsyncIterator[WebhookClient]:
    made = WebhookClient(unsafe=True)
    yield made
    await made.close()


async def test_an_answer_tells_its_status_and_its_first_bytes(postman: WebhookClient) -> None:
    async with receiving() as receiver:
        outcome = await postman.post(receiver.url, [("X-One", "1")], b'{"a":1}')
        assert (outcome.status, outcome.failure, outcome.answer) == (200, None, b"ok")
        (received,) = receiver.received
    assert received.body == b'{"a":1}'
    assert received.headers["x-one"] == "1"
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize("status", [300, 301, 307, 400, 401, 404, 410, 429, 500, 503])
async def test_any_status_but_2xx_is_a_failure_and_no_redirect_is_followed(
    postman: WebhookClient, status: int
) -> None:
    async with receiving() as other:
        answer = b"HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, other.url.encode())
        async with receiving(lambda _n, _r: answer) as receiver:
            outcome = await postman.post(receiver.url, (), b"{}")
        assert (outcome.status, outcome.failure) == (status, AttemptFailure.STATUS)
        assert other.received == []


@pytest.mark.parametrize(
    ("answer", "status", "failure", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b"x" * 9999, 200, None, b"x" * 1024),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, None, b"abc"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", 200, None, b"to the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", 200, None, b"old"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, None, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 OK\r\nContent-Length: 1\r\n\r\n!", 202, None, b"!"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", 500,
         AttemptFailure.STATUS, b""),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08", 200, None,
         b"\x1f\x8b\x08"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", 200, None, b"cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200, None, b""),
        (b"SSH-2.0-OpenSSH_9\r\n", 0, AttemptFailure.PROTOCOL, b""),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70_000 + b"\r\n", 0, AttemptFailure.PROTOCOL, b""),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 0,
         AttemptFailure.PROTOCOL, b""),
        (b"", 0, AttemptFailure.DISCONNECTED, b""),
        (b"HTTP/1.1 2", 0, AttemptFailure.DISCONNECTED, b""),
    ],
)  # fmt: skip
async def test_odd_answers_are_understood_or_named(
    postman: WebhookClient, answer: bytes, status: int, failure: AttemptFailure | None, kept: bytes
) -> None:
    async with receiving(lambda _n, _r: answer) as receiver:
        for _ in range(2):
            outcome = await postman.post(receiver.url, (), b"{}")
            assert (outcome.status, outcome.failure, outcome.answer) == (status, failure, kept)


async def test_nobody_there_and_no_such_name_are_told_apart(postman: WebhookClient) -> None:
    assert (await postman.post("http://127.0.0.1:1/", (), b"{}")).failure is AttemptFailure.REFUSED
    assert (await postman.post("http://nowhere.invalid/", (), b"{}")).failure is AttemptFailure.DNS


@pytest.mark.parametrize("late_after", ["nothing", "head"])
async def test_a_receiver_that_hangs_or_drips_is_left_after_the_whole_attempts_time(
    postman: WebhookClient, late_after: str
) -> None:
    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n" * 100:
                if late_after == "head":
                    writer.write(bytes([byte]))
                    await writer.drain()
                await asyncio.sleep(0.05)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    started = time.monotonic()
    outcome = await postman.post(f"http://127.0.0.1:{port}/", (), b"{}", 0.5)
    assert outcome.failure is AttemptFailure.TIMEOUT
    assert outcome.status == 0
    assert 500 <= outcome.duration_ms < 900
    assert time.monotonic() - started < 0.9
    server.close()


async def test_a_body_that_never_ends_does_not_undo_the_status_nor_hold_for_long(
    postman: WebhookClient,
) -> None:
    async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
            for _ in range(900):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.05)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outcome = await postman.post(f"http://127.0.0.1:{port}/", (), b"{}")
    assert (outcome.status, outcome.failure) == (200, None)
    assert 1000 <= outcome.duration_ms < 1500
    assert 10 < len(outcome.answer) < 30
    server.close()


async def test_connections_are_kept_for_the_next_delivery(postman: WebhookClient) -> None:
    async with receiving() as receiver:
        for _ in range(20):
            assert (await postman.post(receiver.url, (), b"{}")).status == 200
        assert receiver.connections == 1
        await asyncio.gather(*(postman.post(receiver.url, (), b"{}") for _ in range(5)))
        assert receiver.connections <= 5


async def test_a_kept_connection_closed_by_the_receiver_costs_no_attempt(postman: WebhookClient) -> None:
    def close_after_first(number: int, _received: Received) -> int | bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"  # and then the connection ends

    async with receiving(close_after_first) as receiver:
        for number in range(1, 4):
            outcome = await postman.post(receiver.url, (), b"{}")
            assert outcome.status == 200
            assert len(receiver.received) == number
