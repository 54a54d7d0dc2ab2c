"""Jurisdictions that rules speak of: dated lists, each with its publisher, replaceable by settings."""

import functools
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vettance.reference.countries import NAMES, country_code

#: FATF, "High-Risk Jurisdictions subject to a Call for Action", 24 October 2025.
CALL_FOR_ACTION: Final = ("KP", "IR", "MM")
#: FATF, "Jurisdictions under Increased Monitoring", 24 October 2025.
INCREASED_MONITORING: Final = (
    *("AO", "BG", "BO", "CD", "CI", "CM", "DZ", "HT", "KE", "LA"),
    *("LB", "MC", "NA", "NP", "SS", "SY", "VE", "VG", "VN", "YE"),
)
#: Under a general embargo of the United States, OFAC, 31 CFR parts 510, 515 and 560, as of October 2025.
SANCTIONED: Final = ("CU", "IR", "KP")
LISTS_DATE: Final = "2025-10-24"


class Jurisdictions(msgspec.Struct, frozen=True):
    """Which countries count as what, as ISO 3166-1 alpha-2 codes, and what their money weighs.

    `scales` replace those of `currencies.py`.
    """

    call_for_action: frozenset[str] = frozenset(CALL_FOR_ACTION)
    high_risk: frozenset[str] = frozenset(INCREASED_MONITORING)
    sanctioned: frozenset[str] = frozenset(SANCTIONED)
    scales: Mapping[str, float] = {}


def read_codes(text: str) -> frozenset[str]:
    """Read a list such as `KP, IRN, MM`. Raises `ValueError` naming the first bad part."""
    return frozenset(_codes(part.strip() for part in text.split(",") if part.strip()))


def _codes(parts: Iterable[str]) -> Iterable[str]:
    for part in parts:
        code = iso_code(part)
        if code is None:
            raise ValueError(f"{part} is no ISO 3166-1 code")
        yield code


@functools.lru_cache(maxsize=1024)
def iso_code(text: str) -> str | None:
    """Return the alpha-2 code of an ISO 3166-1 alpha-2 or alpha-3 code in any letter case, else None."""
    if not text.isascii() or not text.isalpha() or len(text) not in (2, 3):
        return None
    code = country_code(text)
    # Two letters may also abbreviate a name ("UK"); of codes only the assigned ones count.
    if len(text) == 2:
        return text.upper() if text.upper() in NAMES else None
    return code if code and text.upper() not in _WORDS else None


#: Abbreviations of three letters that the table of countries knows and that are no codes.
_WORDS: Final = frozenset({"UAE", "DRC", "CAR", "PRC", "LAO", "BVI"})


@functools.lru_cache(maxsize=4096)
def country_of(text: str) -> str | None:
    """Return the alpha-2 code of a country however a tenant names it (code, name or adjective), else None."""
    return country_code(text) or None
