"""The connections to a cluster: who serves a key, and what is no cluster or not the one that is meant."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis_link.redis_cluster import SLOTS, PrivateCluster
from tests.redis_link.redis_server import PrivateRedis
from vettance.ops.preflight import probe_redis
from vettance.redis_link.cluster_connection import ClusterConnection, slot_of, tags_of, try_cluster
from vettance.redis_link.redis_connection import Unfit
from vettance.settings.settings import SettingsError, read_settings


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    cluster = PrivateCluster()
    yield cluster
    cluster.close()


@pytest.fixture
async def line(cluster: PrivateCluster) -> AsyncIterator[ClusterConnection]:
    cluster.empty()
    line = ClusterConnection(cluster.url)
    yield line
    await line.close()


@pytest.mark.parametrize("key", [b"plain", b"a{tag}b", b"{}x", b"a{b", b"{a}{b}", bytes(range(256))])
async def test_a_key_is_in_the_slot_that_redis_says(cluster: PrivateCluster, key: bytes) -> None:
    assert slot_of(key) == cluster.masters[0].tell("CLUSTER KEYSLOT", key)


@pytest.mark.parametrize("parts", [1, 3, 6, 64])
def test_each_part_is_in_a_range_of_slots_of_its_own(parts: int) -> None:
    slots = [slot_of(b"{%b}" % tag.encode()) for tag in tags_of("ten_1", parts)]
    assert [slot * parts // SLOTS for slot in slots] == [*range(parts)]


async def test_a_key_is_found_again_after_its_slot_has_moved(
    cluster: PrivateCluster, line: ClusterConnection
) -> None:
    await line.call(b"SET", b"{moving}", b"1")
    slot = slot_of(b"{moving}")
    source = cluster.owner(slot)
    to = next(master for master in cluster.masters if master is not source)
    cluster.move(slot, to)
    assert await line.call(b"GET", b"{moving}") == b"1"
    assert line.at(b"{moving}") is line._nodes["127.0.0.1", to.port]


async def test_a_process_that_spreads_keys_over_other_parts_does_nothing(
    cluster: PrivateCluster, line: ClusterConnection
) -> None:
    await line.call(b"SET", b"x", b"1")
    other = ClusterConnection(f"{cluster.url}?parts=7")
    for _ in range(2):
        with pytest.raises(Unfit, match="over 6 parts, and ours would be over 7"):
            await other.call(b"SET", b"x", b"2")
    await other.close()
    assert await line.call(b"GET", b"x") == b"1"
    with pytest.raises(Unfit, match="over 6 parts"):
        await try_cluster(f"{cluster.url}?parts=7")


async def test_the_masters_of_a_cluster_are_found_from_one_of_its_nodes(cluster: PrivateCluster) -> None:
    found = await try_cluster(cluster.url)
    assert sorted(found) == sorted(f"redis://127.0.0.1:{node.port}/0" for node in cluster.masters)
    assert await try_cluster("redis+cluster://127.0.0.1:1") == []


def test_a_server_alone_is_refused_where_a_cluster_is_named(server: PrivateRedis) -> None:
    url = server.url.replace("redis://", "redis+cluster://")
    with pytest.raises(SettingsError, match="it is not part of a cluster"):
        probe_redis(read_settings({"VETTANCE_REDIS_URL": url}))
