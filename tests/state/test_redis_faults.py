"""The shared memory where processes stall or die, writes fail, and Redis or the store refuse."""

import asyncio

import pytest
from redis_processes import TENANT, processes, until
from redis_server import PrivateRedis

from vettance.state.redis_line import Line


@pytest.fixture
def server():
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


async def test_what_redis_refused_for_a_while_is_settled_when_it_takes_it_again(tmp_path, server):
    async with processes(tmp_path, server.url, 1) as (one,):
        # While a script of somebody else goes on, Redis refuses every call.
        await one.line.call(b"CONFIG", b"SET", b"busy-reply-threshold", b"50")
        other = Line(server.url)
        busy = asyncio.create_task(other.call(b"EVAL", b"while true do end", b"0"))
        await asyncio.sleep(0.3)
        one.velocity.settle(TENANT, "evt_" + "0" * 32)
        await asyncio.sleep(0.3)
        await one.line.call(b"SCRIPT", b"KILL")
        await asyncio.gather(busy, return_exceptions=True)
        await other.close()
        for _ in range(3):
            await one.decide()
        await asyncio.sleep(2)
        assert await one.velocity.pending(TENANT) == []


async def test_a_sweep_that_redis_refuses_ends_nothing(tmp_path, server):
    async with processes(tmp_path, server.url, 1) as (one,):
        await one.decide()
        (memory,) = await one.line.call(b"KEYS", b"*:m")
        gone = memory[:-1] + b"gone"
        await one.line.call(b"SET", gone, b"not a set")
        await one.memory.sweep()
        await one.line.call(b"DEL", gone)
        one.memory.follow_astray(TENANT)
        await until(lambda: not one.memory.astray)
