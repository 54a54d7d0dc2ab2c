"""A line to what only looks like Redis: whoever asks hears that it is down, and nothing is tried for ever."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from vettance.redis_link.down import StateDown
from vettance.redis_link.redis_connection import RedisConnection

#: What has been seen instead of an answer with a run_id: a proxy hides it, a look-alike answers otherwise.
ODD = [
    b"$13\r\nuptime_days:1\r\n",
    b"$7\r\nrun_id:\r\n",
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"?\r\n",
]
GOOD = b"$47\r\nrun_id:0123456789012345678901234567890123456789\r\n"
RIGHTS = b"-NOPERM this user has no permissions to run the 'info' command\r\n"


class LookAlike:
    """A server that answers INFO as it is told to, and anything else with what stands in `other`."""

    def __init__(self) -> None:
        self.info, self.other, self.connections = GOOD, b"+OK\r\n", 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while words := int((await reader.readline())[1:] or 0):
                command = [(await reader.readline(), await reader.readline())[1] for _ in range(words)]
                writer.write(self.info if command[0].strip().upper() == b"INFO" else self.other)


@pytest.fixture
async def alike() -> AsyncIterator[tuple[LookAlike, RedisConnection]]:
    server = LookAlike()
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        line = RedisConnection(f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}/0")
        yield server, line
        await line.close()


@pytest.mark.parametrize("info", [*ODD, RIGHTS])
async def test_a_server_that_does_not_tell_which_it_is_is_down(
    alike: tuple[LookAlike, RedisConnection], info: bytes
) -> None:
    server, line = alike
    server.info = info
    async with asyncio.timeout(10):
        for times in (1, 2):
            told = await asyncio.gather(*(line.call(b"PING") for _ in range(3)), return_exceptions=True)
            assert {type(one) for one in told} == {StateDown}
            assert server.connections == times
        await asyncio.sleep(0.1)
        assert server.connections == 2, "nobody asks"
        server.info = GOOD
        assert await line.call(b"PING") == b"OK"
        assert await line.server() == b"01234567"


async def test_an_answer_that_is_none_breaks_the_line_at_once(
    alike: tuple[LookAlike, RedisConnection],
) -> None:
    server, line = alike
    assert await line.call(b"PING") == b"OK"
    server.other = b":nothing\r\n"
    async with asyncio.timeout(1):
        with pytest.raises(StateDown):
            await line.call(b"PING")
    server.other = b"+OK\r\n"
    assert await line.call(b"PING") == b"OK"
