"""Countries: from the names, adjectives and codes that lists and tenants use to ISO 3166-1 alpha-2."""

import re
import unicodedata
from functools import lru_cache

from vettance.reference.dictionary import read_lines, read_words

_NOT_LETTER = re.compile(r"[^a-z]+")


def _plain(text: str) -> str:
    bare = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return _NOT_LETTER.sub(" ", bare).replace(" the ", " ").removeprefix("the ").strip()


def _read_table() -> tuple[dict[str, str], dict[str, str]]:
    """Return (name, adjective or code → alpha-2) and (alpha-2 → short English name)."""
    known: dict[str, str] = {}
    names: dict[str, str] = {}
    for line in read_lines("countries"):
        alpha2, alpha3, words = line.split(" ", 2)
        names[alpha2] = words.partition("|")[0]
        for word in (alpha2, alpha3, *words.split("|")):
            known.setdefault(_plain(word), alpha2)
    return known, names


_KNOWN, NAMES = _read_table()

#: Words by which an organisation says where it is; an extra one of these makes it another organisation.
PLACE_WORDS = frozenset(
    word
    for words in (line.split(" ", 2)[2] for line in read_lines("countries"))
    for name in words.split("|")
    if len((word := _plain(name)).split()) == 1 and len(word) > 3
) | read_words("places")


#: Regions that name a country and are not it: who is of Luhansk is not of Donetsk.
REGION_WORDS = frozenset(
    (
        "abkhazia",
        "crimea",
        "donetsk",
        "england",
        "english",
        "gaza",
        "lugansk",
        "luhansk",
        "scotland",
        "scottish",
    )
) | {"somaliland", "wales", "welsh"}


@lru_cache(maxsize=4096)
def country_code(text: str) -> str:
    """Return the alpha-2 code of a country's name, adjective, alpha-2 or alpha-3 code; empty when unknown."""
    if not text:
        return ""
    plain = _plain(text)
    if code := _KNOWN.get(plain):
        return code
    # "Afghan national", "Russian citizen", "Iranian (since 1990)".
    head = _plain(re.split(r"[(;/]| since | by ", text, maxsplit=1)[0])
    for ending in (" national", " nationality", " citizen", " citizenship", " origin", " passport"):
        head = head.removesuffix(ending)
    return _KNOWN.get(head.strip(), "")


_SEPARATORS = re.compile(r"\s*(?:\(?\b(?:\d{1,2}|[a-h])\)|;|\||/| and (?=[A-Z])|\n)\s*")


def country_codes(text: str) -> list[str]:
    """Return the codes of every country in a text such as `1) Saudi Arabia 2) Qatar`."""
    whole = country_code(text)
    if whole:
        return [whole]
    found = [country_code(part.strip(" .,")) for part in _SEPARATORS.split(text)]
    if not any(found) and "," in text:
        found = [country_code(part.strip(" .")) for part in text.split(",")]
    return list(dict.fromkeys(code for code in found if code))
