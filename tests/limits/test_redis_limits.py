"""Throttle and quota in Redis: as exact over several processes as within one."""

import asyncio
import subprocess
import sys
import time

import pytest

from tests.redis_link.redis_server import PATIENCE_S
from tests.velocity.engines import private_redis
from vettance.limits.redis_limits import SharedLimits
from vettance.redis_link.redis_connection import WAITING_MAX, RedisConnection

WINDOW_S = 60.0
_THROTTLE = b"vettance:{T}:t:key"

_CALLER = """
import asyncio, sys
from vettance.limits.redis_limits import SharedLimits
from vettance.redis_link.redis_connection import RedisConnection

async def main():
    line = RedisConnection(sys.argv[1], 30.0)
    limits = SharedLimits(line)
    await line.call(b"PING")
    print("ready", flush=True)
    sys.stdin.readline()
    charges = await asyncio.gather(*(limits.charge("T", "key", 300, 10_000) for _ in range(250)))
    print(sum(charge.rate.admitted and charge.use.admitted for charge in charges))
    await line.close()

asyncio.run(main())
"""


def start_caller():
    return subprocess.Popen(
        [sys.executable, "-c", _CALLER, private_redis().url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
async def line():
    line = RedisConnection(private_redis().url, PATIENCE_S)
    await line.call(b"FLUSHALL")
    yield line
    await line.close()


async def test_of_a_thousand_calls_over_four_processes_exactly_three_hundred_pass(line):
    callers = [start_caller() for _ in range(4)]
    assert [caller.stdout.readline() for caller in callers] == ["ready\n"] * 4
    for caller in callers:
        caller.stdin.write("go\n")
        caller.stdin.flush()
    admitted = [int((await asyncio.to_thread(caller.communicate))[0]) for caller in callers]
    assert sum(admitted) == 300
    assert await line.call(b"LLEN", _THROTTLE) == 300
    assert await SharedLimits(line).used(["T", "U"]) == [("T", int(time.time() // 3600), 300)]


async def test_a_refused_request_costs_nothing_and_is_told_when_to_come_back(line):
    limits = SharedLimits(line)
    for remaining in (1, 0):
        charge = await limits.charge("T", "key", 2, 10)
        assert charge.rate.admitted
        assert charge.rate.remaining == remaining
        assert 59 < charge.rate.reset_s <= WINDOW_S
        assert charge.rate.retry_after_s == 0
    refused = await limits.charge("T", "key", 2, 10)
    assert not refused.rate.admitted
    assert 59 < refused.rate.retry_after_s <= WINDOW_S
    assert refused.use.remaining == 8
    other = await limits.charge("T", "other", 2, 3)
    assert other.rate.admitted
    assert other.use == (True, 3, 0, other.use.reset_s, 0.0)
    spent = await limits.charge("T", "other", 2, 3)
    assert not spent.use.admitted
    assert spent.rate.admitted
    assert spent.rate.remaining == 1
    assert spent.use.reset_s % 3600 == 0
    assert 0 < spent.use.retry_after_s <= 3600


async def test_what_is_refunded_leaves_no_trace_in_either_limit(line):
    limits = SharedLimits(line)
    for _ in range(2):
        charge = await limits.charge("T", "key", 2, 2)
    assert charge.rate.remaining == charge.use.remaining == 0
    refunded = await limits.refund("T", "key", 2, 2, charge.use.reset_s)
    assert refunded.rate.remaining == refunded.use.remaining == 1
    assert (await limits.charge("T", "key", 2, 2)).use.admitted
    assert await limits.used(["T"]) == [("T", int(time.time() // 3600), 2)]
    # Nothing is given back to an hour that was not charged, nor to who was charged nothing.
    assert (await limits.refund("T", "key", 2, 2, charge.use.reset_s - 3600)).use.remaining == 0
    assert (await limits.refund("U", "other", 2, 2, charge.use.reset_s)).use.remaining == 2


async def test_looking_counts_nothing(line):
    limits = SharedLimits(line)
    for _ in range(3):
        charge = await limits.charge("T", "key", 1, 1, looking=True)
        assert charge.rate.admitted
        assert charge.use.admitted
        assert charge.rate.remaining == charge.use.remaining == 1
        assert charge.rate.reset_s == 0
    await limits.charge("T", "key", 1, 1)
    charge = await limits.charge("T", "key", 1, 1, looking=True)
    assert not charge.rate.admitted
    assert not charge.use.admitted


async def test_a_limit_of_none_refuses_everything(line):
    refused = await SharedLimits(line).charge("T", "key", 0, 10)
    assert not refused.rate.admitted
    assert refused.rate.retry_after_s == WINDOW_S


async def test_tenants_have_a_quota_each(line):
    limits = SharedLimits(line)
    await limits.charge("T", "key", 10, 1)
    assert not (await limits.charge("T", "other", 10, 1)).use.admitted
    assert (await limits.charge("U", "other", 10, 1)).use.admitted


async def test_what_has_left_the_window_gives_its_slot_back(line):
    limits = SharedLimits(line)
    now = int(time.time() * 1e6)
    for age_s in (61, 60.5, 5):
        await line.call(b"RPUSH", _THROTTLE, b"%d" % (now - int(age_s * 1e6)))
    charge = await limits.charge("T", "key", 3, 10)
    assert charge.rate.remaining == 1
    assert 50 < charge.rate.reset_s < 55.5


async def test_a_clock_that_was_set_back_gives_nothing_back_and_locks_nobody_out(line):
    limits = SharedLimits(line)
    ahead = int(time.time() * 1e6) + 3_600_000_000
    for step in range(3):
        await line.call(b"RPUSH", _THROTTLE, b"%d" % (ahead + step))
    assert (await limits.charge("T", "key", 4, 10)).rate.remaining == 0
    refused = await limits.charge("T", "key", 4, 10)
    assert not refused.rate.admitted
    assert refused.rate.retry_after_s <= WINDOW_S


async def test_a_quota_is_taken_up_again_after_a_loss(line):
    limits, hour = SharedLimits(line), int(time.time() // 3600)
    await limits.restore("T", hour, 7)
    await limits.restore("T", hour, 5)
    await limits.restore("T", hour - 1, 9)
    assert await limits.used(["T"]) == [("T", hour, 7)]
    assert (await limits.charge("T", "key", 10, 8)).use.remaining == 0
    assert not (await limits.charge("T", "key", 10, 8)).use.admitted


async def test_the_use_of_any_number_of_tenants_can_be_asked(line):
    limits, hour = SharedLimits(line), int(time.time() // 3600)
    tenants = [f"T{number}" for number in range(WAITING_MAX + 1)]
    await limits.restore(tenants[0], hour, 3)
    await limits.restore(tenants[-1], hour, 7)
    assert await limits.used(tenants) == [(tenants[0], hour, 3), (tenants[-1], hour, 7)]
