"""Planted attacks: what each kind of fraud does, drawn from distributions and named only by the truth.

No attack looks at a rule or a threshold, and each has careful variants that look ordinary. Amounts follow
what the victim's account can pay, which the victim's own spending stands for.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.generate.generated_event import Happening, human_signals, machine_signals, write_head
from vettance.generate.login_attacks import choose_victim, take_over_by_vpn, take_over_targeted
from vettance.generate.people import Customer, make_customer_id, make_email
from vettance.generate.world import (
    AUTOMATION_AGENTS,
    DISPOSABLE_DOMAINS,
    FIRST_NAMES,
    PLACES,
    Device,
    EventOrigin,
    hex_text,
    hosting_ip,
    lognormal,
    make_device,
    pick,
    poisson,
    residential_ip,
    tunnel_ip,
)


class Attack(NamedTuple):
    """One kind of fraud. `share` is its part of all fraudulent events, `size` about how many one case has.

    `weight` multiplies the part where a traffic does not say; what has 0 is played only when asked for.
    """

    scenario: str
    share: float
    size: float
    stage: Callable[[Random, Sequence[Customer], int], Iterator[tuple[int, bytes, str]]]
    weight: float = 1.0


def _network(rng: Random, home_share: float) -> str:
    """Choose where an offender comes from: rented machines, VPN exits, or other people's home lines."""
    if rng.random() < home_share:
        return residential_ip(rng)
    return hosting_ip(rng) if rng.random() < 0.5 else tunnel_ip(rng)


def _size(rng: Random, median: float, spread: float, least: int, most: int) -> int:
    return min(most, max(least, round(lognormal(rng, median, spread))))


def take_over(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """Account takeover: a stranger logs in, often changes the way back in, and takes the money out."""
    victim = choose_victim(rng, people, day)
    near = rng.random() < 0.3  # The careful ones come from the victim's own country.
    country = victim.place.country if near else pick(rng, PLACES).country
    device = make_device(rng, phone=rng.random() < 0.3)
    origin = EventOrigin(_network(rng, 0.7 if near else 0.3), country, device)
    session = hex_text(rng, 20)
    clock = int(rng.random() * DAY_MS)

    def say(name: str, category: str, metadata: dict[str, Any]) -> tuple[int, bytes, str]:
        head = write_head(
            name, category, origin, metadata, customer=victim.id, email=victim.email, session=session
        )
        return clock, head, victim.id

    while rng.random() < 0.35:  # The password is mostly known already.
        yield say("user.login", "AUTHENTICATION", {"outcome": "failure", "sdkSignals": human_signals(rng)})
        clock += int(lognormal(rng, 12_000, 0.6))
    yield say("user.login", "AUTHENTICATION", {"outcome": "success", "sdkSignals": human_signals(rng)})
    for share, name, category, metadata in (
        (0.6, "user.password_changed", "AUTHENTICATION", {"outcome": "success"}),
        (0.35, "profile.updated", "ACCOUNT", {"field": "email"}),
        (0.2, "profile.updated", "ACCOUNT", {"field": "phone"}),
    ):
        if rng.random() < share:
            clock += int(lognormal(rng, 75_000, 0.8))
            yield say(name, category, dict(metadata))
    if rng.random() < 0.25:  # Some wait until nobody looks.
        clock += int(rng.uniform(6, 40) * HOUR_MS)
    for _ in range(1 + poisson(rng, 1.8)):
        clock += int(lognormal(rng, 4 * MINUTE_MS, 0.9))
        amount = max(1.0, round(lognormal(rng, victim.habits.ticket * 4, 0.9), 2))
        money: dict[str, Any] = {"amount": amount, "currency": victim.place.currency}
        money["outcome"] = "failure" if rng.random() < 0.2 else "success"
        if rng.random() < 0.45:
            yield say("wallet.withdrawal", "TRANSACTION", money)
        else:
            shop = f"mer_web_{pick(rng, ('electronics', 'games', 'fashion'))}_{int(rng.random() * 40):02d}"
            money |= {"merchantId": shop, "cardHash": pick(rng, victim.cards)}
            yield say("payment.attempt", "TRANSACTION", money)


def stuff(
    rng: Random, people: Sequence[Customer], day: int, *, pace: float = 1.0, botnet: float = 0.25
) -> Iterator[tuple[int, bytes, str]]:
    """Credential stuffing: leaked addresses are tried at the login, a few in a hundred of them open.

    `pace` multiplies the pauses; `botnet` is how many are spread over a rented botnet.
    """
    attempts = _size(rng, 60, 0.7, 15, 1500)
    spread = rng.random() < botnet  # One attempt or so from each address.
    exits = [
        _network(rng, 0.9 if spread else 0.2) for _ in range(attempts if spread else 1 + poisson(rng, 3))
    ]
    country = pick(rng, PLACES).country
    machines = [_script(rng) for _ in range(1 + poisson(rng, 1.5))]
    pace_ms = lognormal(rng, 6_000, 1.2) * pace
    clock = int(rng.random() * DAY_MS)
    for _ in range(attempts):
        clock += int(rng.expovariate(1 / pace_ms)) + 50
        customer, email, hit = "", make_email(rng), False
        if rng.random() < 0.5:
            victim = choose_victim(rng, people, day)
            customer, email, hit = victim.id, victim.email, rng.random() < 0.03
        metadata: dict[str, Any] = {"outcome": "success" if hit else "failure"}
        if not hit:
            metadata["failureReason"] = "bad_password" if customer else "unknown_account"
        if rng.random() < 0.5:
            metadata["sdkSignals"] = machine_signals(rng)
        origin = EventOrigin(pick(rng, exits), country, pick(rng, machines))
        yield (
            clock,
            write_head("user.login", "AUTHENTICATION", origin, metadata, customer=customer, email=email),
            customer or email,
        )


def stuff_slowly(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """Credential stuffing with patience: a login every ten minutes or so, mostly from a botnet."""
    return stuff(rng, people, day, pace=100.0, botnet=0.8)


def _script(rng: Random) -> Device:
    """Make a client that is a program; half of them name an ordinary browser."""
    device = make_device(rng, phone=False)
    return device if rng.random() < 0.5 else device._replace(user_agent=pick(rng, AUTOMATION_AGENTS))


def test_cards(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """Card testing: stolen card numbers are tried with small payments to see which still work."""
    del people, day
    cards = _size(rng, 22, 0.6, 6, 200)
    moves = rng.random() < 0.3  # Changes network and device all the time.
    origin = EventOrigin(_network(rng, 0.4), pick(rng, PLACES).country, _script(rng))
    shop = f"mer_web_{pick(rng, ('books', 'games', 'streaming'))}_{int(rng.random() * 40):02d}"
    guest = rng.random() < 0.6
    name, email, session = (
        ("", "", "") if guest else (make_customer_id(rng), make_email(rng), hex_text(rng, 20))
    )
    pace_ms = lognormal(rng, 15_000, 1.2)
    ticket = lognormal(rng, 2.0, 0.5)
    clock = int(rng.random() * DAY_MS)
    card = ""
    for _ in range(cards):
        clock += int(rng.expovariate(1 / pace_ms)) + 200
        if not card or rng.random() < 0.85:
            card = "card_" + hex_text(rng, 24)
        if moves and rng.random() < 0.3:
            origin = EventOrigin(_network(rng, 0.6), origin.country, _script(rng))
        metadata = {
            "amount": max(0.5, round(lognormal(rng, ticket, 0.4), 2)),
            "currency": "EUR",
            "merchantId": shop,
            "cardHash": card,
            "outcome": "failure" if rng.random() < 0.7 else "success",
        }
        head = write_head(
            "payment.attempt", "TRANSACTION", origin, metadata, customer=name, email=email, session=session
        )
        yield clock, head, name


def capture_terminal(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """Terminal compromise: for some days a till takes copied cards of people who never come there."""
    place = int(rng.random() * len(PLACES))
    kind = pick(rng, ("grocery", "fuel", "restaurant"))
    merchant = f"mer_{PLACES[place].country}{place:02d}_{kind}_{int(rng.random() * 40):02d}"
    terminal = f"ter_{merchant[4:]}_{1 + rng.getrandbits(1)}"
    days = rng.uniform(1, 14)
    for _ in range(_size(rng, 12, 0.6, 3, 80)):
        victim = choose_victim(rng, people, day)
        metadata = {
            "channel": "card_present",
            "amount": max(1.0, round(lognormal(rng, victim.habits.ticket * 2.5, 0.7), 2)),
            "currency": PLACES[place].currency,
            "merchantId": merchant,
            "terminalId": terminal,
            "cardHash": victim.cards[0],
            "outcome": "failure" if rng.random() < 0.1 else "success",
        }
        clock = int(rng.random() * days * DAY_MS)
        head = write_head(
            "payment.attempt", "TRANSACTION", None, metadata, customer=victim.id, email=victim.email
        )
        yield clock, head, victim.id


def found_ring(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """New-account ring: one group opens many accounts on few devices and lives off welcome gifts."""
    del people, day
    accounts = _size(rng, 7, 0.5, 3, 40)
    place = pick(rng, PLACES)
    devices = [make_device(rng, phone=rng.random() < 0.5) for _ in range(1 + poisson(rng, 0.8))]
    exits = [_network(rng, 0.6) for _ in range(1 + poisson(rng, 1.2))]
    throwaway = rng.random() < 0.65
    card = "card_" + hex_text(rng, 24)
    pause_ms = lognormal(rng, 40 * MINUTE_MS, 1.2)
    first = int(rng.random() * DAY_MS)
    for number in range(accounts):
        first += int(rng.expovariate(1 / pause_ms)) + 20_000
        clock = first
        customer = make_customer_id(rng)
        local = (
            f"{pick(rng, FIRST_NAMES)}{hex_text(rng, 4)}" if rng.random() < 0.5 else f"deal.hunter+{number}"
        )
        email = f"{local}@{pick(rng, DISPOSABLE_DOMAINS)}" if throwaway else make_email(rng)
        origin, session = EventOrigin(pick(rng, exits), place.country, pick(rng, devices)), hex_text(rng, 20)
        steps: list[tuple[str, str, dict[str, Any]]] = [
            ("user.signup", "ACCOUNT", {"outcome": "success", "sdkSignals": human_signals(rng)}),
            ("promo.redeem", "OTHER", {"promoCode": "WELCOME10"}),
        ]
        if rng.random() < 0.6:
            amount = round(rng.uniform(10, 25), 2)
            shop = f"mer_web_fashion_{int(rng.random() * 40):02d}"
            mine = card if rng.random() < 0.6 else "card_" + hex_text(rng, 24)
            money = {"amount": amount, "currency": place.currency, "merchantId": shop, "cardHash": mine}
            steps.append(("payment.attempt", "TRANSACTION", money | {"outcome": "success"}))
        for name, category, metadata in steps:
            yield (
                clock,
                write_head(name, category, origin, metadata, customer=customer, email=email, session=session),
                customer,
            )
            clock += int(lognormal(rng, 60_000, 0.7))


def run_bot(rng: Random, people: Sequence[Customer], day: int) -> Iterator[tuple[int, bytes, str]]:
    """Bots: a program buys up what is scarce, or tries gift cards, faster and more evenly than people do."""
    del people, day
    buys = rng.random() < 0.6
    origin = EventOrigin(_network(rng, 0.4), pick(rng, PLACES).country, _script(rng))
    pace_ms = lognormal(rng, 2_500, 0.8)
    clock = int(rng.random() * DAY_MS)
    name = make_customer_id(rng)
    email, session = make_email(rng), hex_text(rng, 20)
    for _ in range(_size(rng, 30, 0.6, 10, 300)):
        clock += max(100, int(rng.normalvariate(pace_ms, pace_ms / 10)))
        metadata: dict[str, Any] = {"sdkSignals": machine_signals(rng)}
        if buys:
            metadata |= {"amount": 49.9, "currency": "EUR", "merchantId": "mer_web_fashion_07"}
            metadata["outcome"] = "failure" if rng.random() < 0.6 else "success"
        else:
            metadata["outcome"] = "failure" if rng.random() < 0.97 else "success"
        head = write_head(
            "checkout.submit" if buys else "giftcard.check",
            "TRANSACTION" if buys else "OTHER",
            origin,
            metadata,
            customer=name,
            email=email,
            session=session,
        )
        yield clock, head, name


#: Every kind of fraud with its part of all fraudulent events and the usual size of a case. The parts of those
#: that are played unasked sum to 1.
ATTACKS: Final = (
    Attack("account_takeover", 0.15, 6, take_over),
    Attack("vpn_takeover", 0.05, 3, take_over_by_vpn),
    Attack("targeted_takeover", 0.05, 3, take_over_targeted),
    Attack("credential_stuffing", 0.20, 75, stuff),
    Attack("card_testing", 0.18, 26, test_cards),
    Attack("terminal_compromise", 0.12, 14, capture_terminal),
    Attack("new_account_ring", 0.15, 20, found_ring),
    Attack("bot", 0.10, 36, run_bot),
    Attack("slow_stuffing", 0.20, 75, stuff_slowly, weight=0.0),
)


def stage(
    attack: Attack, rng: Random, people: Sequence[Customer], *, day: int, midnight_ms: int, case: str
) -> list[Happening]:
    """Play one case of an attack that begins on a day; its last events may fall on later days."""
    return [
        Happening(midnight_ms + clock, head, customer, attack.scenario, case)
        for clock, head, customer in attack.stage(rng, people, day)
    ]
