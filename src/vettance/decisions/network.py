"""What an IP address tells: its kind from the registries, country and network from optional offline files."""

import functools
import ipaddress
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

from vettance.events.ip_address import packed_ip
from vettance.wire.numbers import read_whole

_CACHED_ADDRESSES: Final = 8192

#: Blocks that are not the public Internet, the narrower before the wider. Source: IANA IPv4 and IPv6
#: Special-Purpose Address Registries (RFC 6890 and its updates), multicast by RFC 5771 and RFC 4291.
SPECIAL_BLOCKS: Final = (
    ("loopback", "127.0.0.0/8"),
    ("private", "10.0.0.0/8"),
    ("private", "172.16.0.0/12"),
    ("private", "192.168.0.0/16"),
    ("shared", "100.64.0.0/10"),
    ("link_local", "169.254.0.0/16"),
    ("documentation", "192.0.2.0/24"),
    ("documentation", "198.51.100.0/24"),
    ("documentation", "203.0.113.0/24"),
    ("reserved", "198.18.0.0/15"),
    ("reserved", "0.0.0.0/8"),
    ("reserved", "192.0.0.0/24"),
    ("multicast", "224.0.0.0/4"),
    ("reserved", "240.0.0.0/4"),
    ("loopback", "::1/128"),
    ("reserved", "::/128"),
    ("private", "fc00::/7"),
    ("link_local", "fe80::/10"),
    ("documentation", "2001:db8::/32"),
    ("documentation", "3fff::/20"),
    ("reserved", "100::/64"),
    ("reserved", "2001:2::/48"),
    ("multicast", "ff00::/8"),
)


def _first_bits(block: str) -> tuple[int, int, int]:
    network = ipaddress.ip_network(block)
    shift = network.max_prefixlen - network.prefixlen
    return network.version, shift, int(network.network_address) >> shift


#: Numbers of autonomous systems have 32 bits (RFC 6793).
_AS_NUMBER_MAX: Final = 2**32 - 1

_BLOCKS: Final = tuple((kind, *_first_bits(block)) for kind, block in SPECIAL_BLOCKS)

#: Words in the names of networks that rent out servers. People seldom browse from them, programs often do.
#: Source: the organisation names under which such companies hold their AS numbers in the RIR databases.
#: Networks of private relays and company proxies (Akamai, Cloudflare, Zscaler) are left out on purpose.
_HOSTING: Final = re.compile(
    r"\b(?:hosting|cloud|datacenter|data ?cent(?:er|re)|dedicated|servers?|vps|colo(?:cation)?|amazon|aws"
    r"|azure|google-cloud|google cloud|digitalocean|hetzner|ovh|linode|vultr|choopa|contabo|leaseweb|scaleway"
    r"|online s\.a\.s|m247|alibaba|tencent|oracle|rackspace|ionos|hostinger|godaddy|datacamp)\b",
    re.IGNORECASE,
)


#: Every kind that an address can have, the ordinary one first.
ADDRESS_KINDS: Final = ("public", *dict.fromkeys(kind for kind, _ in SPECIAL_BLOCKS))


class IpFacts(NamedTuple):
    """What one address says. `kind` is `public` or its special block's; without files the rest is None."""

    valid: bool
    version: int | None = None
    kind: str | None = None
    country: str | None = None
    asn: int | None = None
    organisation: str | None = None
    hosting: bool | None = None
    prefix: str | None = None


INVALID: Final = IpFacts(valid=False)


class Records(Protocol):
    """A file of records by address, as the `maxminddb` package reads it."""

    def get(self, ip_address: str) -> Any:
        """Return the record of the narrowest network that holds the address, or None."""


def kind_of_address(packed: bytes) -> str:
    """Return the kind of an address of 4 or 16 bytes: `public` or that of its special-purpose block."""
    version, number = (4 if len(packed) == 4 else 6), int.from_bytes(packed, "big")
    for kind, block_version, shift, prefix in _BLOCKS:
        if version == block_version and number >> shift == prefix:
            return kind
    return "public"


#: What one site or one small provider has: a /24 is the least that is routed (RFC 7454), a /48 a site
#: (RFC 6177).
_PREFIX_BITS: Final = {4: 24, 16: 48}


def network_prefix(packed: bytes) -> str:
    """Return the network around an address of 4 or 16 bytes, as `198.51.100.0/24` or `2001:db8:7::/48`."""
    bits = _PREFIX_BITS[len(packed)]
    first = packed[: bits // 8].ljust(len(packed), b"\0")
    return f"{ipaddress.ip_address(first)}/{bits}"


class FileUnreadable(Exception):
    """A file of addresses that the settings name cannot be used; the message says which and why."""


def open_records(path: Path) -> Records:
    """Open a file in MaxMind's DB format, memory-mapped. Raises `FileUnreadable`.

    Source of the format: MaxMind DB File Format Specification 2.0.
    """
    try:
        import maxminddb
    except ImportError:
        message = f"{path}: reading it needs the optional package maxminddb (pip install 'vettance[geoip]')"
        raise FileUnreadable(message) from None
    try:
        return cast("Records", maxminddb.open_database(str(path)))
    except (OSError, ValueError, maxminddb.InvalidDatabaseError) as fault:
        raise FileUnreadable(f"{path}: {fault}") from fault


class Network:
    """Knows addresses. Country and network come from files in MaxMind's DB format, when they are given.

    Raises `FileUnreadable` for a path that cannot be used.
    """

    def __init__(self, country: Path | Records | None = None, asn: Path | Records | None = None) -> None:
        self._country = open_records(country) if isinstance(country, Path) else country
        self._asn = open_records(asn) if isinstance(asn, Path) else asn
        # A cache of its own for each instance: with other files an address has other facts.
        self.facts = functools.lru_cache(maxsize=_CACHED_ADDRESSES)(self._facts)

    def _facts(self, address: str) -> IpFacts:
        packed = packed_ip(address)
        if packed is None:
            return INVALID
        kind = kind_of_address(packed)
        country = asn = organisation = None
        if kind == "public":
            country = _country_code(_record(self._country, address))
            asn, organisation = _autonomous_system(_record(self._asn, address))
        return IpFacts(
            valid=True,
            version=4 if len(packed) == 4 else 6,
            kind=kind,
            country=country,
            asn=asn,
            organisation=organisation,
            hosting=_HOSTING.search(organisation) is not None if organisation else None,
            prefix=network_prefix(packed),
        )


def _record(records: Records | None, address: str) -> dict[str, Any]:
    if records is None:
        return {}
    try:
        found = records.get(address)
    except (ValueError, RuntimeError):
        # An IPv6 address asked of a file that holds IPv4 only, or a damaged record: nothing is known.
        return {}
    return found if isinstance(found, dict) else {}


def _country_code(record: dict[str, Any]) -> str | None:
    """Read the ISO 3166-1 alpha-2 code, in the nested form of MaxMind or the flat one of other publishers."""
    country = record.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else record.get("country_code") or country
    return code.upper() if isinstance(code, str) and len(code) == 2 else None


def _autonomous_system(record: dict[str, Any]) -> tuple[int | None, str | None]:
    """Read number and organisation of the network, in the form of MaxMind or that of other publishers."""
    number = record.get("autonomous_system_number", record.get("asn"))
    if isinstance(number, str):
        number = read_whole(number.upper().removeprefix("AS"), 0, _AS_NUMBER_MAX)
    organisation = next(
        (record[key] for key in ("autonomous_system_organization", "as_name", "name") if record.get(key)),
        None,
    )
    return (
        number if type(number) is int else None,
        organisation if isinstance(organisation, str) else None,
    )
