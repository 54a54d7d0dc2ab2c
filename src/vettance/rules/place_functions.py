"""The words about networks, places and times; see `functions.py` for what all words promise."""

import functools
import math
import socket
from collections.abc import Callable
from typing import Any, Final

from vettance.clock import DAY_MS, HOUR_MS
from vettance.rules.domain import HOUR, WEEKDAY, Domain
from vettance.rules.schema import Type
from vettance.rules.word import RuleWord, entering
from vettance.wire.numbers import read_whole

NUMBER, TEXT, BOOL, LIST = Type.NUMBER, Type.TEXT, Type.BOOL, Type.LIST

EARTH_RADIUS_KM: Final = 6371.0088  # Mean radius of WGS 84 (Moritz, Geodetic Reference System 1980).

PLACES: dict[str, RuleWord] = {}
_place = entering(PLACES)

# --- Network addresses ---


def _packed(address: str) -> tuple[int, int] | None:
    """Return (bits, number) of an IP address, an IPv4-mapped IPv6 address as its IPv4; None if it is none."""
    try:
        if ":" not in address:
            return 32, int.from_bytes(socket.inet_pton(socket.AF_INET, address), "big")
        number_of = int.from_bytes(socket.inet_pton(socket.AF_INET6, address), "big")
    except (OSError, ValueError):
        return None
    return (32, number_of & 0xFFFFFFFF) if number_of >> 32 == 0xFFFF else (128, number_of)


def _network_test(networks: Any) -> Callable[[str], bool | None]:
    """Group networks by size, so that an address is looked up once for each size, however many there are."""
    found: dict[tuple[int, int], set[int]] = {}
    for text in (networks,) if isinstance(networks, str) else networks:
        address, slash, size = str(text).partition("/")
        packed = _packed(address)
        length = read_whole(size, 0, 128) if slash else packed and packed[0]
        if packed is None or length is None:
            raise ValueError('a network is written like "10.0.0.0/8" or "2001:db8::/32"')
        bits, base = packed
        shift = bits - length
        if shift < 0 or base >> shift << shift != base:
            raise ValueError('the address of a network has no bits beyond its size, as in "10.0.0.0/8"')
        found.setdefault((bits, shift), set()).add(base >> shift)
    groups = tuple((bits, shift, frozenset(bases)) for (bits, shift), bases in found.items())

    def inside(ip: str) -> bool | None:
        packed = _packed(ip)
        if packed is None:
            return None
        bits, address = packed
        return any(bits == wide and address >> shift in bases for wide, shift, bases in groups)

    return inside


@_place(
    {"ip": TEXT, "networks": (TEXT, LIST)},
    BOOL,
    literal=("networks",),
    total=False,
    cost=25,
    prepare=_network_test,
)
def in_network(ip: str, networks: Any) -> bool | None:
    """True when the IP address lies in the network, or in one of a list; unknown when it is no address.

    Example: `in_network(ip, ["10.0.0.0/8", "2001:db8::/32"])`
    """
    return _network_test(networks)(ip)


def _subnet(ip: str, ipv4_bits: int, ipv6_bits: int) -> str | None:
    packed = _packed(ip)
    if packed is None:
        return None
    bits, address = packed
    size = ipv4_bits if bits == 32 else ipv6_bits
    base = (address >> (bits - size) << (bits - size)).to_bytes(bits // 8, "big")
    return f"{socket.inet_ntop(socket.AF_INET if bits == 32 else socket.AF_INET6, base)}/{size}"


def _subnet_of(ipv4_bits: float, ipv6_bits: float) -> Callable[[str], str | None]:
    if ipv4_bits not in range(1, 33) or ipv6_bits not in range(1, 129):
        raise ValueError("subnet takes 1 to 32 bits for IPv4 and 1 to 128 for IPv6, whole numbers")
    return functools.partial(_subnet, ipv4_bits=int(ipv4_bits), ipv6_bits=int(ipv6_bits))


@_place(
    {"ip": TEXT, "ipv4_bits": NUMBER, "ipv6_bits": NUMBER},
    TEXT,
    literal=("ipv4_bits", "ipv6_bits"),
    total=False,
    cost=25,
    prepare=_subnet_of,
)
def subnet(ip: str, ipv4_bits: int, ipv6_bits: int) -> str | None:
    """The network an IP address lies in, of so many bits for each kind of address: good as a key.

    Example: `count(by=subnet(ip, 24, 64), within="1h") > 100`
    """
    return _subnet(ip, ipv4_bits, ipv6_bits)


# --- Places and times ---


@_place(
    {"latitude_1": NUMBER, "longitude_1": NUMBER, "latitude_2": NUMBER, "longitude_2": NUMBER},
    NUMBER,
    total=False,
    cost=40,
    domain=Domain(low=0, high=math.ceil(math.pi * EARTH_RADIUS_KM)),
)
def distance_km(latitude_1: float, longitude_1: float, latitude_2: float, longitude_2: float) -> float | None:
    """The distance of two places in kilometres along the surface; unknown when one is not on the globe.

    Haversine formula on a sphere of the mean radius of WGS 84, 6371.0088 km; off by at most about 0.5 %.

    Example: `distance_km(location.latitude, location.longitude, 51.5, -0.12) > 500`
    """
    if not (-90 <= latitude_1 <= 90 and -90 <= latitude_2 <= 90):
        return None
    if not (-180 <= longitude_1 <= 180 and -180 <= longitude_2 <= 180):
        return None
    phi_1, phi_2 = math.radians(latitude_1), math.radians(latitude_2)
    half = math.sin((phi_2 - phi_1) / 2) ** 2
    half += math.cos(phi_1) * math.cos(phi_2) * math.sin(math.radians(longitude_2 - longitude_1) / 2) ** 2
    # Rounding can carry the sum just past 1 for opposite points.
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


@_place({"moment_ms": NUMBER}, NUMBER, domain=HOUR)
def hour_of(moment_ms: float) -> int:
    """The hour of the day, 0 to 23 in UTC, of a moment in Unix milliseconds.

    Example: `hour_of(occurred_at_ms) < 5`
    """
    return int(moment_ms // HOUR_MS % 24)


@_place({"moment_ms": NUMBER}, NUMBER, domain=WEEKDAY)
def weekday_of(moment_ms: float) -> int:
    """The day of the week in UTC of a moment in Unix milliseconds: 1 is Monday, 7 is Sunday (ISO 8601).

    Example: `weekday_of(occurred_at_ms) >= 6`
    """
    # The first of January 1970 was a Thursday.
    return int((moment_ms // DAY_MS + 3) % 7) + 1
