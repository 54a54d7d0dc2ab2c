"""The invented bank that synthetic money moves in: people, businesses, whom they deal with, and moves."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS
from vettance.generate.world import lognormal

CITIES: Final = (
    "Berlin",
    "Hamburg",
    "Munich",
    "Paris",
    "Lyon",
    "Madrid",
    "Milan",
    "Vienna",
    "Dublin",
    "Porto",
)
_HOME: Final = ("DE", "FR", "ES", "IT", "NL", "IE", "AT", "PT")
#: Where families live who are sent money; some of these countries are high-risk ones, as in life.
_FAMILY: Final = ("PL", "RO", "TR", "PH", "IN", "MA", "NG", "VN", "KE", "LB", "DZ", "CM")


class Move(NamedTuple):
    """One event. `at_ms` counts from the first moment, `other` is the counterparty; ordinary: no `case`."""

    at_ms: float
    customer: str
    name: str
    amount: float | None
    direction: str
    other: str
    country: str = "DE"
    category: str = "TRANSACTION"
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed
    typology: str = ""
    case: str = ""


class Bill(NamedTuple):
    """What is paid on one day of every month."""

    to: str
    amount: float
    day: int


class Holder:
    """Who has an account. `income` is what was declared for a month."""

    def __init__(self, name: str, segment: str, income: float, opened_day: float) -> None:
        self.id = name
        self.account = "acc-" + name
        self.segment = segment
        self.income = round(income)
        self.opened_day = opened_day


class Person(Holder):
    """A person with a job, bills, shops and friends."""

    def __init__(self, name: str, rng: Random, days: int) -> None:
        new = rng.random() < 0.04
        opened = int(rng.random() * days) if new else -30 - int(rng.expovariate(1 / 1500))
        super().__init__(name, "person", lognormal(rng, 2_400, 0.45), opened)
        self.pay_day = int(rng.choice((0, 14, 24, 27, 28, 29)))
        self.work = rng.random()
        self.purchases = 0.05 if rng.random() < 0.1 else rng.gammavariate(2.0, 0.25)
        self.sociable = rng.gammavariate(1.2, 0.05)
        self.friends: list[str] = []
        self.family_abroad: tuple[str, str] | None = None
        if rng.random() < 0.06:
            self.family_abroad = (f"family-{name}", rng.choice(_FAMILY))
        self.loan = lognormal(rng, 9_000, 0.5)
        self.loan_day = int(rng.random() * days) if rng.random() < 0.03 else None
        self.bills = [Bill(f"landlord-{rng.getrandbits(20)}", 0.32 * self.income, int(rng.random() * 4))]
        for _ in range(2 + int(rng.random() * 4)):
            self.bills.append(
                Bill(
                    f"utility-{int(60 * rng.random() ** 2)}", lognormal(rng, 60, 0.7), int(rng.random() * 30)
                )
            )
        if rng.random() < 0.25:
            self.bills.append(
                Bill(f"savings-{name}", 50.0 * (1 + int(rng.random() * 10)), int(rng.random() * 30))
            )


class Business(Holder):
    """A business: a shop with takings, or one that writes invoices; some trade goods across borders."""

    def __init__(self, name: str, rng: Random) -> None:
        super().__init__(name, "business", lognormal(rng, 40_000, 0.8), -60 - int(rng.expovariate(1 / 2000)))
        self.income = round(self.income * rng.uniform(0.8, 1.3))
        self.retail = rng.random() < 0.5
        self.cash_share = rng.uniform(0.05, 0.5)
        self.city = rng.choice(CITIES)
        self.invoices = rng.gammavariate(1.5, 1.2)
        self.orders = rng.gammavariate(1.5, 0.8)
        self.trades = rng.random() < 0.15
        self._clients = [(f"client-{name}-{i}", _country(rng)) for i in range(4 + int(rng.random() * 20))]
        self._suppliers = [(f"supplier-{name}-{i}", _country(rng)) for i in range(3 + int(rng.random() * 12))]
        self._churn = rng.uniform(0.02, 0.3)
        self._name = name

    def client(self, rng: Random) -> tuple[str, str]:
        """Draw who pays: mostly one of the regular clients, at times a new one."""
        if rng.random() < self._churn:
            return f"new-client-{self._name}-{rng.getrandbits(24)}", _country(rng)
        return rng.choice(self._clients)

    def supplier(self, rng: Random) -> tuple[str, str]:
        """Draw who is paid."""
        if rng.random() < 0.04:
            return f"new-supplier-{self._name}-{rng.getrandbits(24)}", _country(rng)
        return rng.choice(self._suppliers)


class Bank(NamedTuple):
    """Everybody with an account."""

    people: Sequence[Person]
    businesses: Sequence[Business]
    holders: dict[str, Holder]

    def employer(self, person: Person) -> str:
        """Name who pays a person's salary: a business of the bank, or one of another bank."""
        index = int(person.work * 4 * len(self.businesses))
        return self.businesses[index].id if index < len(self.businesses) else f"employer-{index}"

    def shop(self, rng: Random) -> str:
        """Draw a shop: a few are everybody's."""
        return f"shop-{int(2_000 * rng.random() ** 3)}"


def make_bank(rng: Random, customers: int, days: int) -> Bank:
    """Invent the customers: nine of ten are people."""
    businesses = [Business(f"B{index}", rng) for index in range(max(3, customers // 10))]
    people = [Person(f"P{index}", rng, days) for index in range(max(20, customers - len(businesses)))]
    for index, person in enumerate(people):
        # Friends live near each other in the list, so that they are friends of each other's friends.
        near = [(index + step) % len(people) for step in range(-8, 9) if step]
        person.friends = [people[other].id for other in rng.sample(near, 3 + int(rng.random() * 5))]
    holders: dict[str, Holder] = {holder.id: holder for holder in (*people, *businesses)}
    return Bank(people, businesses, holders)


def _country(rng: Random) -> str:
    """Draw where a business partner sits: mostly near, at times anywhere, seldom in a high-risk country."""
    drawn = rng.random()
    if drawn < 0.97:
        return rng.choice(_HOME)
    return (
        rng.choice(("CH", "US", "CN", "GB", "TR", "IN")) if drawn < 0.9985 else rng.choice(("VN", "BG", "KE"))
    )


def moment(rng: Random, day: int) -> float:
    """Draw a time of day: mostly from eight to twenty o'clock."""
    hour = rng.triangular(8, 20, 12) if rng.random() < 0.9 else rng.uniform(0, 24)
    return math.floor(day * DAY_MS + hour * HOUR_MS)
