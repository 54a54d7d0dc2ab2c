"""Announcements in Redis: processes tell each other, by tenant, that there is something to read again."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from vettance.clock import DAY_MS

if TYPE_CHECKING:
    from vettance.redis_link.redis_connection import RedisLine

PREFIX: Final = "vettance"
#: As long as signals of a session count; what was announced longer ago every process has found by itself.
KEPT_S: Final = DAY_MS // 1000


class Announcements:
    """How often something was announced, by tenant. `newest` is what the newest charge of a tenant told.

    A request is charged before anything else is done for it, so what was announced
    before the request is known to the process that answers it.
    """

    def __init__(self, line: "RedisLine", name: str) -> None:
        self._line = line
        self._name = name
        self.newest: dict[str, int] = {}
        self._followed: dict[str, int] = {}

    def key(self, tenant: str) -> bytes:
        """Return the key of a tenant's count."""
        return f"{PREFIX}:{{{tenant}}}:{self._name}".encode()

    async def announce(self, tenant: str) -> None:
        """Tell every process, with its next request of a tenant. Raises `StateDown`."""
        key = self.key(tenant)
        await self._line.call(b"INCR", key)
        await self._line.call(b"EXPIRE", key, b"%d" % KEPT_S)

    async def follow(self, tenant: str, look: Callable[[], Awaitable[None]]) -> None:
        """Look if there is something that was announced since the last time; raises what that raises."""
        newest = self.newest.get(tenant, 0)
        if newest != self._followed.get(tenant, 0):
            await look()
            self._followed[tenant] = newest
