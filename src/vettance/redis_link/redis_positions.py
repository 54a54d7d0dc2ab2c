"""Write positions in Redis: every process knows what a tenant's reads have to see."""

import contextlib
from typing import Final

from vettance.redis_link.down import StateDown
from vettance.redis_link.redis_connection import RedisLine

#: A replica that is further behind than this is not read (VETTANCE_DATABASE_READ_LAG is smaller).
_KEPT_S: Final = 3_600
_MEMBER: Final = b"w"


class RedisPositions:
    """Implements `WritePositions`. Where Redis does not answer, reads go to the primary.

    A position is a score, which is exact up to 2^53 bytes of log (9 petabytes).
    """

    def __init__(self, line: RedisLine) -> None:
        self._line = line
        # What Redis has not taken yet: until it does, this process at least reads what it wrote.
        self._unsaved: dict[str, int] = {}

    async def note(self, tenant: str, position: int) -> None:
        """Note a position; of two the later one is kept."""
        # Until Redis has it, reads of this process go to the primary.
        position = self._unsaved[tenant] = max(position, self._unsaved.get(tenant, 0))
        key = _key(tenant)
        with contextlib.suppress(StateDown):
            await self._line.call(b"ZADD", key, b"GT", b"%d" % position, _MEMBER)
            await self._line.call(b"EXPIRE", key, b"%d" % _KEPT_S)
            if self._unsaved.get(tenant) == position:
                del self._unsaved[tenant]

    async def newest(self, tenant: str) -> int | None:
        """Return the position that a tenant's reads must see; 0 for any, None where that cannot be known."""
        if tenant in self._unsaved:
            await self.note(tenant, 0)
        if tenant in self._unsaved:
            return None
        try:
            score = await self._line.call(b"ZSCORE", _key(tenant), _MEMBER)
        except StateDown:
            return None
        return 0 if score is None else int(float(score))


def _key(tenant: str) -> bytes:
    return f"vettance:{{{tenant}}}:w".encode()
