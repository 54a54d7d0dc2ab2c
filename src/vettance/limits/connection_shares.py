"""Who holds how many connections: no address and no tenant takes those of all others."""

import ipaddress
import resource
from typing import Final

from vettance.limits.shares import DynamicShares

#: Connections of one process. Each may hold a few hundred KiB at worst, which is memory enough.
CONNECTIONS_MAX: Final = 16_384
#: Files that are kept for everything else: the store and its readers, webhooks on their way, lists, logs.
_FILES_KEPT: Final = 256
#: Whoever has one address in IPv6 has as many as this prefix has.
_PREFIX_V6: Final = 64


def connections_max() -> int:
    """Return how many connections a process can have, and have it open as many files as it is allowed to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + _FILES_KEPT
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    files = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    return max(files - _FILES_KEPT, files // 2)


class ConnectionShares:
    """Shares the connections of a process among the addresses they come from, and among tenants."""

    def __init__(self, most: int = CONNECTIONS_MAX, *, by_address: bool = True) -> None:
        """Behind proxies all come from a few addresses, which may have as many as there are."""
        self.most: Final = most
        self.by_address: Final = by_address
        self.addresses: Final = DynamicShares(most)
        self.tenants: Final = DynamicShares(most)
        self.open = 0

    def place(self) -> "ConnectionShare":
        """Return the place of one connection."""
        return ConnectionShare(self)


class ConnectionShare:
    """What one connection holds of the shares."""

    __slots__ = ("_address", "_is_taken", "_shares", "_tenant")

    def __init__(self, shares: ConnectionShares) -> None:
        self._shares = shares
        self._address: tuple[str, ...] = ()
        self._tenant: str | None = None
        self._is_taken = False

    def take(self, address: str) -> bool:
        """Count the connection; False, and nothing is counted, where there are too many of its address."""
        shares = self._shares
        if shares.open >= shares.most:
            return False
        holders = (_network_of(address),) if shares.by_address else ()
        if not shares.addresses.take(1, *holders):
            return False
        shares.open += 1
        self._address, self._is_taken = holders, True
        return True

    def belong(self, tenant: str) -> bool:
        """Count the connection for the tenant that uses it now; False where that has too many already."""
        if tenant == self._tenant:
            return True
        shares = self._shares
        if not shares.tenants.take(1, tenant):
            return False
        if self._tenant is not None:
            shares.tenants.give(1, self._tenant)
        self._tenant = tenant
        return True

    def give(self) -> None:
        """Give back what the connection holds."""
        if self._tenant is not None:
            self._shares.tenants.give(1, self._tenant)
        if self._is_taken:
            self._shares.open -= 1
            self._shares.addresses.give(1, *self._address)
        self._tenant, self._is_taken = None, False


def _network_of(address: str) -> str:
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], _PREFIX_V6), strict=False))
    except ValueError:
        return address
