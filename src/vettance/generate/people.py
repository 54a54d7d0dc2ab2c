"""Ordinary customers: who they are, what they are used to, and what they do on a day.

Nothing here knows a rule. Every number is drawn from a distribution that `docs/generator.md` lists.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS
from vettance.generate.generated_event import Happening, human_signals, write_head
from vettance.generate.world import (
    FIRST_NAMES,
    LAST_NAMES,
    MAIL_DOMAINS,
    PLACE_WEIGHTS,
    PLACES,
    SHOPS,
    Country,
    EventOrigin,
    hex_text,
    lognormal,
    make_device,
    mobile_ip,
    pick,
    poisson,
    residential_ip,
    residential_prefix,
    roaming_ip,
    tunnel_ip,
)

_MERCHANTS_PER_KIND: Final = 40
_OFFICE_PEOPLE: Final = 25
_INVITES: Final = ("WELCOME10", "SPRING15", "FRIENDS5")


class Habits(NamedTuple):
    """What stays the same about a customer."""

    sessions_per_day: float
    walks_per_day: float  # payments in person
    peak_hour: float  # local time
    ticket: float  # median amount, in the currency of the home
    typo_share: float
    tells_location: bool
    uses_tunnel: bool
    signals: bool
    merchants: tuple[str, ...]
    terminals: tuple[str, ...]


class Customer:
    """A person over time: habits, and what changes now and then (devices, cards, travel)."""

    __slots__ = (
        "away",
        "away_until",
        "cards",
        "devices",
        "email",
        "habits",
        "home_ip",
        "home_place",
        "id",
        "joined_day",
        "office_ip",
        "roams",
    )

    def __init__(self, rng: Random, days: int, population: int, roaming: float = 0.0) -> None:
        self.id = make_customer_id(rng)
        self.email = make_email(rng)
        self.home_place = rng.choices(range(len(PLACES)), PLACE_WEIGHTS)[0]
        # Nine of ten are customers from before the first day; the others sign up on some day of it.
        self.joined_day = -1 if rng.random() < 0.9 else int(rng.random() * days)
        self.home_ip = residential_prefix(rng) if rng.random() < 0.3 else residential_ip(rng)
        self.office_ip = ""
        if rng.random() < 0.3:
            offices = max(1, population * 3 // 10 // _OFFICE_PEOPLE)
            office = Random(f"office:{self.home_place}:{int(rng.random() * offices)}")  # noqa: S311
            self.office_ip = residential_ip(office)
        machines = 1 + (rng.random() < 0.55) + (rng.random() < 0.15)
        phone_first = rng.random() < 0.65
        self.devices = [make_device(rng, phone=phone_first != bool(index % 2)) for index in range(machines)]
        self.cards = ["card_" + hex_text(rng, 24) for _ in range(1 + (rng.random() < 0.2))]
        self.away: int | None = None
        self.away_until = 0
        self.habits = _make_habits(rng, self.home_place)
        # Some hardly leave home and some hardly come back: Beta with a sum of 3.
        self.roams = rng.betavariate(3 * roaming, 3 * (1 - roaming)) if roaming else 0.0

    @property
    def place(self) -> Country:
        """Where the customer is now."""
        return PLACES[self.home_place if self.away is None else self.away]


def make_customer_id(rng: Random) -> str:
    """Make a customer id; honest customers and offenders get the same kind."""
    return "cus_" + hex_text(rng, 12)


def make_email(rng: Random) -> str:
    """Make an address as people choose them, at a domain reserved for examples."""
    first, last = pick(rng, FIRST_NAMES), pick(rng, LAST_NAMES)
    # Two letters between the names keep addresses apart, as accounts of one shop have different ones.
    middle = chr(97 + int(rng.random() * 26)) + chr(97 + int(rng.random() * 26))
    form = rng.random()
    if form < 0.2:
        local = f"{first}.{middle}.{last}{1950 + int(rng.random() * 58)}"
    elif form < 0.35:
        local = f"{first}{middle}{last[:3]}{int(rng.random() * 100)}"
    else:
        local = f"{first}.{middle}.{last}"
    return f"{local}@{pick(rng, MAIL_DOMAINS)}"


def _make_habits(rng: Random, place: int) -> Habits:
    country = PLACES[place].country
    merchants, terminals = [], []
    for index, shop in enumerate(SHOPS):
        if shop.in_person:
            # People use the terminals of their own town; a shop has a few.
            number = int(rng.random() ** 2 * _MERCHANTS_PER_KIND)
            terminals.append(
                f"{index}:mer_{country}{place:02d}_{shop.kind}_{number:02d}:{1 + rng.getrandbits(1)}"
            )
        elif rng.random() < 0.6:
            number = int(rng.random() ** 2 * _MERCHANTS_PER_KIND)
            merchants.append(f"{index}:mer_web_{shop.kind}_{number:02d}")
    return Habits(
        sessions_per_day=rng.gammavariate(2.0, 0.35),
        walks_per_day=rng.gammavariate(1.5, 0.4),
        peak_hour=rng.choices((8.0, 12.5, 19.0, 21.5), (2, 3, 5, 3))[0] + rng.normalvariate(0, 0.8),
        ticket=lognormal(rng, 22, 0.6),
        typo_share=rng.betavariate(1.2, 18),
        tells_location=rng.random() < 0.25,
        uses_tunnel=rng.random() < 0.06,
        signals=rng.random() < 0.6,
        merchants=tuple(merchants) or ("9:mer_web_electronics_00",),
        terminals=tuple(terminals),
    )


def live_day(rng: Random, customer: Customer, day: int, midnight_ms: int) -> Iterator[Happening]:
    """Yield what a customer does on a day (0 is the first), in no particular order.

    `midnight_ms` is the day's beginning in UTC; the customer's own clock is offset by that of the place.
    """
    if customer.joined_day > day:
        return
    if _change(rng, customer, day):
        return
    if customer.joined_day == day:
        yield from _sign_up(rng, customer, midnight_ms)
    weekend = (midnight_ms // DAY_MS + 3) % 7 + 1 >= 6  # ISO 8601; 1 January 1970 was a Thursday.
    habits = customer.habits
    for _ in range(poisson(rng, habits.sessions_per_day)):
        yield from _session(rng, customer, _moment(rng, customer, midnight_ms), weekend=weekend)
    if customer.away is None:
        for _ in range(poisson(rng, habits.walks_per_day * (1.5 if weekend else 0.9))):
            yield _walk(rng, customer, midnight_ms)


def _change(rng: Random, customer: Customer, day: int) -> bool:
    """Let a day's rare changes happen: a trip begins or ends, a device or a card is replaced.

    Returns whether the day is spent travelling, so that nobody is in two distant places within hours.
    """
    if customer.away is not None and day >= customer.away_until:
        customer.away = None
        return True
    # About six trips a year, of some days each.
    if customer.away is None and customer.joined_day != day and rng.random() < 1 / 60:
        customer.away = int(rng.random() * len(PLACES))
        customer.away_until = day + 2 + int(rng.expovariate(1 / 4))
        return True
    if rng.random() < 1 / 400:
        old = int(rng.random() * len(customer.devices))
        customer.devices[old] = make_device(rng, phone=customer.devices[old].channel == "app")
    if rng.random() < 1 / 700:
        customer.cards[0] = "card_" + hex_text(rng, 24)
    return False


def _moment(rng: Random, customer: Customer, midnight_ms: int) -> int:
    """Draw a waking moment: around the customer's own hour mostly, else anywhere from 6 to 24 o'clock."""
    hour = rng.normalvariate(customer.habits.peak_hour, 2.0) if rng.random() < 0.75 else rng.uniform(6, 24)
    # Unix milliseconds of that local hour, on the day's own side of midnight.
    return midnight_ms + int(((hour - customer.place.utc_offset_h) % 24) * HOUR_MS)


def _origin(rng: Random, customer: Customer, at_ms: int, *, weekend: bool) -> EventOrigin:
    """Choose device and network: the office in its hours, the phone's network under way, else home."""
    place = customer.place
    device = customer.devices[0] if rng.random() < 0.75 else pick(rng, customer.devices)
    phone = "Mobile" in device.user_agent or device.channel == "app"
    country = place.country
    hour = (at_ms // HOUR_MS + place.utc_offset_h) % 24
    if customer.habits.uses_tunnel and rng.random() < 0.4:
        return EventOrigin(tunnel_ip(rng), pick(rng, PLACES).country, device)
    if customer.roams and rng.random() < customer.roams:
        return EventOrigin(roaming_ip(rng, PLACES.index(place)), country, device)
    if customer.away is not None and phone and rng.random() < 0.4:
        # A roaming phone leaves through its own network at home.
        ip, country = mobile_ip(rng, customer.home_place), PLACES[customer.home_place].country
    elif customer.away is not None:
        ip = residential_ip(rng)
    elif phone and rng.random() < 0.35:
        ip = mobile_ip(rng, customer.home_place)
    elif customer.office_ip and not weekend and 9 <= hour < 17:
        ip = customer.office_ip
    else:
        ip = _home_ip(customer, at_ms)
    spot = None
    if phone and customer.habits.tells_location:
        # The last kilometres of a day's ways around the city; about 0.05 degrees.
        spot = (
            round(place.latitude + rng.normalvariate(0, 0.05), 4),
            round(place.longitude + rng.normalvariate(0, 0.05), 4),
        )
    return EventOrigin(ip, country, device, spot)


def _home_ip(customer: Customer, at_ms: int) -> str:
    """Return the home address; with IPv6 its host part is new each day (RFC 8981, temporary addresses)."""
    if ":" not in customer.home_ip:
        return customer.home_ip
    host = (at_ms // DAY_MS * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    return f"{customer.home_ip}:" + ":".join(f"{host >> shift & 0xFFFF:x}" for shift in (48, 32, 16, 0))


def _sign_up(rng: Random, customer: Customer, midnight_ms: int) -> Iterator[Happening]:
    at_ms = _moment(rng, customer, midnight_ms)
    origin = _origin(rng, customer, at_ms, weekend=False)
    session = hex_text(rng, 20)
    metadata: dict[str, Any] = {"outcome": "success"}
    if customer.habits.signals:
        metadata["sdkSignals"] = human_signals(rng)
    yield _say(customer, at_ms, "user.signup", "ACCOUNT", origin, session, metadata)
    if rng.random() < 0.4:
        at_ms += int(lognormal(rng, 120_000, 0.8))
        yield _say(customer, at_ms, "promo.redeem", "OTHER", origin, session, {"promoCode": _INVITES[0]})
    if rng.random() < 0.6:
        at_ms += int(lognormal(rng, 180_000, 0.8))
        yield _buy(rng, customer, at_ms, origin, session)


def _session(rng: Random, customer: Customer, at_ms: int, *, weekend: bool) -> Iterator[Happening]:
    origin = _origin(rng, customer, at_ms, weekend=weekend)
    session = hex_text(rng, 20)
    remembered = origin.device is not None and origin.device.channel == "app" and rng.random() < 0.5
    if not remembered:
        misses = 0
        while misses < 5 and rng.random() < customer.habits.typo_share:
            misses += 1
            yield _log_in(rng, customer, at_ms, origin, session, "failure")
            at_ms += int(lognormal(rng, 9_000, 0.5))
        if misses >= 3 and rng.random() < 0.8:
            at_ms += int(lognormal(rng, 90_000, 0.5))
            yield _say(
                customer,
                at_ms,
                "user.password_reset",
                "AUTHENTICATION",
                origin,
                session,
                {"outcome": "success"},
            )
            at_ms += int(lognormal(rng, 20_000, 0.5))
        yield _log_in(rng, customer, at_ms, origin, session, "success")
    for _ in range(poisson(rng, 0.8)):
        at_ms += int(lognormal(rng, 150_000, 0.9))
        yield _act(rng, customer, at_ms, origin, session)


def _act(rng: Random, customer: Customer, at_ms: int, origin: EventOrigin, session: str) -> Happening:
    draw = rng.random()
    if draw < 0.72:
        return _buy(rng, customer, at_ms, origin, session)
    if draw < 0.80:
        amount = round(lognormal(rng, 3 * customer.habits.ticket, 0.8), 2)
        money = {"amount": amount, "currency": customer.place.currency, "outcome": "success"}
        return _say(customer, at_ms, "wallet.withdrawal", "TRANSACTION", origin, session, money)
    if draw < 0.88:
        code = {"promoCode": pick(rng, _INVITES[1:])}
        return _say(customer, at_ms, "promo.redeem", "OTHER", origin, session, code)
    if draw < 0.95:
        return _say(customer, at_ms, "profile.updated", "ACCOUNT", origin, session, {"field": "address"})
    if draw < 0.98:
        customer.cards.append("card_" + hex_text(rng, 24))
        card = {"cardHash": customer.cards[-1], "outcome": "success"}
        return _say(customer, at_ms, "card.added", "ACCOUNT", origin, session, card)
    return _say(
        customer, at_ms, "user.password_changed", "AUTHENTICATION", origin, session, {"outcome": "success"}
    )


def _log_in(
    rng: Random, customer: Customer, at_ms: int, origin: EventOrigin, session: str, outcome: str
) -> Happening:
    metadata: dict[str, Any] = {"outcome": outcome}
    if customer.habits.signals and origin.device is not None and origin.device.channel == "web":
        metadata["sdkSignals"] = human_signals(rng)
    return _say(customer, at_ms, "user.login", "AUTHENTICATION", origin, session, metadata)


def _buy(rng: Random, customer: Customer, at_ms: int, origin: EventOrigin, session: str) -> Happening:
    metadata = _ticket(rng, customer, pick(rng, customer.habits.merchants))
    return _say(customer, at_ms, "payment.attempt", "TRANSACTION", origin, session, metadata)


def _walk(rng: Random, customer: Customer, midnight_ms: int) -> Happening:
    """A payment in person: a terminal and a card, no device and no network."""
    where, _, till = pick(rng, customer.habits.terminals).rpartition(":")
    metadata = _ticket(rng, customer, where)
    metadata["terminalId"] = f"ter_{metadata['merchantId'][4:]}_{till}"
    metadata["channel"] = "card_present"
    at_ms = _moment(rng, customer, midnight_ms)
    origin = None
    return _say(customer, at_ms, "payment.attempt", "TRANSACTION", origin, "", metadata)


def _ticket(rng: Random, customer: Customer, where: str) -> dict[str, Any]:
    """Draw a purchase: shop and habit give the amount; one in thirty is declined for lack of funds."""
    number, _, merchant = where.partition(":")
    shop = SHOPS[int(number)]
    amount = lognormal(rng, customer.habits.ticket * shop.ticket, shop.spread)
    return {
        "amount": max(0.5, round(amount, 2)),
        "currency": PLACES[customer.home_place].currency,
        "merchantId": merchant,
        "cardHash": customer.cards[0] if rng.random() < 0.85 else pick(rng, customer.cards),
        "outcome": "failure" if rng.random() < 1 / 30 else "success",
    }


def _say(
    customer: Customer,
    at_ms: int,
    name: str,
    category: str,
    origin: EventOrigin | None,
    session: str,
    metadata: dict[str, Any],
) -> Happening:
    head = write_head(
        name, category, origin, metadata, customer=customer.id, email=customer.email, session=session
    )
    return Happening(at_ms, head, customer.id)
