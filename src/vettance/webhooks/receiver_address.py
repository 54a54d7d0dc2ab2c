"""Addresses of receivers: which URLs may be subscribed, and which machines may be connected to.

A webhook makes this service send requests to places that its tenants choose. What must never be reached that
way is anything that only this machine or its network can reach: loopback, private ranges, cloud metadata.
"""

import functools
import ipaddress
import re
import socket
from typing import Final

import msgspec

URL_CHARS_MAX: Final = 1024
_HOST_CHARS_MAX: Final = 253  # RFC 1035, section 2.3.4, without the trailing dot

# Authority and the rest, in printable ASCII without the characters that parsers read in different ways.
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z]{1,10})://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[!$-;=?-Z_a-z~\[\]|]*)?(?:\?[!$-;=?-Z_a-z~\[\]|]*)?)",
    re.ASCII,
)
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_LOOKS_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.ASCII)

# Names that lead inside a network only: RFC 6761, RFC 6762, RFC 8375, ICANN's reservation of `internal`
# (2024-07-29), and `onion` (RFC 7686), which no ordinary resolver may be asked.
_LOCAL_NAMES: Final = ("localhost", "localdomain", "local", "internal", "home.arpa", "onion")

# The list of the Fetch standard (fetch.spec.whatwg.org, "bad port"), from 1024 up; below only 443 is taken.
_BAD_PORTS: Final = frozenset(
    (
        *(1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566),
        *(6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    )
)
_PORTS: Final = {"https": 443, "http": 80}

# IANA IPv4 Special-Purpose Address Registry: what is not globally reachable, multicast, and reserved;
# 192.88.99.0/24 is the former 6to4 relay (RFC 7526), 168.63.129.16 answers inside Microsoft's cloud only.
_FORBIDDEN_4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
    )
)
# Of IPv6 only global unicast (RFC 4291, section 2.4) is taken, without what the IANA IPv6 Special-Purpose
# Address Registry sets apart there: protocol assignments with Teredo, documentation, 6to4.
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_FORBIDDEN_6: Final = tuple(
    ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
# Behind this prefix (RFC 6052) a translator reaches the IPv4 address in the last four bytes.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP: Final = (
    0x0000_5EFE  # RFC 5214, section 6.1: before an IPv4 address, with or without the universal bit
)


class AddressForbidden(Exception):
    """A URL or an address that webhooks are not sent to; the message says why, for the tenant."""


class ReceiverTarget(msgspec.Struct, frozen=True):
    """A receiver's URL, taken apart. `host` is a name or a canonical IP literal; `path` has the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@functools.lru_cache(maxsize=4096)
def read_target(url: str, *, unsafe: bool = False) -> ReceiverTarget:
    """Take a receiver's URL apart. Raises `AddressForbidden` for what two parsers might read differently.

    With `unsafe`, http and local receivers are taken too, for development.
    """
    if len(url) > URL_CHARS_MAX:
        raise AddressForbidden(f"must not be longer than {URL_CHARS_MAX} characters")
    match = _URL.fullmatch(url)
    if match is None:
        raise AddressForbidden(
            "must be an https URL in ASCII, without user information or fragment (names in their xn-- form)"
        )
    scheme = match["scheme"].lower()
    if scheme != "https" and not (unsafe and scheme == "http"):
        raise AddressForbidden("must be an https URL")
    port = int(match["port"]) if match["port"] else _PORTS[scheme]
    _check_port(port, unsafe=unsafe)
    host = _read_host(match["host"].lower(), unsafe=unsafe)
    path = match["path"]
    return ReceiverTarget(scheme, host, port, path if path.startswith("/") else "/" + path)


def _check_port(port: int, *, unsafe: bool) -> None:
    if not 0 < port <= 65535:
        raise AddressForbidden("must have a port from 1 to 65535")
    if not unsafe and port != 443 and (port < 1024 or port in _BAD_PORTS):
        raise AddressForbidden("must use port 443, or one from 1024 up that no other protocol uses")


def _read_host(host: str, *, unsafe: bool) -> str:
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise AddressForbidden("must not name a malformed IPv6 address") from None
        check_address(str(address), unsafe=unsafe)
        return str(address)
    labels = host.split(".")
    if _LOOKS_NUMERIC.fullmatch(labels[-1]) or (labels[-1] == "" and _LOOKS_NUMERIC.fullmatch(labels[-2])):
        # Many resolvers read 127.1, 0177.0.0.1, 0x7f.1 and 2130706433 as an address; one spelling is taken.
        try:
            literal = ipaddress.IPv4Address(host)
        except ValueError:
            raise AddressForbidden("must write an IPv4 address as four decimal numbers") from None
        check_address(str(literal), unsafe=unsafe)
        return str(literal)
    if len(host) > _HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressForbidden("must name a host in letters, digits and hyphens, without a dot at its end")
    if not unsafe and (len(labels) == 1 or any(host == n or host.endswith("." + n) for n in _LOCAL_NAMES)):
        raise AddressForbidden("must name a host of the public internet")
    return host


@functools.lru_cache(maxsize=4096)
def check_address(text: str, *, unsafe: bool = False) -> None:
    """Check the IP address of a connection. Raises `AddressForbidden` unless it is a public one."""
    if unsafe:
        return
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AddressForbidden("resolves to something that is no IP address") from None
    if not _is_public(address):
        raise AddressForbidden(
            "must not lead to a loopback, private, link-local, metadata or reserved address"
        )


def check_receiver(text: str, *, unsafe: bool = False) -> None:
    """Check the IP address of a receiver.

    Raises `AddressForbidden` for any that only this machine or its network can reach, and for its
    own: what listens on a public address of this host is often meant for nobody else.
    """
    check_address(text, unsafe=unsafe)
    if not unsafe and is_own(text):
        raise AddressForbidden("must not lead to an address of the machine that sends webhooks")


def is_own(text: str) -> bool:
    """Tell whether an IP address belongs to an interface of this host, written in whichever way.

    The system answers by its routes of now: to an address of its own it goes from this very address. To
    connect a UDP socket sends nothing.
    """
    address = ipaddress.ip_address(text)
    within = address if isinstance(address, ipaddress.IPv4Address) else _within(address) or address
    family = socket.AF_INET if within.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(within), 9))  # Any port; 9 is that of the discard protocol (RFC 863).
            return ipaddress.ip_address(probe.getsockname()[0]) == within
    except OSError:
        return False  # There is no way to it at all.


def _within(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address is another spelling of."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _FORBIDDEN_4)
    if (within := _within(address)) is not None:
        return _is_public(within)
    if address.scope_id is not None:
        return False
    number = int(address)
    if (number >> 32 & 0xFDFFFFFF) == _ISATAP and not _is_public(ipaddress.IPv4Address(number & 0xFFFFFFFF)):
        return False
    return address in _GLOBAL_6 and not any(address in network for network in _FORBIDDEN_6)
