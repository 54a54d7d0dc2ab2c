"""The invented world that synthetic traffic comes from: places, networks, devices, shops and names.

Addresses are of blocks that are nobody's on the Internet (RFC 5737, RFC 6598, RFC 3849, RFC 2544), domains
of RFC 2606, and the rest is invented, so that no generated event points at a real person or machine. The
throw-away mail domains are the exception: they are real and public, because recognising them is part of what
is tried out.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

#: The year 10000, which ISO 8601 cannot write in four digits.
END_MS_MAX: Final = 253_402_300_800_000

Choice = TypeVar("Choice")


class Country(NamedTuple):
    """Where people live: ISO 3166-1 alpha-2 code, currency, offset from UTC, and coordinates in degrees.

    `weight` is the share of customers, in no unit.
    """

    country: str
    currency: str
    utc_offset_h: int
    latitude: float
    longitude: float
    weight: int


#: Cities with their rounded coordinates (two decimals are about a kilometre). The weights are our choice.
PLACES: Final = (
    Country("DE", "EUR", 1, 52.52, 13.40, 16),
    Country("DE", "EUR", 1, 48.14, 11.58, 10),
    Country("FR", "EUR", 1, 48.86, 2.35, 14),
    Country("ES", "EUR", 1, 40.42, -3.70, 8),
    Country("IT", "EUR", 1, 45.46, 9.19, 8),
    Country("NL", "EUR", 1, 52.37, 4.90, 6),
    Country("IE", "EUR", 0, 53.35, -6.26, 3),
    Country("GB", "GBP", 0, 51.51, -0.13, 14),
    Country("US", "USD", -5, 40.71, -74.01, 10),
    Country("US", "USD", -8, 34.05, -118.24, 6),
    Country("CA", "CAD", -5, 43.65, -79.38, 3),
    Country("AU", "AUD", 10, -33.87, 151.21, 2),
)
PLACE_WEIGHTS: Final = tuple(place.weight for place in PLACES)


class Shop(NamedTuple):
    """A kind of merchant: median ticket as a multiple of the customer's own, and its log-scale spread."""

    kind: str
    ticket: float
    spread: float
    in_person: bool


#: Ratios and spreads are our choice: groceries small and steady, travel and electronics large and rare.
SHOPS: Final = (
    Shop("grocery", 0.8, 0.5, in_person=True),
    Shop("restaurant", 0.9, 0.6, in_person=True),
    Shop("transport", 0.4, 0.5, in_person=True),
    Shop("pharmacy", 0.6, 0.5, in_person=True),
    Shop("fuel", 1.4, 0.3, in_person=True),
    Shop("fashion", 1.5, 0.6, in_person=False),
    Shop("books", 0.6, 0.5, in_person=False),
    Shop("streaming", 0.4, 0.1, in_person=False),
    Shop("games", 0.7, 0.7, in_person=False),
    Shop("electronics", 3.5, 0.8, in_person=False),
    Shop("travel", 6.0, 0.8, in_person=False),
)

DESKTOP_AGENTS: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/139.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:142.0) Gecko/20100101 Firefox/142.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0",
)
PHONE_AGENTS: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/139.0.0.0 Mobile Safari/537.36",
    "Shop/8.4.1 (iOS 18.5)",
    "Shop/8.4.0 (Android 15)",
)
AUTOMATION_AGENTS: Final = (
    "python-requests/2.32.4",
    "curl/8.14.1",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "HeadlessChrome/139.0.0.0 Safari/537.36",
    "Go-http-client/2.0",
)

_FIRST_NAMES: Final = """
alex amira anna ben carla chen dana diego elena emma farid felix greta hana hugo ines ivan jana
jonas kofi lea leon lina luca maja marco maria mila mina nadia nils noor olga omar paul petra rosa
sam sara sofia tariq theo tom uma vera victor wei yara zoe
"""
FIRST_NAMES: Final = tuple(_FIRST_NAMES.split())
_LAST_NAMES: Final = """
adler bauer becker blanc brandt costa diaz dubois egger evans fischer garcia hansen haas iyer jansen
jones kaya keller kim klein kova lang lopez martin meyer moreau muller nowak okafor olsen patel
perez peters quinn ricci rossi russo santos schmidt silva singh smit stone torres vogel wagner weber
wong yilmaz ziegler
"""
LAST_NAMES: Final = tuple(_LAST_NAMES.split())
MAIL_DOMAINS: Final = (
    "mail.example",
    "postbox.example",
    "inbox.example",
    "letters.example",
    "office.example",
)
DISPOSABLE_DOMAINS: Final = (
    "10minutemail.com",
    "dispostable.com",
    "guerrillamail.com",
    "mailinator.com",
    "maildrop.cc",
    "sharklasers.com",
    "temp-mail.org",
    "trashmail.com",
    "yopmail.com",
)


class Device(NamedTuple):
    """A browser or an app on one machine."""

    fingerprint: str
    external_id: str
    user_agent: str
    channel: str  # "web" | "app"


class EventOrigin(NamedTuple):
    """Where an event comes from: the device and the network, and coordinates when the device tells them."""

    ip: str
    country: str
    device: Device | None
    coordinates: tuple[float, float] | None = None


def hex_text(rng: Random, digits: int) -> str:
    """Return random hex digits."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def make_device(rng: Random, *, phone: bool) -> Device:
    """Make a device nobody has used before."""
    agent = pick(rng, PHONE_AGENTS if phone else DESKTOP_AGENTS)
    channel = "app" if agent.startswith("Shop/") else "web"
    return Device(hex_text(rng, 32), "dev_" + hex_text(rng, 12), agent, channel)


def pick(rng: Random, choices: Sequence[Choice]) -> Choice:
    """Choose one of a sequence, each equally likely."""
    return choices[int(rng.random() * len(choices))]


def residential_ip(rng: Random) -> str:
    """Return an IPv4 address of a home line: 100.64.0.0/10, kept for carriers' networks by RFC 6598."""
    bits = rng.getrandbits(22)
    return f"100.{64 + (bits >> 16)}.{bits >> 8 & 255}.{bits & 255}"


def residential_prefix(rng: Random) -> str:
    """Return a /64 of a home line with IPv6: 2001:db8::/32, the documentation range of RFC 3849."""
    return f"2001:db8:{rng.getrandbits(16):x}:{rng.getrandbits(16):x}"


def mobile_ip(rng: Random, place: int) -> str:
    """Return an exit of a phone network: few addresses that many people share (203.0.113.0/24)."""
    return f"203.0.113.{16 * place + rng.getrandbits(4)}"


def roaming_ip(rng: Random, place: int) -> str:
    """Return where somebody on the move comes from: a phone network, a stranger's line, or a public place.

    Each place has three phone networks that change the address at will within 64 prefixes of 24 bits, and
    forty hotels, cafes and shared offices with an address each. The parts are one half, three and two tenths.
    All are among the home lines, as carriers keep them behind the same kind of address.
    """
    draw = rng.random()
    if draw >= 0.7:
        return residential_ip(rng)
    if draw < 0.5:
        prefix, host = 192 * place + int(rng.random() * 192), rng.getrandbits(8)
    else:
        prefix, host = 8192 + 40 * place + int(rng.random() * 40), 1
    return f"100.{64 + (prefix >> 8)}.{prefix & 255}.{host}"


def hosting_ip(rng: Random) -> str:
    """Return an address of a data centre (192.0.2.0/24)."""
    return f"192.0.2.{rng.getrandbits(8)}"


def tunnel_ip(rng: Random) -> str:
    """Return an exit of a VPN that honest people and others share (198.51.100.0/24)."""
    return f"198.51.100.{rng.getrandbits(8)}"


def exit_ip(rng: Random) -> str:
    """Return an exit of one of the many VPNs and proxies that honest customers do not use (198.18.0.0/15)."""
    bits = rng.getrandbits(17)
    return f"198.{18 + (bits >> 16)}.{bits >> 8 & 255}.{bits & 255}"


def poisson(rng: Random, mean: float) -> int:
    """Draw from a Poisson distribution by multiplying uniforms (Knuth); meant for small means."""
    count, left, bound = 0, rng.random(), math.exp(-mean)
    while left > bound:
        count += 1
        left *= rng.random()
    return count


def lognormal(rng: Random, median: float, spread: float) -> float:
    """Draw from a log-normal distribution given by its median and the deviation of its logarithm."""
    return median * math.exp(rng.normalvariate(0.0, spread))
