"""IP addresses in canonical form, so that one address is one key however it was written."""

import socket

_MAPPED = b"\x00" * 10 + b"\xff\xff"


def packed_ip(text: str) -> bytes | None:
    """Return the 4 or 16 bytes of an address, an IPv4-mapped IPv6 address as its IPv4; None if it is none."""
    try:
        if ":" not in text:
            return socket.inet_pton(socket.AF_INET, text)
        packed = socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError):
        return None
    return packed[12:] if packed.startswith(_MAPPED) else packed


def canonical_ip(text: str) -> str | None:
    """Return the canonical text of an address (RFC 5952 for IPv6), or None when `text` is no address."""
    packed = packed_ip(text)
    if packed is None:
        return None
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
