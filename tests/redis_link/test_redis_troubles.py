"""The line to Redis, whatever Redis does: every call ends, and is answered soon after Redis is back."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.redis_link.redis_server import PrivateRedis
from vettance.limits.redis_limits import SharedLimits
from vettance.redis_link.down import StateDown
from vettance.redis_link.redis_connection import RedisConnection

PATIENCE_S = 0.5
#: A call ends after some four times its patience; a busy machine may take longer.
END_S = 10.0
BACK_S = 5.0


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


async def ends(*calls: Awaitable[Any]) -> list[Any]:
    """Return what each call answers or raises, all in good time."""
    return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), END_S)


async def answered(line: RedisConnection) -> None:
    """Ask until there is an answer, as long as that may take after Redis is back."""
    until_s = time.monotonic() + BACK_S
    while True:
        try:
            assert await asyncio.wait_for(line.call(b"PING"), END_S) == b"PONG"
        except StateDown:
            assert time.monotonic() < until_s
            await asyncio.sleep(0.05)
        else:
            return


async def test_every_call_ends_though_redis_hangs_with_more_than_the_buffers_take(
    redis: PrivateRedis,
) -> None:
    line = RedisConnection(redis.url, PATIENCE_S)
    await line.call(b"PING")
    redis.halt()
    large = [asyncio.create_task(line.call(b"SET", b"k", b"x" * 100_000)) for _ in range(150)]
    await asyncio.sleep(0.05)
    behind = line.call(b"PING")
    assert {type(end) for end in await ends(*large, behind)} == {StateDown}
    assert {type(end) for end in await ends(*(line.call(b"PING") for _ in range(5)))} == {StateDown}
    redis.go_on()
    await answered(line)
    await line.close()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "BUSY"),
        ("MOVED 3999 127.0.0.1:6381", "MOVED"),
        ("ASK 3999 127.0.0.1:6381", "ASK"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "TRYAGAIN"),
        ("CROSSSLOT Keys in request do not hash to the same slot", "CROSSSLOT"),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"),
        ("ERR unknown command", "ERR"),
        ("upstream failure", "ERR"),
    ],
)
async def test_whatever_redis_refuses_is_no_answer_and_logged_once_by_its_code(
    redis: PrivateRedis, said: str, code: str
) -> None:
    line = RedisConnection(redis.url, PATIENCE_S)
    script = b"return redis.error_reply(ARGV[1])"
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(StateDown, match=f"^Redis refuses: {code}$"):
                await line.call(b"EVAL", script, b"0", said.encode())
    assert [(log["event"], log["code"], log["command"]) for log in logs] == [("redis_refuses", code, "EVAL")]
    await answered(line)
    await line.close()


async def test_a_user_without_the_right_to_a_command_of_a_script_gets_no_answer(redis: PrivateRedis) -> None:
    redis.command("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-rpush")
    line = RedisConnection(redis.url.replace("redis://", "redis://u:p@"), PATIENCE_S)
    with pytest.raises(StateDown):
        await SharedLimits(line).charge("T", "key", 300, 1_000)
    await line.close()


async def test_after_a_failover_the_server_that_took_over_is_asked(redis: PrivateRedis) -> None:
    other = PrivateRedis()
    other.start()
    primary = redis

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while sent := await reader.read(65_536):
            writer.write(sent)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", primary.port)
        await asyncio.gather(pass_on(reader, back), pass_on(there, writer))

    address = await asyncio.start_server(serve, "127.0.0.1", 0)
    line = RedisConnection(f"redis://127.0.0.1:{address.sockets[0].getsockname()[1]}/0", PATIENCE_S)
    limits = SharedLimits(line)
    await limits.charge("T", "key", 300, 1_000)
    redis.command("REPLICAOF", "127.0.0.1", str(other.port))
    primary = other
    until_s = time.monotonic() + BACK_S
    while True:
        try:
            await asyncio.wait_for(limits.charge("T", "key", 300, 1_000), END_S)
        except StateDown:
            assert time.monotonic() < until_s
            await asyncio.sleep(0.05)
        else:
            break
    await line.close()
    address.close()
    await asyncio.sleep(0.1)
    other.close()
