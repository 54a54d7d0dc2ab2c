"""Resolve: finds the addresses of receivers' names, so that a name that nobody answers for holds up no other.

The resolver of the C library keeps a thread for as long as a name server is silent, so that a few names of
one tenant could take every thread there is. This one asks from the event loop: a name costs a few hundred
bytes while it is waited for. /etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf are heeded as usual.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from vettance.webhooks.retry_policy import RESOLVE_S_MAX

if TYPE_CHECKING:
    import aiodns

#: For how long the addresses of a name are taken as known.
FOUND_S: Final = 15.0
#: For how long a name that could not be resolved is not asked for again: what waits for it fails at once.
FAILED_S: Final = 5.0
_NAMES_MAX: Final = 4096
# The first question waits so long, each repetition twice as long as the one before. A server known to be
# quick is given less at first, but never less than a quarter of a second (c-ares, `ares_metrics.c`).
_FIRST_S: Final = 1.0
_TRIES: Final = 4

#: (family, (address, port)), as `socket.connect` takes it.
Address = tuple[int, tuple[str, int]]


class ResolutionFailure(Exception):
    """A name has no address, or nobody answered for it in time."""


class Resolver:
    """Finds addresses of names, and remembers for some seconds what it found or did not find.

    `servers` (addresses, each with or without a port) are asked in place of those of the system.
    """

    def __init__(self, servers: Sequence[str] = ()) -> None:
        self._servers = servers
        self._resolver: aiodns.DNSResolver | None = None
        #: Name → until when it is known (seconds of `time.monotonic`), and its addresses; none if it failed.
        self._known: dict[str, tuple[float, tuple[tuple[int, str], ...]]] = {}
        #: Those who want the same name wait for the same answer.
        self._asked: dict[str, asyncio.Task[tuple[tuple[int, str], ...]]] = {}

    async def find(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a name or literal address, best first. Raises `ResolutionFailure`."""
        with contextlib.suppress(ValueError):
            literal = ip_address(host)
            return [(socket.AF_INET if literal.version == 4 else socket.AF_INET6, (host, port))]
        until_s, found = self._known.get(host, (0.0, ()))
        if time.monotonic() >= until_s:
            asked = self._asked.get(host)
            if asked is None:
                asked = self._asked[host] = asyncio.create_task(self._ask(host))
                asked.add_done_callback(lambda _: self._asked.pop(host, None))
            # One of them giving up must not take the answer from the others.
            found = await asyncio.shield(asked)
        if not found:
            raise ResolutionFailure
        return [(family, (address, port)) for family, address in found]

    async def _ask(self, host: str) -> tuple[tuple[int, str], ...]:
        import aiodns  # The library is loaded where names are asked for only.

        if self._resolver is None:
            self._resolver = aiodns.DNSResolver(list(self._servers), timeout=_FIRST_S, tries=_TRIES)
        found: dict[tuple[int, str], None] = {}
        with contextlib.suppress(aiodns.error.DNSError, TimeoutError, UnicodeError):
            async with asyncio.timeout(RESOLVE_S_MAX):
                answer = await self._resolver.getaddrinfo(host, type=socket.SOCK_STREAM)
            found = {(int(node.family), node.addr[0].decode()): None for node in answer.nodes}
        if len(self._known) >= _NAMES_MAX:
            self._known.clear()
        self._known[host] = (time.monotonic() + (FOUND_S if found else FAILED_S), tuple(found))
        return tuple(found)

    async def close(self) -> None:
        """Ask nobody any more."""
        for asked in tuple(self._asked.values()):
            asked.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None
