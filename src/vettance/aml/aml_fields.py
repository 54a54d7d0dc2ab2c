"""What an AML event states, read however a tenant spells it; one small reader for each name of a rule."""

import math
from collections.abc import Callable
from typing import Final

from vettance.aml.aml_event import AmlEvent
from vettance.aml.transfer import Transfer, words_of
from vettance.clock import DAY_MS, HOUR_MS
from vettance.reference.currencies import REPORTING_LIMITS, Currencies
from vettance.reference.jurisdictions import country_of
from vettance.wire.payload import read_moment

#: What many laws have banks report: 10,000 (31 CFR 1010.311 in dollars; Directive (EU) 2015/849 in euros).
THRESHOLD: Final = 10_000
#: Amounts of this worth, or more, are round where they are multiples of `_ROUND`, by their currency's scale.
_ROUND_MIN: Final = 200
_ROUND: Final = 50
BIRTH_MEMBERS: Final = ("dateOfBirth", "date_of_birth", "birthDate", "birth_date", "dob")
#: Words of names by which an event is about a payment instrument.
_INSTRUMENTS: Final = tuple(
    frozenset(words.split())
    for words in ("card", "wallet", "instrument", "mandate", "iban", "payment method", "bank account")
)
_ADDS: Final = frozenset(
    {
        *("add", "added", "attach", "attached", "create", "created", "enroll", "enrolled"),
        *("link", "linked", "new", "register", "registered", "save", "saved"),
    }
)
#: Where a name says more, as `card.pin.changed` does, something else of the instrument was changed.
_CHANGES: Final = frozenset({"change", "changed", "replace", "replaced", "update", "updated"})
#: Parts of names by which no instrument is there that was not there before.
_NOT_ADDED: Final = (
    *("remov", "delet", "expir", "declin", "block"),
    *("fail", "reject", "refus", "cancel", "error"),
)
_YEAR_MS: Final = 365.2425 * 24 * HOUR_MS


def category(event: AmlEvent) -> str | None:
    return event.category.value if event.category is not None else None


def worth_of(currencies: Currencies, member: str = "amount") -> Callable[[AmlEvent], float | None]:
    """Read what an amount of a transfer weighs among the bounds of rules, by the currency of the event."""

    def read(event: AmlEvent) -> float | None:
        amount = getattr(event.transfer, member)
        return None if amount is None else amount / currencies.scale(event.transfer.currency)

    return read


def unit_price_of(currencies: Currencies) -> Callable[[AmlEvent], float | None]:
    """Read what one of the goods of a trade costs: as told, else invoice or amount by the quantity."""

    def read(event: AmlEvent) -> float | None:
        transfer = event.transfer
        if transfer.goods is None:
            return None
        price = transfer.unit_price
        if price is None:
            total = transfer.invoice_amount if transfer.invoice_amount is not None else transfer.amount
            if total is None or transfer.quantity is None or transfer.quantity <= 0:
                return None
            price = total / transfer.quantity
        return price / currencies.scale(transfer.currency) if price > 0 else None

    return read


def price_stated(event: AmlEvent) -> bool:
    """Tell whether the event says what goods cost, and not only what is paid, which may be a part of it."""
    return event.transfer.unit_price is not None or event.transfer.invoice_amount is not None


def below_limit(currencies: Currencies, share: float) -> Callable[[AmlEvent], bool]:
    """Tell whether an amount is below 10,000 or the limit of its currency, and at least that share of it."""

    def read(event: AmlEvent) -> bool:
        amount = event.transfer.amount
        if not event.transfer.moves or amount is None:
            return False
        limit = THRESHOLD * currencies.scale(event.transfer.currency)
        by_law = _limit(currencies, event.transfer)
        return share * limit <= amount < limit or share * by_law <= amount < by_law

    return read


def cash_below(currencies: Currencies) -> Callable[[AmlEvent], bool]:
    """Tell whether cash is paid in below 10,000, or below the limit of its currency."""

    def read(event: AmlEvent) -> bool:
        transfer = event.transfer
        return transfer.incoming and transfer.cash and (transfer.amount or 0) < _limit(currencies, transfer)

    return read


def large(currencies: Currencies) -> Callable[[AmlEvent], bool]:
    """Tell whether an amount reaches 10,000, or the limit of its currency."""

    def read(event: AmlEvent) -> bool:
        transfer = event.transfer
        return transfer.moves and (transfer.amount or 0) >= _limit(currencies, transfer)

    return read


def _limit(currencies: Currencies, transfer: Transfer) -> float:
    limit = THRESHOLD * currencies.scale(transfer.currency)
    return REPORTING_LIMITS.get(transfer.currency, limit) if transfer.currency is not None else limit


def round_sum(currencies: Currencies) -> Callable[[AmlEvent], bool]:
    """Tell whether an amount is a round sum in its own currency, and neither cash nor a price."""

    def read(event: AmlEvent) -> bool:
        transfer = event.transfer
        if not transfer.moves or transfer.amount is None or transfer.cash or transfer.buys:
            return False
        scale = currencies.scale(transfer.currency)
        # Banknotes go by tens: of 150 to the dollar, half of 5,000 is what 50 is here.
        step = _ROUND if scale == 1 else _ROUND / 2 * 10 ** math.floor(math.log10(scale))
        return transfer.amount >= _ROUND_MIN * scale and transfer.amount % step == 0

    return read


def place(event: AmlEvent) -> str | None:
    """Name where it was done: the branch or city, else the place of the event, else its country."""
    if event.transfer.city is not None:
        return event.transfer.city
    where = event.location
    if type(where) is dict:
        for name in ("branchId", "branch", "city", "name", "country"):
            if type(where.get(name)) is str and where[name]:
                return str(where[name])
    if type(where) is str and where:
        return where
    return event.country


def country(event: AmlEvent) -> str | None:
    """The country of the event, else that of its location."""
    if event.country is not None:
        return event.country
    where = event.location
    named = where.get("country", where.get("countryCode")) if type(where) is dict else None
    return country_of(named) if type(named) is str else None


def coordinate(names: tuple[str, ...], bound: float) -> Callable[[AmlEvent], float | None]:
    def read(event: AmlEvent) -> float | None:
        if type(event.location) is not dict:
            return None
        found = next((v for n in names if type(v := event.location.get(n)) in (int, float)), None)
        return float(found) if found is not None and abs(found) <= bound else None

    return read


def instrument(event: AmlEvent) -> str | None:
    """The instrument used; of an event about an instrument, else its reference."""
    if event.transfer.instrument is not None:
        return event.transfer.instrument
    return event.reference if category(event) == "PAYMENT_INSTRUMENT" else None


def adds_instrument(event: AmlEvent) -> bool:
    """By its category, or by its name: products often call the event ACCOUNT, or send no category."""
    name = event.name.lower()
    if any(word in name for word in _NOT_ADDED):
        return False
    return category(event) == "PAYMENT_INSTRUMENT" or _is_named_as_added(event)


def _is_named_as_added(event: AmlEvent) -> bool:
    if event.transfer.amount is not None:
        return False
    words = words_of(event.name)
    named = [instrument for instrument in _INSTRUMENTS if instrument <= words]
    if not words.isdisjoint(_ADDS):
        return bool(named)
    return not words.isdisjoint(_CHANGES) and any(words <= instrument | _CHANGES for instrument in named)


def description(event: AmlEvent) -> str | None:
    text = event.transfer.description
    return text if text is not None and len(text) >= 4 else None


def age_years(event: AmlEvent) -> float | None:
    """The customer's age at the event, from a date of birth (`yyyy-mm-dd`) in `customer` or its metadata."""
    profile = event.customer.get("metadata")
    for holder in (event.customer, profile if type(profile) is dict else {}, event.metadata):
        for name in BIRTH_MEMBERS:
            born_ms = read_moment(holder.get(name)) if type(holder.get(name)) is str else None
            if born_ms is not None and born_ms < event.occurred_at_ms:
                return (event.occurred_at_ms - born_ms) / _YEAR_MS
    return None


def hour(event: AmlEvent) -> int:
    return event.occurred_at_ms // HOUR_MS % 24


def weekday(event: AmlEvent) -> int:
    return (event.occurred_at_ms // DAY_MS + 3) % 7 + 1  # The Unix epoch was a Thursday.
