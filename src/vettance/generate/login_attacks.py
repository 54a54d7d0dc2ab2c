"""Planted takeovers by offenders who know whom they imitate: from the victim's country, or with the browser.

They differ from a stranger's takeover in what they hide. One rents a VPN exit or a home line in the country
of the victim; the other was handed the victim's cookies or bought a profile, and shows the victim's own kind
of browser. Neither has the victim's device or network.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from vettance.clock import DAY_MS, MINUTE_MS
from vettance.generate.generated_event import human_signals, write_head
from vettance.generate.people import Customer
from vettance.generate.world import (
    EventOrigin,
    exit_ip,
    hex_text,
    lognormal,
    make_device,
    pick,
    poisson,
    residential_ip,
)

Step = tuple[int, bytes, str]


def take_over_by_vpn(rng: Random, people: Sequence[Customer], day: int) -> Iterator[Step]:
    """Takeover through a VPN exit or a rented home line in the victim's country, with any browser."""
    victim = choose_victim(rng, people, day)
    device = make_device(rng, phone=rng.random() < 0.3)
    ip = exit_ip(rng) if rng.random() < 0.7 else residential_ip(rng)
    yield from _enter(rng, victim, EventOrigin(ip, victim.place.country, device))


def take_over_targeted(rng: Random, people: Sequence[Customer], day: int) -> Iterator[Step]:
    """Takeover with the victim's own kind of browser, from another network in the victim's country."""
    victim = choose_victim(rng, people, day)
    known = pick(rng, victim.devices)
    device = make_device(rng, phone=False)._replace(user_agent=known.user_agent, channel=known.channel)
    ip = residential_ip(rng) if rng.random() < 0.5 else exit_ip(rng)
    yield from _enter(rng, victim, EventOrigin(ip, victim.place.country, device))


def choose_victim(rng: Random, people: Sequence[Customer], day: int) -> Customer:
    """Choose a customer who has been one for some time; anyone, when there is none."""
    for _ in range(20):
        person = pick(rng, people)
        if person.joined_day < day:
            return person
    return people[0]


def _enter(rng: Random, victim: Customer, origin: EventOrigin) -> Iterator[Step]:
    """Log in, look around, and pay or withdraw; a careful offender changes nothing that is noticed."""
    session = hex_text(rng, 20)
    clock = int(rng.random() * DAY_MS)

    def say(name: str, category: str, metadata: dict[str, Any]) -> Step:
        head = write_head(
            name, category, origin, metadata, customer=victim.id, email=victim.email, session=session
        )
        return clock, head, victim.id

    if rng.random() < 0.15:
        yield say("user.login", "AUTHENTICATION", {"outcome": "failure", "sdkSignals": human_signals(rng)})
        clock += int(lognormal(rng, 12_000, 0.6))
    yield say("user.login", "AUTHENTICATION", {"outcome": "success", "sdkSignals": human_signals(rng)})
    for _ in range(1 + poisson(rng, 0.8)):
        clock += int(lognormal(rng, 6 * MINUTE_MS, 0.9))
        amount = max(1.0, round(lognormal(rng, victim.habits.ticket * 3, 0.8), 2))
        money: dict[str, Any] = {"amount": amount, "currency": victim.place.currency, "outcome": "success"}
        if rng.random() < 0.4:
            yield say("wallet.withdrawal", "TRANSACTION", money)
        else:
            shop = f"mer_web_{pick(rng, ('electronics', 'games', 'fashion'))}_{int(rng.random() * 40):02d}"
            money |= {"merchantId": shop, "cardHash": victim.cards[0]}
            yield say("payment.attempt", "TRANSACTION", money)
