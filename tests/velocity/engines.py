"""The engines of the state port, each made as the tests ask it: without awaiting."""

import atexit
from functools import cache

from tests.redis_link.redis_server import PrivateRedis, Shared
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Observation, VelocityAnswer

ENGINES = ("memory", "redis")


def make_velocity(engine: str) -> MemoryVelocity | Shared:
    """Return an engine without any memory; the tests share one server."""
    return MemoryVelocity() if engine == "memory" else _shared().emptied()


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
def _shared() -> Shared:
    shared = Shared(private_redis().url)
    atexit.register(shared.close)
    return shared
