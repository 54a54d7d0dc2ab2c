"""Spellings of usual words: what a word of an organisation was written as before it was read as another.

`Iranian` is read as `iran`, `industry` as `industries`, `fourteenth` as 14. A typing error, or a joint with
the word before, hides the word that was written from that reading; here it is found again.
"""

from functools import lru_cache

from rapidfuzz.distance import OSA

from vettance.reference.countries import NAMES, PLACE_WORDS, REGION_WORDS, country_code
from vettance.watchlists.less_one_letter import nearly
from vettance.watchlists.vocabulary import ABBREVIATIONS, GENERIC_WORDS, NUMBER_WORDS

#: A shorter word with an error is as likely to be another word, unless two letters are in each other's place.
_MISSPELT_MIN, _SWAPPED_MIN = 6, 5


def read_place(text: str) -> str:
    """Return the name of a country for its adjectives and names: Iranian, Iran; its regions stay."""
    if text in ("korean", "korea", "dprk"):
        return "korea"
    code = country_code(text) if len(text) > 3 and text not in REGION_WORDS else ""
    name = NAMES[code].casefold() if code else ""
    return name if name.isalpha() and name.isascii() else text


#: Words that others are read as, and that are none of the commonest: `charity`, for charitable.
READ_FOR_OTHERS = frozenset(ABBREVIATIONS.values()) - GENERIC_WORDS


@lru_cache(maxsize=1)
def _spellings() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for word in GENERIC_WORDS:
        found.setdefault(ABBREVIATIONS.get(word, word), {})[word] = None
        found[ABBREVIATIONS.get(word, word)][word + "s"] = None
    for short, word in (*ABBREVIATIONS.items(), *NUMBER_WORDS.items()):
        found.setdefault(word, {})[short] = None
    for word in PLACE_WORDS:
        if (place := read_place(word)) != word:
            found.setdefault(place, {})[word] = None
    return {word: tuple(spelt for spelt in texts if spelt != word) for word, texts in found.items()}


def spellings(usual: str) -> tuple[str, ...]:
    """Return what else is read as this word, nothing for most words."""
    return _spellings().get(usual, ())


@lru_cache(maxsize=16384)
def misspelt(text: str, usual: str) -> bool:
    """Tell whether a word is a spelling of a usual word with one typing error: KNDUSTRY, Industries."""
    return len(text) >= _SWAPPED_MIN and any(
        OSA.distance(text, spelt, score_cutoff=1) == 1
        and (min(len(text), len(spelt)) >= _MISSPELT_MIN or sorted(text) == sorted(spelt))
        for spelt in (usual, *spellings(usual))
    )


@lru_cache(maxsize=1)
def _by_less_one() -> dict[str, tuple[str, ...]]:
    """Return (spelling of a usual word, or that less a letter → the usual words)."""
    found: dict[str, dict[str, None]] = {}
    for usual, texts in _spellings().items():
        for spelt in (usual, *texts):
            for key in nearly(spelt) if len(spelt) >= _SWAPPED_MIN else ():
                found.setdefault(key, {})[usual] = None
    return {key: tuple(words) for key, words in found.items()}


def usual_words(text: str) -> list[str]:
    """Return the usual words of which a word is a spelling with one typing error, nothing for most words."""
    if len(text) < _SWAPPED_MIN:
        return []
    known = _by_less_one()
    likely = dict.fromkeys(usual for key in sorted(nearly(text)) for usual in known.get(key, ()))
    return [usual for usual in likely if misspelt(text, usual)]
