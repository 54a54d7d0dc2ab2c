"""Amounts in minor units, such as cents: what members are called that hold them, and how they are read.

A name says that it holds minor units (`amountCents`, `amount_minor`); how many of them make one unit says the
currency. Where the name says nothing, an amount is taken as one in units, for no number tells.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vettance.reference.currencies import minor_digits
from vettance.wire.spellings import both_cases

#: What follows the name of an amount in minor units: `totalAmountInCents`, and `amount` with `minor` within.
_ENDINGS: Final = (
    *("Minor", "InMinor", "MinorUnits", "InMinorUnits", "MinorUnit", "MinorAmount"),
    *("Cents", "InCents", "Cent", "CentAmount"),
)
#: What is called so by itself. `unitAmount` is Stripe's word; as an object (PayPal) it holds units.
_BY_THEMSELVES: Final = ("minorAmount", "centAmount", "minorUnits", "unitAmount")
#: What may be a count, but is money in minor units.
_MONEY_IN_MINOR: Final = ("total", "totalPrice", "price", "value")
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,9})?", re.ASCII)


def minor_name(name: str) -> str:
    """Return under which name `Spellings` gives what is said of an amount in minor units."""
    return f"{name} in minor units"


def minor_spellings(spellings: Iterable[str], *, of_event: bool = False) -> tuple[str, ...]:
    """Return how an amount of these spellings is called in minor units; that of an event has own words."""
    stems = [one for one in (*spellings, *(_MONEY_IN_MINOR if of_event else ())) if "_" not in one]
    words = [f"{stem}{ending}" for ending in _ENDINGS for stem in stems]
    return both_cases(" ".join((*words, *(_BY_THEMSELVES if of_event else ()))))


def with_minor(
    spellings: Mapping[str, tuple[str, ...]], minor: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return a table of spellings with those in minor units, for `Spellings`."""
    return {**spellings, **{minor_name(name): texts for name, texts in minor.items()}}


def in_units(said: dict[str, Any], names: Iterable[str], currency: Any) -> dict[str, Any]:
    """Put amounts that are said in minor units, and not in units, where those in units are; return `said`."""
    for name in names:
        value = said.pop(minor_name(name), None)
        if value is None or _says_units(said.get(name)):
            continue
        if (number := _number(value)) is not None:
            digits = minor_digits(currency.strip().upper() if type(currency) is str else None)
            said[name] = number / 10**digits
        else:
            said.setdefault(name, value)  # An amount that cannot be read is none that was left out.
    return said


def _says_units(value: Any) -> bool:
    """Tell whether an amount is there; an object may hold nothing but its minor units and its currency."""
    if type(value) is dict:
        return any(name.lower() in ("value", "amount") for name in value)
    return value is not None


def _number(value: Any) -> float | int | None:
    if type(value) is str:
        return float(value) if _NUMBER.fullmatch(value := value.strip()) else None
    return value if type(value) is int or (type(value) is float and math.isfinite(value)) else None
