"""Amounts in minor units, such as cents: what members are called that hold them, and how they are read.

A name says that it holds minor units (`amountCents`, `amount_minor`); how many of them make one unit says the
currency. Where the name says nothing, an amount is taken as one in units, for no number tells.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vettance.reference.currencies import minor_digits
from vettance.wire.spellings import both_cases
from vettance.wire.spelt_numbers import read_number

#: What follows the name of an amount in minor units: `totalAmountInCents`, and `amount` with `minor` within.
_ENDINGS: Final = (
    *("Minor", "InMinor", "MinorUnits", "InMinorUnits", "MinorUnit", "MinorAmount"),
    *("Cents", "InCents", "Cent", "CentAmount"),
)
#: What is called so by itself. A bare `minorUnits` is how many decimals a currency has (ISO 4217).
_BY_THEMSELVES: Final = ("minorAmount", "centAmount")
#: A price of one: Stripe's holds minor units, and that of shop and accounting systems units (`49.95`). As an
#: object (PayPal) it holds units.
_UNIT_AMOUNT: Final = both_cases("unitAmount")
#: Under which name `Spellings` gives what is said of it.
UNIT_AMOUNT: Final = "amount of one"
#: What may be a count, but is money in minor units.
_MONEY_IN_MINOR: Final = ("total", "totalPrice", "price", "value")
#: What an object calls its minor units. With `{"euros": 12, "cents": 50}` they are a part of the amount.
PARTS: Final = frozenset(both_cases(ending)[1] for ending in _ENDINGS)
_DECIMALS: Final = re.compile(r"[.,]\d{1,2}\s*\Z", re.ASCII)


def minor_name(name: str) -> str:
    """Return under which name `Spellings` gives what is said of an amount in minor units."""
    return f"{name} in minor units"


def minor_spellings(spellings: Iterable[str], *, of_event: bool = False) -> tuple[str, ...]:
    """Return how an amount of these spellings is called in minor units; that of an event has own words."""
    stems = [one for one in (*spellings, *(_MONEY_IN_MINOR if of_event else ())) if "_" not in one]
    words = both_cases(" ".join(f"{stem}{ending}" for ending in _ENDINGS for stem in stems))
    return (*words, *both_cases(" ".join(_BY_THEMSELVES)), *_UNIT_AMOUNT) if of_event else words


def with_minor(
    spellings: Mapping[str, tuple[str, ...]], minor: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return a table of spellings with those in minor units, for `Spellings`."""
    table = {**spellings, **{minor_name(name): texts for name, texts in minor.items()}}
    if "amount" in minor:
        table[UNIT_AMOUNT] = _UNIT_AMOUNT  # The last table entry of a spelling counts.
    return table


def in_units(said: dict[str, Any], names: Iterable[str], currency: Any) -> dict[str, Any]:
    """Put amounts that are said in minor units, and not in units, where those in units are; return `said`."""
    per_unit = 10 ** minor_digits(currency.strip().upper() if type(currency) is str else None)
    for name in names:
        _put(said, name, said.pop(minor_name(name), None), per_unit)
    price = said.pop(UNIT_AMOUNT, None)
    _put(said, "amount", price, 1 if _has_fraction(price) else per_unit)
    return said


def _put(said: dict[str, Any], name: str, value: Any, per_unit: int) -> None:
    if value is None or _says_units(said.get(name)):
        return
    if (number := read_number(value)) is not None:
        said[name] = number / per_unit
    else:
        said.setdefault(name, value)  # An amount that cannot be read is none that was left out.


def _says_units(value: Any) -> bool:
    """Tell whether an amount is there; an object may hold nothing but its minor units and its currency."""
    if type(value) is dict:
        return any(name.lower() in ("value", "amount") for name in value)
    return value is not None


def _has_fraction(value: Any) -> bool:
    """Tell whether a number has decimals; a text has them where it writes them: `50.00`."""
    number = read_number(value)
    if number is None:
        return False
    return number % 1 != 0 or (type(value) is str and _DECIMALS.search(value) is not None)
