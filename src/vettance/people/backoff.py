"""Backoff: how tries at signing in slow down, for an account, an address, and an account from an address.

Five tries, then a pause of one second that doubles with each further failure, up to 15 minutes. An address
that has signed in to an account before is held to its own failures there and to nothing else: no stranger can
keep its user out. A user who gets in takes the failures of that account from that address off the address's
own count.
"""

import hashlib
import ipaddress
from typing import Final, NamedTuple

from vettance.clock import HOUR_MS, MINUTE_MS

TRIES: Final = 5
FIRST_PAUSE_MS: Final = 1_000
PAUSE_MS_MAX: Final = 15 * MINUTE_MS
#: After so long without a failure the count begins anew; more than the longest pause.
FORGOTTEN_MS: Final = HOUR_MS


class BackoffSubjects(NamedTuple):
    """What a try counts against, as keyed digests."""

    pair: str
    account: str
    address: str

    def counted(self, *, is_known: bool) -> tuple[str, ...]:
        """Return those that hold for a try; `is_known` is an address that signed in to the account before."""
        return (self.pair,) if is_known else self


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the network of 64 bits that one household has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
    return str(found)


def keyed(secret: bytes, kind: str, *parts: str) -> str:
    """Return a digest that tells nothing without the secret of the deployment."""
    text = "\0".join((kind, *parts)).encode(errors="replace")
    return hashlib.blake2b(text, key=secret, person=b"vettance-people", digest_size=20).hexdigest()


def subjects_of(secret: bytes, email: str, address: str) -> BackoffSubjects:
    """Return what a try at an account from an address counts against."""
    network = network_of(address)
    return BackoffSubjects(
        keyed(secret, "pair", email, network),
        keyed(secret, "account", email),
        keyed(secret, "address", network),
    )


def address_digest(secret: bytes, address: str) -> str:
    """Return what a known address is kept as."""
    return keyed(secret, "known", network_of(address))
