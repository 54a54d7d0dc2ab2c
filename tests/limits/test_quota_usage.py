"""What is written down of the quota that processes share, and given back to Redis."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.redis_link.redis_server import PATIENCE_S
from tests.velocity.engines import private_redis
from vettance.db.sqlite import SqliteStore
from vettance.limits.quota_usage import SharedQuotaUsage
from vettance.limits.redis_limits import SharedLimits
from vettance.redis_link.redis_connection import RedisConnection
from vettance.tenants import sql
from vettance.tenants.tenant import Tenant

QUOTA = b"vettance:{ten_1}:q"
TENANT = Tenant(id="ten_1", name="One", aml=False, throttle=1_000, quota=10)


@pytest.fixture
async def line() -> AsyncIterator[RedisConnection]:
    line = RedisConnection(private_redis().url, PATIENCE_S)
    await line.call(b"FLUSHALL")
    yield line
    await line.close()


@pytest.fixture
async def tally(line: RedisConnection, tmp_path: Path) -> AsyncIterator[SharedQuotaUsage]:
    store = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await store.migrate()
    await store.write(sql.insert_tenant(TENANT, 0))
    yield SharedQuotaUsage(store, SharedLimits(line))
    await store.close()


@pytest.mark.parametrize("ahead", [2, 3, 500])
async def test_the_quota_holds_after_the_clock_of_redis_was_hours_ahead(
    line: RedisConnection, tally: SharedQuotaUsage, ahead: int
) -> None:
    limits = SharedLimits(line)
    later = int(time.time() // 3600) + ahead
    await line.call(b"HSET", QUOTA, b"hour", b"%d" % later, b"used", b"4")
    await tally.save()
    admitted = 0
    for _ in range(3):
        for _ in range(15):
            admitted += (await limits.charge("ten_1", "key", 1_000, 10)).use.admitted
        await tally.save()
    assert admitted == 10


async def test_what_redis_lost_of_the_quota_is_given_back(
    line: RedisConnection, tally: SharedQuotaUsage
) -> None:
    limits = SharedLimits(line)
    for _ in range(9):
        await limits.charge("ten_1", "key", 1_000, 10)
    await tally.save()
    await line.call(b"FLUSHALL")
    await tally.save()
    assert (await limits.charge("ten_1", "key", 1_000, 10)).use.remaining == 0
