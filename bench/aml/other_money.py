"""Money of another bank: a second generator for `aml.py`, with other habits.

One side reports a transfer, mostly its sender; parties are named by account or by id; income, segment and the
age of the account are often left out; shops name no channel; employers pay many people at once; sellers on a
market place are paid by strangers all day. What is planted draws its size, pace and amounts from wider ranges
than those of `vettance generate aml`. It was written to try the rules, so it is no proof of them either.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

DAY_S = 86_400
START_S = 1_767_225_600
CITIES = ("Leeds", "Gdansk", "Turin", "Ghent", "Malmo", "Split", "Cork", "Graz")
HIGH_RISK = ("HT", "YE", "SS", "LA", "VE", "SY", "KP", "IR", "MM")


class Told(NamedTuple):
    """One event of the other generator; ordinary ones have no case."""

    at_s: float
    who: str
    body: dict[str, Any]
    typology: str = ""
    case: str = ""


class Other:
    """A bank of another kind."""

    def __init__(self, customers: int, days: int, seed: int, cases: int) -> None:
        self.rng = random.Random(f"other {seed}")
        self.days, self.cases = days, cases
        self.people = [f"cust-{number}" for number in range(customers)]
        rng = self.rng
        self.profile: dict[str, dict[str, Any]] = {}
        self.pay: dict[str, float] = {}
        for who in self.people:
            pay = rng.lognormvariate(7.7, 0.5)
            self.pay[who] = pay
            profile: dict[str, Any] = {}
            if rng.random() < 0.7:
                profile["declaredMonthlyIncome"] = round(pay, -2)
            if rng.random() < 0.6:
                profile["segment"] = "person"
            if rng.random() < 0.6:
                profile["accountOpenedAt"] = START_S - rng.uniform(40, 4000) * DAY_S
            self.profile[who] = profile
        self.sellers = [f"seller-{number}" for number in range(max(2, customers // 80))]
        self.firms = [f"firm-{number}" for number in range(max(2, customers // 60))]
        for name in (*self.sellers, *self.firms):
            self.profile[name] = {"segment": "business", "declaredMonthlyIncome": 60_000}
        self.boss = {who: rng.choice(self.firms) for who in self.people}
        self.friends = {who: rng.sample(self.people, 6) for who in self.people}
        self.shops = [f"merchant-{number}" for number in range(400)]
        self.habit = {who: rng.gammavariate(1.6, 0.7) for who in self.people}
        self.corner = {who: rng.choice(self.shops) for who in self.people}
        self.number = 0

    def move(
        self, at: float, who: str, kind: str, amount: float, way: str, other: str = "", **more: Any
    ) -> Told:
        """Tell a transfer at `at` days; the other side is named by account half the time."""
        metadata: dict[str, Any] = {
            **self.profile.get(who, {}),
            "amount": f"{amount:.2f}",
            "currency": "GBP",
            "direction": way,
            "transactionType": kind,
            "accountId": f"ACC/{who}",
        }
        if other:
            known = other in self.profile
            if known and sum(map(ord, other)) % 2:
                metadata["counterpartyAccount"] = f"ACC/{other}"
            else:
                metadata["counterpartyId"] = other
            metadata["counterpartyCountry"] = "GBR"
        metadata |= more
        return Told(START_S + at * DAY_S, who, {"eventName": "ledger.entry", "metadata": metadata})

    def events(self) -> Iterator[Told]:
        """Give everything in order of time."""
        planted: list[Told] = []
        for name, plant in PLANTS.items():
            for number in range(self.cases):
                start = self.rng.uniform(0.3, 0.8) * self.days
                planted += [
                    told._replace(typology=name, case=f"{name}-{number}")
                    for told in plant(self, start)
                    if told.at_s < START_S + self.days * DAY_S
                ]
        by_day: dict[int, list[Told]] = {}
        for told in planted:
            by_day.setdefault(int((told.at_s - START_S) // DAY_S), []).append(told)
        for day in range(self.days):
            today = [*by_day.get(day, ()), *self._ordinary(day)]
            today.sort(key=lambda told: told.at_s)
            for told in today:
                self.number += 1
                category = told.body.get("eventCategory", "TRANSACTION")
                yield told._replace(
                    body={
                        **told.body,
                        "eventCategory": category,
                        "externalEventId": f"o-{self.number}",
                        "customer": {"externalId": told.who},
                        "sourceReportedAt": told.at_s,
                    }
                )

    def _ordinary(self, day: int) -> Iterator[Told]:
        rng = self.rng

        def hour() -> float:
            return day + rng.triangular(0.25, 0.98, 0.6)

        for who in self.people:
            for _ in range(_poisson(rng, self.habit[who])):
                shop = self.corner[who] if rng.random() < 0.4 else rng.choice(self.shops)
                yield self.move(hour(), who, "PAYMENT", rng.lognormvariate(2.9, 0.9), "out", shop)
            if rng.random() < 0.06:
                friend = rng.choice(self.friends[who])
                amount = (
                    rng.choice((10, 20, 25, 50, 100)) if rng.random() < 0.6 else rng.lognormvariate(3.6, 1)
                )
                yield self.move(hour(), who, "TRANSFER", amount, "out", friend)
            if rng.random() < 0.015:
                yield self.move(
                    hour(), who, "TRANSFER", rng.lognormvariate(4, 1), "out", rng.choice(self.sellers)
                )
            if rng.random() < 0.02:
                amount = 10 * rng.randint(2, 30)
                yield self.move(
                    hour(), who, "CASH_OUT", amount, "out", channel="atm", city=rng.choice(CITIES)
                )
            if rng.random() < 0.003:
                yield self.move(hour(), who, "CASH_IN", 50 * rng.randint(1, 20), "in", channel="branch")
            if day % 30 == 1:
                rent = round(0.3 * self.pay[who], -2) or 100
                yield self.move(hour(), who, "TRANSFER", rent, "out", f"landlord-of-{who}")
                if rng.random() < 0.3:
                    yield self.move(
                        hour(), who, "TRANSFER", 500 * rng.randint(1, 4), "out", f"savings-of-{who}"
                    )
            if rng.random() < 0.0006:  # A car, a builder, an inheritance: now and then life is expensive.
                way = rng.choice(("in", "out"))
                amount = rng.lognormvariate(8.6, 0.7)
                yield self.move(hour(), who, "TRANSFER", amount, way, f"once-{rng.getrandbits(24)}")
            if rng.random() < 0.001:
                card = {"instrumentId": f"pan-{rng.getrandbits(40)}"}
                yield _instrument(hour(), who, {**self.profile[who], **card})
        for seller in self.sellers:
            for _ in range(_poisson(rng, 6)):
                buyer = f"buyer-{rng.getrandbits(22)}"
                yield self.move(hour(), seller, "TRANSFER", rng.lognormvariate(3.7, 0.8), "in", buyer)
            if day % 7 == 3:
                yield self.move(
                    hour(), seller, "TRANSFER", rng.lognormvariate(7.3, 0.4), "out", f"stock-{seller}"
                )
        for firm in self.firms:
            if day % 14 == 11:
                for who in self.people:
                    if self.boss[who] == firm:
                        yield self.move(
                            hour(), firm, "SALARY", self.pay[who] / 2, "out", who, description="pay"
                        )
            for _ in range(_poisson(rng, 0.5)):
                client = f"client-{firm}-{rng.randint(0, 15)}"
                yield self.move(hour(), firm, "TRANSFER", rng.lognormvariate(8.5, 0.6), "in", client)
            for _ in range(_poisson(rng, 0.4)):
                amount, supplier = rng.lognormvariate(8, 0.6), f"supplier-{firm}-{rng.randint(0, 9)}"
                yield self.move(hour(), firm, "TRANSFER", amount, "out", supplier)

    def pick(self, count: int = 1) -> list[str]:
        """Draw different people."""
        return self.rng.sample(self.people, count)

    def far(self) -> str:
        """Name a stranger."""
        return f"x{self.rng.getrandbits(40)}"


def _poisson(rng: random.Random, mean: float) -> int:
    count, left = 0, rng.expovariate(1)
    while left < mean:
        count += 1
        left += rng.expovariate(1)
    return count


def _instrument(at: float, who: str, metadata: dict[str, Any]) -> Told:
    body = {"eventName": "instrument.linked", "eventCategory": "PAYMENT_INSTRUMENT", "metadata": metadata}
    return Told(START_S + at * DAY_S, who, body)


def structuring(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    way, kind = rng.choice((("in", "CASH_IN"), ("out", "CASH_OUT")))
    for _ in range(rng.randint(4, 10)):
        amount = rng.uniform(8_000, 9_990)
        yield bank.move(day, who, kind, amount, way, channel="branch", city=rng.choice(CITIES))
        day += rng.uniform(0.05, 1.5)


def smurfing(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    for _ in range(rng.randint(5, 12)):
        yield bank.move(day + rng.uniform(0, 6), who, "TRANSFER", rng.uniform(1_500, 9_700), "in", bank.far())


def fan_in(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    for _ in range(rng.randint(6, 30)):
        yield bank.move(day + rng.uniform(0, 4), who, "TRANSFER", rng.uniform(200, 3_000), "in", bank.far())


def fan_out(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    for _ in range(rng.randint(6, 30)):
        yield bank.move(day + rng.uniform(0, 4), who, "TRANSFER", rng.uniform(200, 3_000), "out", bank.far())


def cycle(bank: Other, day: float) -> Iterator[Told]:
    rng = bank.rng
    ring, amount = bank.pick(rng.randint(3, 6)), rng.uniform(900, 30_000)
    for sender, receiver in zip(ring, [*ring[1:], ring[0]], strict=True):
        yield bank.move(day, sender, "TRANSFER", amount, "out", receiver)
        amount *= rng.uniform(0.85, 1)
        day += rng.uniform(0.05, 2.5)


def scatter_gather(bank: Other, day: float) -> Iterator[Told]:
    rng = bank.rng
    source, end, *between = bank.pick(rng.randint(6, 12))
    for middle in between:
        amount, sent = rng.uniform(600, 6_000), rng.uniform(0, 2)
        yield bank.move(day + sent, source, "TRANSFER", amount, "out", middle)
        passed = amount * rng.uniform(0.85, 1)
        yield bank.move(day + sent + rng.uniform(0.1, 2.5), middle, "TRANSFER", passed, "out", end)


def gather_scatter(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    ins = [rng.uniform(500, 5_000) for _ in range(rng.randint(4, 10))]
    for amount in ins:
        yield bank.move(day + rng.uniform(0, 2), who, "TRANSFER", amount, "in", bank.far())
    outs = rng.randint(4, 10)
    for _ in range(outs):
        part = sum(ins) * 0.93 / outs * rng.uniform(0.8, 1.2)
        yield bank.move(day + rng.uniform(2, 5), who, "TRANSFER", part, "out", bank.far())


def bipartite(bank: Other, day: float) -> Iterator[Told]:
    rng = bank.rng
    people = bank.pick(rng.randint(3, 6) + 4)
    ends, senders = people[:4], people[4:]
    for sender in senders:
        for receiver in ends:
            amount = rng.uniform(600, 5_000)
            yield bank.move(day + rng.uniform(0, 3), sender, "TRANSFER", amount, "out", receiver)


def stack(bank: Other, day: float) -> Iterator[Told]:
    rng = bank.rng
    chain, amount = bank.pick(rng.randint(5, 8)), rng.uniform(2_000, 50_000)
    for sender, receiver in itertools.pairwise(chain):
        yield bank.move(day, sender, "TRANSFER", amount, "out", receiver)
        amount *= rng.uniform(0.88, 1)
        day += rng.uniform(0.05, 2.2)


def rapid(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    amount, parts = rng.uniform(9_000, 60_000), rng.randint(1, 4)
    yield bank.move(day, who, "TRANSFER", amount, "in", bank.far())
    for _ in range(parts):
        part = amount * rng.uniform(0.85, 1) / parts
        yield bank.move(day + rng.uniform(0.05, 1.9), who, "TRANSFER", part, "out", bank.far())


def dormant(bank: Other, _day: float) -> Iterator[Told]:
    rng, who = bank.rng, f"sleeper-{bank.rng.getrandbits(40)}"
    bank.profile[who] = {"accountOpenedAt": START_S - rng.uniform(300, 3000) * DAY_S}
    yield bank.move(rng.uniform(0, 3), who, "PAYMENT", 15, "out", bank.shops[0])
    day = rng.uniform(0.72, 0.92) * bank.days
    for _ in range(rng.randint(3, 8)):
        amount, way = rng.uniform(1_200, 8_000), rng.choice(("in", "out"))
        yield bank.move(day + rng.uniform(0, 3), who, "TRANSFER", amount, way, bank.far())


def high_risk(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    country, parts, total = rng.choice(HIGH_RISK), rng.randint(1, 5), rng.uniform(13_000, 60_000)
    for _ in range(parts):
        at, way = day + rng.uniform(0, 5), rng.choice(("in", "out"))
        yield bank.move(at, who, "TRANSFER", total / parts, way, bank.far(), counterpartyCountry=country)


def round_sums(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    for _ in range(rng.randint(5, 12)):
        amount = rng.choice((1_000, 1_500, 2_000, 3_000, 5_000))
        yield bank.move(day + rng.uniform(0, 6), who, "TRANSFER", amount, "out", bank.far())


def burst(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    partners = [bank.far() for _ in range(rng.randint(1, 8))]
    for _ in range(rng.randint(25, 60)):
        amount = rng.uniform(40, 400)
        yield bank.move(day + rng.uniform(0, 0.8), who, "TRANSFER", amount, "out", rng.choice(partners))


def mismatch(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    income = bank.pay[who] = max(900.0, min(bank.pay[who], 4_000.0))
    bank.profile[who]["declaredMonthlyIncome"] = round(income)
    count, total = rng.randint(5, 15), max(12_000, income * rng.uniform(5, 12))
    for _ in range(count):
        yield bank.move(0.7 * day + rng.uniform(0, 24), who, "TRANSFER", total / count, "in", bank.far())


def mule(bank: Other, day: float) -> Iterator[Told]:
    rng, who = bank.rng, f"fresh-{bank.rng.getrandbits(40)}"
    bank.profile[who] = {"accountOpenedAt": START_S + (day - rng.uniform(1, 25)) * DAY_S}
    bank.profile[who]["declaredMonthlyIncome"] = 1_800
    ins = [rng.uniform(900, 5_000) for _ in range(rng.randint(2, 6))]
    for amount in ins:
        yield bank.move(day + rng.uniform(0, 1.5), who, "TRANSFER", amount, "in", bank.far())
    for _ in range(3):
        part, at = 0.3 * sum(ins), day + rng.uniform(1.6, 3.5)
        if rng.random() < 0.5:
            yield bank.move(at, who, "CASH_OUT", part, "out", channel="atm")
        else:
            yield bank.move(at, who, "TRANSFER", part, "out", bank.far())


def mispricing(bank: Other, day: float) -> Iterator[Told]:
    rng, who = bank.rng, bank.rng.choice(bank.firms)
    for number in range(rng.randint(1, 4)):
        worth = rng.uniform(4_000, 80_000)
        invoice = worth * (rng.uniform(1.6, 4) if rng.random() < 0.5 else rng.uniform(0.2, 0.55))
        more = {"invoiceAmount": f"{invoice:.2f}", "marketValue": f"{worth:.2f}"}
        yield bank.move(day + 3 * number, who, "TRADE", invoice, "out", bank.far(), **more)


def funnel(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    ins = []
    for city in rng.sample(CITIES, rng.randint(3, 6)):
        ins.append(rng.uniform(700, 4_500))
        yield bank.move(day + rng.uniform(0, 5), who, "CASH_IN", ins[-1], "in", channel="branch", city=city)
    yield bank.move(day + rng.uniform(5.1, 8), who, "TRANSFER", 0.9 * sum(ins), "out", bank.far())


def early_repayment(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    loan, count = rng.uniform(6_000, 40_000), rng.randint(1, 3)
    yield bank.move(day, who, "LOAN_DISBURSEMENT", loan, "in", "lender")
    for number in range(count):
        part = loan * rng.uniform(0.75, 1) / count
        yield bank.move(day + 3 + 3 * number, who, "LOAN_REPAYMENT", part, "out", "lender")


def new_instrument(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    card = {"instrumentId": f"pan-{rng.getrandbits(40)}"}
    yield _instrument(day, who, {**bank.profile[who], **card})
    amount = rng.uniform(4_000, 20_000)
    yield bank.move(day + rng.uniform(0.02, 1.9), who, "TRANSFER", amount, "out", bank.far(), **card)


def shared_instrument(bank: Other, day: float) -> Iterator[Told]:
    rng = bank.rng
    card = {"instrumentId": f"pan-{rng.getrandbits(40)}"}
    for who in bank.pick(rng.randint(3, 7)):
        yield _instrument(day + rng.uniform(0, 8), who, card)


def many_counterparties(bank: Other, day: float) -> Iterator[Told]:
    rng, (who,) = bank.rng, bank.pick()
    for _ in range(rng.randint(20, 45)):
        way = rng.choice(("in", "out"))
        yield bank.move(day + rng.uniform(0, 6), who, "TRANSFER", rng.uniform(60, 900), way, bank.far())


PLANTS = {
    plant.__name__: plant
    for plant in (
        *(structuring, smurfing, fan_in, fan_out, cycle, scatter_gather, gather_scatter, bipartite, stack),
        *(rapid, dormant, high_risk, round_sums, burst, mismatch, mule, mispricing, funnel),
        *(early_repayment, new_instrument, shared_instrument, many_counterparties),
    )
}
