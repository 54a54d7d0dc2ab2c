"""Write positions in Redis: what one process noted, the reads of every process must see."""

from collections.abc import Iterator

import pytest

from tests.redis_link.redis_server import PrivateRedis
from vettance.redis_link.redis_connection import RedisConnection
from vettance.redis_link.redis_positions import RedisPositions


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


async def test_the_later_of_two_positions_stands_for_every_process_whoever_notes_first(
    redis: PrivateRedis,
) -> None:
    one, other = (RedisConnection(redis.url) for _ in range(2))
    first, second = RedisPositions(one), RedisPositions(other)
    assert await second.newest("ten_a") == 0
    await first.note("ten_a", 9_007_199_254_740_991)
    await second.note("ten_a", 17)
    assert await second.newest("ten_a") == 9_007_199_254_740_991
    assert await second.newest("ten_b") == 0
    await one.close()
    await other.close()


async def test_without_redis_nobody_knows_what_must_be_seen_and_later_all_do(redis: PrivateRedis) -> None:
    line = RedisConnection(redis.url, patience_s=0.2)
    positions = RedisPositions(line)
    await positions.note("ten_a", 5)
    redis.stop()
    assert await positions.newest("ten_b") is None
    await positions.note("ten_a", 7)
    assert await positions.newest("ten_a") is None
    redis.start()
    other = RedisConnection(redis.url)
    found: int | None = None
    for _ in range(50):
        if (found := await positions.newest("ten_a")) is not None:
            break
    assert found == 7
    assert await RedisPositions(other).newest("ten_a") == 7
    await line.close()
    await other.close()
