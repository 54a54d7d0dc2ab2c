"""The memory of events in a Redis Cluster: two evaluators on one store and three shards."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.redis_link.redis_cluster import PrivateCluster
from tests.velocity.redis_processes import LOGIN, TENANT, Process, processes, until
from vettance.db.engine import Statement
from vettance.errors import Unavailable
from vettance.redis_link.cluster_connection import slot_of
from vettance.velocity.port import Condition

IPS = [f"203.0.113.{number}" for number in range(12)]
Counted = dict[str, list[int]]


@pytest.fixture(scope="module")
def shards() -> Iterator[PrivateCluster]:
    cluster = PrivateCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(shards: PrivateCluster) -> PrivateCluster:
    shards.empty()
    return shards


async def decide(process: Process, ip: str) -> tuple[int, bool] | None:
    """Return how many events of an address are known and whether that is exact; None when refused."""
    try:
        evaluated = await process.decide({**LOGIN, "ip": ip})
    except Unavailable:
        return None
    return (await process.answers(evaluated))[0], not evaluated.degraded


async def stored(process: Process) -> Counter[str]:
    rows = await process.store.read(Statement("SELECT ip, COUNT(*) FROM decision GROUP BY ip"))
    return Counter(dict(rows))


async def until_like_the_log(process: Process) -> None:
    """Decide about every address until each counts exactly what is stored."""
    async with asyncio.timeout(60):
        for ip in IPS:
            while True:
                answer = await decide(process, ip)
                if answer == ((await stored(process))[ip] - 1, True):
                    break
                await asyncio.sleep(0.05)


def parts_of(process: Process) -> list[bytes]:
    return [part.keys[0] for part in process.velocity._parts_of(TENANT)]


def keys_of(cluster: PrivateCluster) -> list[bytes]:
    return [key for node in cluster.masters for key in node.tell("KEYS", "vettance:{ten*")]


@asynccontextmanager
async def load(crew: list[Process], found: list[tuple[str, tuple[int, bool] | None]]) -> AsyncIterator[None]:
    """Have both processes decide about every address, one event after the other, until the block ends."""
    going_on = True

    async def go_on(process: Process, turn: int) -> None:
        while going_on:
            ip = IPS[(turn := turn + 5) % len(IPS)]
            found.append((ip, await decide(process, ip)))

    callers = [asyncio.create_task(go_on(crew[turn % 2], turn)) for turn in range(6)]
    try:
        yield
    finally:
        going_on = False
        await asyncio.gather(*callers)


async def in_a_thread(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


async def test_each_of_simultaneous_events_sees_those_of_its_key_before_it(tmp_path, cluster):
    async with processes(tmp_path, cluster.url) as crew:
        asked = [(crew[number % 2], IPS[number // 2 % len(IPS)]) for number in range(240)]
        answers = await asyncio.gather(*(decide(process, ip) for process, ip in asked))
        by_ip: Counted = {}
        for (_, ip), answer in zip(asked, answers, strict=True):
            assert answer is not None
            assert answer[1]
            by_ip.setdefault(ip, []).append(answer[0])
        assert {ip: sorted(counts) for ip, counts in by_ip.items()} == {ip: [*range(20)] for ip in IPS}


async def test_the_keys_of_one_tenant_are_on_every_shard(tmp_path, cluster):
    async with processes(tmp_path, cluster.url, 1) as (one,):
        for ip in IPS:
            await decide(one, ip)
        keys = [len(node.tell("KEYS", "vettance:{ten_1.*")) for node in cluster.masters]
        assert all(count > 2 for count in keys), keys


async def test_what_one_shard_lost_is_filled_from_the_log_and_the_others_stay_exact(tmp_path, cluster):
    async with processes(tmp_path, cluster.url) as (one, other):
        for _ in range(3):
            for ip in IPS:
                await decide(one, ip)
        cluster.masters[1].tell("FLUSHALL")
        answers = [await decide(other, ip) for ip in IPS]
        assert {(2, True), (3, True)} & set(answers), answers
        await until_like_the_log(other)
        await until_like_the_log(one)


async def test_what_is_settled_exchanged_or_forgotten_leaves_nothing_behind(tmp_path, cluster):
    async with processes(tmp_path, cluster.url) as (one, _):
        for ip in IPS:
            await decide(one, ip)
        await one.velocity.settle_all()
        assert await one.velocity.pending(TENANT) == []
        one.memory.follow_astray(TENANT)
        await until(lambda: not one.memory.astray)
        await one.velocity.sweep(TENANT)
        assert len(keys_of(cluster)) == len(parts_of(one)) + len(IPS)
        await one.limits.charge(TENANT, "key", 100, 100)
        await one.velocity.forget(TENANT)
        assert keys_of(cluster) == []


async def test_an_event_that_one_part_could_not_take_is_counted_once_when_it_is_asked_again(
    tmp_path, cluster
):
    async with processes(tmp_path, cluster.url, 1) as (one,):
        for ip in IPS:
            await decide(one, ip)
        here = parts_of(one)
        for key in here[1::2]:  # as when they are held back one after the other
            await one.line.call(b"SET", key[:-1] + b"pause", b"1", b"PX", b"300")
        answers = await asyncio.gather(*(decide(one, ip) for ip in IPS))
        assert answers == [(1, True)] * len(IPS)
        await until_like_the_log(one)


@pytest.mark.slow
async def test_slots_that_are_moved_under_load_lose_and_double_nothing_and_stay_exact(tmp_path, cluster):
    async with processes(tmp_path, cluster.url) as crew:
        for process in crew:
            for ip in IPS:
                await decide(process, ip)
        found: list[tuple[str, tuple[int, bool] | None]] = []
        async with load(crew, found):
            await asyncio.sleep(0.3)
            for key in parts_of(crew[0]):
                slot = slot_of(key)
                source = cluster.owner(slot)
                to = cluster.masters[(cluster.masters.index(source) + 1) % 3]
                await in_a_thread(lambda slot=slot, to=to: cluster.move(slot, to, 0.05))
            await asyncio.sleep(0.3)
        by_ip: Counted = {}
        for ip, answer in found:
            assert answer is not None, ip
            assert answer[1], ip
            by_ip.setdefault(ip, []).append(answer[0])
        for ip, counts in by_ip.items():
            assert sorted(counts) == [*range(2, 2 + len(counts))], ip
        await until_like_the_log(crew[0])


@pytest.mark.slow
async def test_a_master_that_is_killed_under_load_costs_no_count_once_its_replica_has_taken_over(tmp_path):
    shards = PrivateCluster(replicas=1, timeout_ms=2_000)
    try:
        async with processes(tmp_path, shards.url) as crew:
            found: list[tuple[str, tuple[int, bool] | None]] = []
            async with load(crew, found):
                await asyncio.sleep(0.5)
                victim = shards.masters[1]
                slots = [slot for key in parts_of(crew[0]) if shards.owner(slot := slot_of(key)) is victim]
                assert slots
                victim.kill()
                async with asyncio.timeout(60):
                    while await asyncio.to_thread(shards.owner, slots[0]) is victim:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
                await asyncio.sleep(1.0)
            for process in crew:
                await until_like_the_log(process)
            # An answer that is said to be exact was so: no two events of an address saw the same.
            for ip in IPS:
                exact = [answer[0] for one, answer in found if one == ip and answer and answer[1]]
                assert len(exact) == len(set(exact)), ip
            plan = crew[0].memory.rules[TENANT].compiled.plan
            assert await crew[0].velocity.condition(TENANT, plan) is Condition.READY
    finally:
        shards.close()
