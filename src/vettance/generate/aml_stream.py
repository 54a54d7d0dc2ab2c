"""Synthetic money: people and businesses with habits, laundering planted among them, and the ground truth.

Every number here is an assumption of ours, chosen to be plausible before any rule was measured. No planted
case looks at a rule; some hide from the 10,000 of the law on purpose, as real ones do.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import IO, Any, Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS
from vettance.generate.aml_world import Bank, Business, Move, Person, make_bank, moment
from vettance.generate.laundering import TYPOLOGIES, plant
from vettance.generate.world import END_MS_MAX, lognormal, poisson
from vettance.wire.payload import encode, timestamp

START_DEFAULT_MS: Final = 1_767_225_600_000  # 2026-01-01
CASES_PER_1000: Final = 3.0  # Planted cases of each typology for 1,000 customers.


class Watch(NamedTuple):
    """What to generate. `cases` is how many of each typology are planted, by default in proportion."""

    customers: int
    days: int
    seed: int
    start_ms: int = START_DEFAULT_MS
    cases: int | None = None


class GeneratedSummary(msgspec.Struct, frozen=True, rename="camel"):
    """What was written."""

    events: int
    laundering: int
    customers: int
    days: int
    cases: dict[str, int]


def aml_events(watch: Watch) -> Iterator[tuple[Move, dict[str, Any]]]:
    """Give every event in order of time: the move with its truth, and the body as the service takes it.

    Raises `ValueError` for money that cannot be.
    """
    if watch.start_ms < 0 or watch.start_ms + watch.days * DAY_MS > END_MS_MAX:
        raise ValueError("the traffic must lie between the years 1970 and 9999")
    rng = Random(f"aml {watch.seed}")  # noqa: S311 - repeatable, not secret.
    bank = make_bank(rng, watch.customers, watch.days)
    count = watch.cases if watch.cases is not None else max(2, round(CASES_PER_1000 * watch.customers / 1000))
    planted: dict[int, list[Move]] = {}
    for typology in TYPOLOGIES:
        for number in range(count):
            chance = Random(f"aml {watch.seed} {typology} {number}")  # noqa: S311 - repeatable, not secret.
            for move in plant(typology, number, chance, bank, watch.days):
                planted.setdefault(int(move.at_ms // DAY_MS), []).append(move)
    number = 0
    for day in range(watch.days):
        moves = planted.pop(day, [])
        moves += _ordinary(rng, bank, day)
        moves.sort(key=lambda move: move.at_ms)
        for move in moves:
            number += 1
            yield move, body_of(move, f"aml-{watch.seed}-{number}", bank, watch.start_ms)


def write_aml(
    watch: Watch, events: IO[bytes], truth: IO[bytes], progress: Callable[[int], None] = lambda _count: None
) -> GeneratedSummary:
    """Write both files, line for line about the same events; returns what they hold."""
    lines = laundering = 0
    cases: dict[str, set[str]] = {typology: set() for typology in TYPOLOGIES}
    for move, body in aml_events(watch):
        lines += 1
        events.write(encode(body) + b"\n")
        said: dict[str, Any] = {
            "line": lines,
            "externalEventId": body["externalEventId"],
            "label": "ORDINARY",
        }
        if move.case:
            laundering += 1
            cases[move.typology].add(move.case)
            said |= {"label": "LAUNDERING", "typology": move.typology, "case": move.case}
        truth.write(encode(said) + b"\n")
        if lines % 1000 == 0:
            progress(lines)
    counts = {typology: len(found) for typology, found in cases.items()}
    return GeneratedSummary(lines, laundering, watch.customers, watch.days, counts)


def body_of(move: Move, external_id: str, bank: Bank, start_ms: int) -> dict[str, Any]:
    """Write a move as the body of `POST /aml/events`."""
    who = bank.holders[move.customer]
    metadata: dict[str, Any] = {"accountId": who.account, "segment": who.segment}
    metadata["accountOpenedAt"] = timestamp(int(start_ms + who.opened_day * DAY_MS))
    metadata["declaredMonthlyIncome"] = who.income
    if move.amount is not None:
        metadata["amount"] = round(move.amount, 2)
        metadata["currency"] = "EUR"
        metadata["direction"] = move.direction
    if move.other:
        metadata["counterpartyId"] = move.other
        metadata["counterpartyCountry"] = move.country
        if move.other in bank.holders:
            metadata["counterpartyAccount"] = bank.holders[move.other].account
    return {
        "eventName": move.name,
        "externalEventId": external_id,
        "eventCategory": move.category,
        "customer": {"externalId": move.customer},
        "sourceReportedAt": timestamp(int(start_ms + move.at_ms)),
        "metadata": {**metadata, **move.more},
    }


# --- ordinary days ---


def _ordinary(rng: Random, bank: Bank, day: int) -> Iterator[Move]:
    for person in bank.people:
        if person.opened_day <= day:
            yield from _personal(rng, bank, person, day)
    for business in bank.businesses:
        yield from _commercial(rng, business, day)


def _both(out: Move, bank: Bank) -> Iterator[Move]:
    """Give a transfer as its sender reports it, and as its receiver does where that is a customer too."""
    yield out
    if out.other in bank.holders:
        at_ms = out.at_ms + 2_000
        yield out._replace(
            at_ms=at_ms, customer=out.other, other=out.customer, direction="in", name="transfer.received"
        )


def _pay(rng: Random, customer: str, other: str, amount: float, day: int, **more: Any) -> Move:
    return Move(moment(rng, day), customer, "transfer.sent", amount, "out", other, more=more)


def _personal(rng: Random, bank: Bank, person: Person, day: int) -> Iterator[Move]:
    of_month = day % 30
    if of_month == person.pay_day:
        employer = bank.employer(person)
        salary = person.income * rng.normalvariate(1, 0.02)
        yield from (
            _both(_pay(rng, employer, person.id, salary, day, description="salary"), bank)
            if (employer in bank.holders)
            else iter((Move(moment(rng, day), person.id, "transfer.received", salary, "in", employer),))
        )
    for bill in person.bills:
        if of_month == bill.day:
            yield _pay(rng, person.id, bill.to, bill.amount * rng.normalvariate(1, 0.03), day)
    for _ in range(poisson(rng, person.purchases)):
        shop = bank.shop(rng)
        yield Move(
            moment(rng, day),
            person.id,
            "card.payment",
            lognormal(rng, 24, 0.9),
            "out",
            shop,
            more={"channel": "card"},
        )
    for _ in range(poisson(rng, person.sociable)):
        friend = person.friends[int(rng.random() * len(person.friends))]
        yield from _both(_pay(rng, person.id, friend, lognormal(rng, 35, 0.9), day), bank)
    if rng.random() < 0.03:
        amount = 20.0 * (1 + int(rng.expovariate(0.25)))
        yield Move(moment(rng, day), person.id, "cash.withdrawal", amount, "out", "", more={"channel": "atm"})
    if rng.random() < 0.004:
        amount = lognormal(rng, 300, 0.8)
        yield Move(moment(rng, day), person.id, "cash.deposit", amount, "in", "", more={"channel": "cash"})
    if person.family_abroad and of_month == (person.pay_day + 2) % 30:
        amount = lognormal(rng, 250, 0.5)
        yield _pay(rng, person.id, person.family_abroad[0], amount, day)._replace(
            country=person.family_abroad[1]
        )
    yield from _rare(rng, bank, person, day)


def _rare(rng: Random, bank: Bank, person: Person, day: int) -> Iterator[Move]:
    """What happens to people now and then, and looks strange: cars, gifts, refunds, cards, loans."""
    drawn = rng.random()
    if drawn < 0.0004:
        yield _pay(rng, person.id, f"dealer-{rng.getrandbits(16)}", lognormal(rng, 9_000, 0.5), day)
    elif drawn < 0.0008:
        amount, giver = lognormal(rng, 1_200, 0.9), f"x-{rng.getrandbits(16)}"
        yield Move(moment(rng, day), person.id, "transfer.received", amount, "in", giver)
    elif drawn < 0.002:
        yield Move(
            moment(rng, day),
            person.id,
            "card.added",
            None,
            "",
            "",
            category="PAYMENT_INSTRUMENT",
            more={"instrumentId": f"card-{rng.getrandbits(40)}"},
        )
    elif drawn < 0.0022:
        guests = rng.sample(person.friends, min(len(person.friends), 3 + poisson(rng, 1.0)))
        for guest in guests:  # A birthday: several friends send something on one day.
            yield from _both(_pay(rng, guest, person.id, lognormal(rng, 50, 0.5), day), bank)
    if person.loan_day == day:
        yield Move(moment(rng, day), person.id, "loan.disbursed", person.loan, "in", "bank")
    elif person.loan_day is not None and day > person.loan_day and (day - person.loan_day) % 30 == 0:
        yield Move(moment(rng, day), person.id, "loan.repayment", person.loan / 36, "out", "bank")


def _commercial(rng: Random, business: Business, day: int) -> Iterator[Move]:
    if day % 7 in (5, 6) and not business.retail:
        return
    daily = business.income / (30 if business.retail else 22)
    if business.retail:
        taken = daily * lognormal(rng, 0.9, 0.3)
        cash = taken * business.cash_share
        yield Move(
            moment(rng, day),
            business.id,
            "cash.deposit",
            cash,
            "in",
            "",
            more={"channel": "cash", "city": business.city},
        )
        yield Move(moment(rng, day), business.id, "transfer.received", taken - cash, "in", "card-processor")
    for _ in range(poisson(rng, business.invoices)):
        client = business.client(rng)
        amount = daily / max(business.invoices, 0.2) * lognormal(rng, 0.8, 0.6)
        yield Move(
            moment(rng, day), business.id, "transfer.received", amount, "in", client[0], country=client[1]
        )
    for _ in range(poisson(rng, business.orders)):
        supplier = business.supplier(rng)
        amount = 0.6 * daily / max(business.orders, 0.2) * lognormal(rng, 0.8, 0.6)
        move = _pay(rng, business.id, supplier[0], amount, day)._replace(country=supplier[1])
        if business.trades:
            goods = {
                "invoiceAmount": round(amount, 2),
                "marketValue": round(amount * rng.normalvariate(1, 0.06), 2),
            }
            move = move._replace(name="trade.payment", more=goods)
        yield move
