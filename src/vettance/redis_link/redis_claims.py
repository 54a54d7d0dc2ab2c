"""Claims in Redis: which of several processes is at work on a request that any of them may have received."""

import hashlib
import secrets
from typing import Final

from vettance.redis_link.redis_connection import LuaScript, RedisLine

PREFIX: Final = "vettance"
#: How long a claim lasts that nobody gives up: longer than a request takes, and no longer than its caller
#: would wait behind a process that died.
CLAIM_S: Final = 5.0

LEASE: Final = LuaScript(__package__, "lease.lua")
_HOLDER_BYTES: Final = 8
_NAME_BYTES: Final = 16  # As many as a key: names of different requests never meet.


class SharedClaims:
    """Implements `port.Claims` for all processes with the same secret on one server."""

    def __init__(self, line: RedisLine, secret: bytes) -> None:
        self._line = line
        self._secret = secret

    async def take(self, tenant: str, name: str) -> bytes | None:
        """Become the one at work on `name`; returns the token of the claim, None while another has it."""
        holder = secrets.token_bytes(_HOLDER_BYTES)
        words = (b"SET", self._key(tenant, name), holder, b"NX", b"PX", b"%d" % (CLAIM_S * 1000))
        return holder if await self._line.call(*words) else None

    async def give_up(self, tenant: str, name: str, holder: bytes) -> None:
        """Let another take it at once, if it is still ours."""
        await self._line.run(LEASE, (self._key(tenant, name),), (holder, b"0"))

    def _key(self, tenant: str, name: str) -> bytes:
        # Callers may have put names of persons into it, and none of those may be in Redis.
        told = hashlib.blake2b(name.encode(), digest_size=_NAME_BYTES, key=self._secret).hexdigest()
        return f"{PREFIX}:{{{tenant}}}:i:{told}".encode()
