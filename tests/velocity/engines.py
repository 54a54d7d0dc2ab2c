"""The engines of the state port, each made as the tests ask it: without awaiting."""

import atexit
from functools import cache

from tests.redis_link.redis_cluster import PrivateCluster
from tests.redis_link.redis_server import PrivateRedis, Shared
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Observation, VelocityAnswer
from vettance.velocity.redis.redis_velocity import OBSERVE

ENGINES = ("memory", "redis", "cluster")


def make_velocity(engine: str) -> MemoryVelocity | Shared:
    """Return an engine without any memory; the tests share one server, and one cluster."""
    if engine == "memory":
        return MemoryVelocity()
    server = private_redis() if engine == "redis" else _private_cluster()
    server.empty()
    return _shared(server.url)


def observe_all(
    velocity: MemoryVelocity | Shared, tenant: str, events: list[tuple[str, int, Observation]]
) -> list[VelocityAnswer]:
    """Observe events in their order; on Redis the calls are under way together."""
    if isinstance(velocity, Shared):
        return velocity.observe_all(tenant, events)
    return [velocity.observe(tenant, *event) for event in events]


@cache
def private_redis() -> PrivateRedis:
    """Start the server that the tests of this process share; it ends with the process."""
    server = PrivateRedis()
    atexit.register(server.close)
    server.start()
    return server


@cache
def _private_cluster() -> PrivateCluster:
    cluster = PrivateCluster()
    atexit.register(cluster.close)
    # Of events under way at once, those that a node asks for the script of come in any order.
    for node in cluster.masters:
        node.tell("SCRIPT", "LOAD", OBSERVE.text)
    return cluster


@cache
def _shared(url: str) -> Shared:
    shared = Shared(url)
    atexit.register(shared.close)
    return shared
