"""Laundering as it is planted: one function for each typology, drawing its own size, pace and amounts."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any, Final

from vettance.clock import DAY_MS, HOUR_MS
from vettance.generate.aml_world import CITIES, Bank, Move, Person
from vettance.generate.world import lognormal

_Case = Iterator[Move]
TYPOLOGIES: Final[dict[str, Callable[["_Scene"], _Case]]] = {}


class _Scene:
    """What a typology draws from: people of the bank, a beginning, and chance."""

    def __init__(self, rng: Random, bank: Bank, days: int) -> None:
        self.rng = rng
        self.bank = bank
        self.days = days
        # Late enough that the service has seen ordinary days, early enough that the case ends in time.
        self.start_day = days * rng.uniform(0.25, 0.75)

    def people(self, count: int) -> list[str]:
        """Draw different people who have long had their accounts."""
        grown = [
            person.id
            for person in self.rng.sample(list(self.bank.people), min(8 * count, len(self.bank.people)))
        ]
        return [who for who in grown if self.bank.holders[who].opened_day < 0][:count]

    def at(self, days: float) -> float:
        """Return a moment so many days after the beginning, in working hours or a little outside them."""
        return (self.start_day + days) * DAY_MS + self.rng.uniform(0, 2) * HOUR_MS

    def pass_on(self, sender: str, receiver: str, amount: float, days: float, **more: Any) -> _Case:
        """Move money between two parties; each that is a customer reports it."""
        at_ms = self.at(days)
        if sender in self.bank.holders:
            yield Move(at_ms, sender, "transfer.sent", amount, "out", receiver, more=more)
        if receiver in self.bank.holders:
            yield Move(at_ms + 2_000, receiver, "transfer.received", amount, "in", sender, more=more)

    def stranger(self) -> str:
        """Name somebody of another bank."""
        return f"ext-{self.rng.getrandbits(32)}"


def _typology(make: Callable[[_Scene], _Case]) -> Callable[[_Scene], _Case]:
    TYPOLOGIES[make.__name__] = make
    return make


def plant(typology: str, number: int, rng: Random, bank: Bank, days: int) -> Iterator[Move]:
    """Give the moves of one case, marked with what they are."""
    for move in TYPOLOGIES[typology](_Scene(rng, bank, days)):
        if 0 <= move.at_ms < days * DAY_MS:
            yield move._replace(typology=typology, case=f"{typology}-{number}")


@_typology
def structuring(scene: _Scene) -> _Case:
    """One customer pays in cash just below 10,000, again and again."""
    (who,) = scene.people(1)
    day = 0.0
    for _ in range(scene.rng.randint(3, 8)):
        amount = scene.rng.uniform(8_200, 9_950)
        yield Move(
            scene.at(day), who, "cash.deposit", amount, "in", "", more={"channel": "cash", "city": "Berlin"}
        )
        day += scene.rng.uniform(0.2, 1.8)


@_typology
def smurfing(scene: _Scene) -> _Case:
    """Several people bring parts below 10,000 to one account."""
    (who,) = scene.people(1)
    for _ in range(scene.rng.randint(4, 9)):
        yield from scene.pass_on(
            scene.stranger(), who, scene.rng.uniform(5_000, 9_800), scene.rng.uniform(0, 5)
        )


@_typology
def fan_in(scene: _Scene) -> _Case:
    """Many senders, one receiver, a few days."""
    (who,) = scene.people(1)
    for _ in range(scene.rng.randint(7, 25)):
        yield from scene.pass_on(
            scene.stranger(), who, lognormal(scene.rng, 700, 0.5), scene.rng.uniform(0, 2.5)
        )


@_typology
def fan_out(scene: _Scene) -> _Case:
    """One sender, many receivers, a few days."""
    (who,) = scene.people(1)
    for _ in range(scene.rng.randint(7, 25)):
        yield from scene.pass_on(
            who, scene.stranger(), lognormal(scene.rng, 800, 0.4), scene.rng.uniform(0, 2.5)
        )


@_typology
def cycle(scene: _Scene) -> _Case:
    """Money goes round over three to six customers within days, each keeping a little."""
    ring = scene.people(scene.rng.randint(3, 6))
    amount, day = lognormal(scene.rng, 6_000, 0.5), 0.0
    for sender, receiver in zip(ring, [*ring[1:], ring[0]], strict=True):
        yield from scene.pass_on(sender, receiver, amount, day)
        amount *= scene.rng.uniform(0.88, 1.0)
        day += scene.rng.uniform(0.1, 2.0)


@_typology
def scatter_gather(scene: _Scene) -> _Case:
    """One source, several in between, one end."""
    source, end, *between = scene.people(scene.rng.randint(6, 10))
    for middle in between:
        amount = lognormal(scene.rng, 1_800, 0.4)
        yield from scene.pass_on(source, middle, amount, scene.rng.uniform(0, 1))
        yield from scene.pass_on(
            middle, end, amount * scene.rng.uniform(0.9, 0.99), scene.rng.uniform(1.2, 3)
        )


@_typology
def gather_scatter(scene: _Scene) -> _Case:
    """Several sources, one in between, several ends."""
    (middle,) = scene.people(1)
    total = 0.0
    for _ in range(scene.rng.randint(4, 9)):
        amount = lognormal(scene.rng, 1_500, 0.4)
        total += amount
        yield from scene.pass_on(scene.stranger(), middle, amount, scene.rng.uniform(0, 2))
    ends = scene.rng.randint(4, 8)
    for _ in range(ends):
        part = 0.95 * total / ends * scene.rng.uniform(0.85, 1.1)
        yield from scene.pass_on(middle, scene.stranger(), part, scene.rng.uniform(2.2, 4))


@_typology
def bipartite(scene: _Scene) -> _Case:
    """Several senders each pay the same several receivers."""
    senders = scene.people(scene.rng.randint(3, 5))
    receivers = [scene.stranger() for _ in range(scene.rng.randint(3, 5))]
    for sender in senders:
        for receiver in receivers:
            yield from scene.pass_on(
                sender, receiver, lognormal(scene.rng, 1_500, 0.3), scene.rng.uniform(0, 4)
            )


@_typology
def layering(scene: _Scene) -> _Case:
    """One sum through four to seven accounts, one after the other."""
    chain = scene.people(scene.rng.randint(4, 7))
    amount, day = lognormal(scene.rng, 8_000, 0.5), 0.0
    for sender, receiver in pairwise(chain):
        yield from scene.pass_on(sender, receiver, amount, day)
        amount *= scene.rng.uniform(0.9, 0.99)
        day += scene.rng.uniform(0.1, 1.8)


@_typology
def rapid_in_out(scene: _Scene) -> _Case:
    """A sum comes in and leaves within a day or two, in one to three parts."""
    (who,) = scene.people(1)
    amount = lognormal(scene.rng, 22_000, 0.4)
    yield from scene.pass_on(scene.stranger(), who, amount, 0)
    parts = scene.rng.randint(1, 3)
    for _ in range(parts):
        part = amount * scene.rng.uniform(0.88, 0.98) / parts
        yield from scene.pass_on(who, scene.stranger(), part, scene.rng.uniform(0.1, 1.7))


@_typology
def funnel(scene: _Scene) -> _Case:
    """Cash paid in in several cities, taken out in another."""
    (who,) = scene.people(1)
    total = 0.0
    for city in scene.rng.sample(CITIES, scene.rng.randint(3, 6)):
        for _ in range(scene.rng.randint(1, 2)):
            amount = lognormal(scene.rng, 1_800, 0.4)
            total += amount
            more = {"channel": "cash", "city": city}
            yield Move(scene.at(scene.rng.uniform(0, 4)), who, "cash.deposit", amount, "in", "", more=more)
    for _ in range(2):
        more = {"channel": "atm", "city": "Sofia"}
        yield Move(
            scene.at(scene.rng.uniform(4.2, 6)), who, "cash.withdrawal", 0.46 * total, "out", "", more=more
        )


@_typology
def dormant(scene: _Scene) -> _Case:
    """An account sleeps for weeks, then moves much money in few days."""
    name = f"D{scene.rng.getrandbits(40)}"
    sleeper = Person(name, scene.rng, scene.days)
    sleeper.opened_day = -scene.rng.uniform(400, 2_000)
    scene.bank.holders[name] = sleeper
    yield Move(scene.rng.uniform(0, 2) * DAY_MS, name, "card.payment", 12.0, "out", "shop-1")
    scene.start_day = scene.rng.uniform(max(38.0, 0.65 * scene.days), max(39.0, scene.days - 6))
    total = 0.0
    for _ in range(scene.rng.randint(1, 4)):
        amount = lognormal(scene.rng, 5_000, 0.4)
        total += amount
        yield from scene.pass_on(scene.stranger(), name, amount, scene.rng.uniform(0, 2))
    yield from scene.pass_on(name, scene.stranger(), 0.9 * total, scene.rng.uniform(2.1, 4))


@_typology
def high_risk(scene: _Scene) -> _Case:
    """Large or split sums to high-risk countries."""
    (who,) = scene.people(1)
    country = scene.rng.choice(("HT", "YE", "SS", "LA", "KP", "IR", "MM", "VE"))
    parts = scene.rng.randint(1, 4)
    total = lognormal(scene.rng, 22_000, 0.3)
    for _ in range(parts):
        yield Move(
            scene.at(scene.rng.uniform(0, 4)),
            who,
            "transfer.sent",
            total / parts * scene.rng.uniform(0.9, 1.1),
            "out",
            scene.stranger(),
            country=country,
        )


@_typology
def round_amounts(scene: _Scene) -> _Case:
    """Round thousands, day after day."""
    (who,) = scene.people(1)
    for _ in range(scene.rng.randint(5, 9)):
        amount = 1_000.0 * scene.rng.randint(1, 6)
        yield from scene.pass_on(who, scene.stranger(), amount, scene.rng.uniform(0, 5))


@_typology
def velocity(scene: _Scene) -> _Case:
    """Dozens of transfers in a day."""
    (who,) = scene.people(1)
    partners = [scene.stranger() for _ in range(scene.rng.randint(2, 6))]
    for _ in range(scene.rng.randint(22, 45)):
        amount = lognormal(scene.rng, 180, 0.5)
        yield from scene.pass_on(who, scene.rng.choice(partners), amount, scene.rng.uniform(0, 0.6))


@_typology
def profile_mismatch(scene: _Scene) -> _Case:
    """A small income and a large turnover over some weeks."""
    (who,) = scene.people(1)
    income = scene.bank.holders[who].income
    scene.start_day = scene.days * scene.rng.uniform(0.2, 0.5)
    count = scene.rng.randint(6, 12)
    total = max(15_000, income * scene.rng.uniform(5, 9))
    for _ in range(count):
        amount = total / count * scene.rng.uniform(0.7, 1.3)
        yield from scene.pass_on(scene.stranger(), who, amount, scene.rng.uniform(0, 20))


@_typology
def mule(scene: _Scene) -> _Case:
    """A new account takes in money of strangers and hands it out as cash."""
    name = f"M{scene.rng.getrandbits(40)}"
    fresh = Person(name, scene.rng, scene.days)
    fresh.opened_day = scene.start_day - scene.rng.uniform(1, 15)
    scene.bank.holders[name] = fresh
    total = 0.0
    for _ in range(scene.rng.randint(1, 4)):
        amount = lognormal(scene.rng, 3_500, 0.4)
        total += amount
        yield from scene.pass_on(scene.stranger(), name, amount, scene.rng.uniform(0, 2))
    for _ in range(scene.rng.randint(2, 4)):
        more = {"channel": "atm"}
        yield Move(
            scene.at(scene.rng.uniform(2.1, 4)), name, "cash.withdrawal", 0.3 * total, "out", "", more=more
        )


@_typology
def mispricing(scene: _Scene) -> _Case:
    """Invoices far above or below the worth of the goods."""
    business = scene.rng.choice(scene.bank.businesses).id
    for number in range(scene.rng.randint(2, 4)):
        worth = lognormal(scene.rng, 20_000, 0.4)
        invoice = worth * (
            scene.rng.uniform(1.6, 3) if scene.rng.random() < 0.6 else scene.rng.uniform(0.2, 0.5)
        )
        more = {"invoiceAmount": round(invoice, 2), "marketValue": round(worth, 2)}
        yield Move(
            scene.at(4 * number), business, "trade.payment", invoice, "out", scene.stranger(), more=more
        )


@_typology
def early_repayment(scene: _Scene) -> _Case:
    """A loan is taken and soon repaid with money of unknown source."""
    (who,) = scene.people(1)
    loan = lognormal(scene.rng, 16_000, 0.3)
    yield Move(scene.at(0), who, "loan.disbursed", loan, "in", "bank")
    left = loan
    for number in range(scene.rng.randint(1, 3)):
        part = left * scene.rng.uniform(0.7, 0.95)
        left -= part
        yield Move(scene.at(4 + 4 * number), who, "loan.repayment", part, "out", "bank")


@_typology
def new_instrument(scene: _Scene) -> _Case:
    """A new card or wallet, and a large transfer soon after."""
    (who,) = scene.people(1)
    card = {"instrumentId": f"card-{scene.rng.getrandbits(40)}"}
    yield Move(scene.at(0), who, "card.added", None, "", "", category="PAYMENT_INSTRUMENT", more=card)
    amount = lognormal(scene.rng, 6_000, 0.3)
    yield from scene.pass_on(who, scene.stranger(), amount, scene.rng.uniform(0.1, 2.4), **card)


@_typology
def shared_instrument(scene: _Scene) -> _Case:
    """One card of several customers."""
    card = {"instrumentId": f"card-{scene.rng.getrandbits(40)}"}
    for who in scene.people(scene.rng.randint(3, 6)):
        day = scene.rng.uniform(0, 10)
        yield Move(scene.at(day), who, "card.added", None, "", "", category="PAYMENT_INSTRUMENT", more=card)
