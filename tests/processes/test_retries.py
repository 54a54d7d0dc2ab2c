"""Retries that reach two processes at once: one effect, one answer, and a memory that nobody fills anew."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.databases import absence, ask, database
from tests.live import Answer, Service
from tests.redis_link.redis_server import SECRET, PrivateRedis
from vettance.redis_link.redis_connection import RedisConnection
from vettance.velocity.redis.redis_velocity import RedisVelocity

pytestmark = pytest.mark.slow

PAIRS = 20
LOGIN = {"eventName": "user.login", "customer": {"externalId": "c-1"}, "ip": "203.0.113.9"}


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


@pytest.fixture
def two(tmp_path: Path, redis: PrivateRedis) -> Iterator[tuple[Service, Service]]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        made = Service(tmp_path), Service(tmp_path)
        for service in made:
            service.env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis.url}
        made[0].tenant_id, made[0].api_key = made[0].new_tenant("First")
        made[1].tenant_id, made[1].api_key = made[0].tenant_id, made[0].api_key
        made[1].arguments = ("--role", "web")
        for service in made:
            service.start()
        yield made
        for service in made:
            service.stop()


def generation(redis: PrivateRedis, tenant: str) -> bytes:
    """Which of its memories a tenant has, once all that it observed is stored or it was exchanged."""

    async def look() -> bytes:
        line = RedisConnection(redis.url)
        velocity = RedisVelocity(line, SECRET)
        async with asyncio.timeout(20):
            while await velocity.pending(tenant):  # noqa: ASYNC110 - Redis is asked, nothing tells of it
                await asyncio.sleep(0.02)
        found: bytes = await line.call(b"GETRANGE", b"vettance:{%b}:v:m" % tenant.encode(), b"0", b"7")
        await line.close()
        return found

    return asyncio.run(look())


def test_pairs_of_retries_in_two_processes_have_one_effect_and_leave_the_memory_as_it_is(
    two: tuple[Service, Service], redis: PrivateRedis
) -> None:
    one, _ = two
    evaluate = "/api/v1/decisions/evaluate"
    for service in two:
        service.wait_for(lambda at=service: "degraded" not in at.post(evaluate, LOGIN).json, seconds=20)
    (before,) = ask(one.env["VETTANCE_DATABASE_URL"], "SELECT count(*) FROM event")
    memory = generation(redis, one.tenant_id)

    def evaluated(service: Service, number: int) -> Answer:
        return service.post(evaluate, LOGIN, headers={"Idempotency-Key": f"k{number}"})

    with ThreadPoolExecutor(2) as pool:
        for number in range(PAIRS):
            pair = [pool.submit(evaluated, service, number) for service in two]
            first, second = (answer.result() for answer in pair)
            assert (first.status, first.body) == (200, second.body)
    assert ask(one.env["VETTANCE_DATABASE_URL"], "SELECT count(*) FROM event") == [(before[0] + PAIRS,)]
    assert generation(redis, one.tenant_id) == memory
