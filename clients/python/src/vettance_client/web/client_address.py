"""The address of a client, from the connection and from trusted proxies only."""

import ipaddress
from collections.abc import Sequence
from typing import Literal

Network = ipaddress.IPv4Network | ipaddress.IPv6Network | Literal["unix"]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_address(peer: str | None, forwarded_for: str, proxies: Sequence[Network]) -> str | None:
    """Return the address of the client, None when it is not known.

    `peer` is who connected (empty for a Unix socket), `forwarded_for` the values of `X-Forwarded-For`, with
    commas between. It is read from its end, and only as far as trusted proxies wrote it: what a client puts
    into it himself never counts. A trusted proxy that says nothing leaves the address unknown: all visitors
    would seem to have the proxy's.
    """
    address = _read(peer or "")
    if address is None:
        if "unix" not in proxies or peer not in (None, "", "unix:"):
            return None
    elif not _is_trusted(address, proxies):
        return str(address)
    hops = [hop.strip() for hop in forwarded_for.split(",") if hop.strip()]
    if not hops:
        return None
    for hop in reversed(hops):
        address = _read(hop)
        if address is None:
            return None  # A trusted proxy does not know where the request came from.
        if not _is_trusted(address, proxies):
            break
    return None if address is None else str(address)


def _read(text: str) -> _Address | None:
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_trusted(address: _Address, proxies: Sequence[Network]) -> bool:
    return any(network != "unix" and address in network for network in proxies)
