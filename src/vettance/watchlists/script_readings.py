"""Other readings of a name in its own script: Han in Korean and Cantonese, organisations by what they mean,
and names of other languages in Hangul and Katakana.

One text stands for several names in Latin letters: 金正恩 is listed as Kim Jong Un and not by its Mandarin,
林鄭月娥 as Lam Cheng Yuet-ngor, and لشكر الإسلام as Lashkar-e-Islam or as Army of Islam.
"""

import re
from functools import lru_cache

from vettance.watchlists.arabic_meanings import detached, translate_arabic
from vettance.watchlists.cyrillic_meanings import names_in_quotes, translate_cyrillic
from vettance.watchlists.east_asian_meanings import read_han, translate_han, translate_hangul
from vettance.watchlists.entity import clean
from vettance.watchlists.loaned_names import read_loaned
from vettance.watchlists.name_analysis import Grammar

#: The words of a name, each with all that it may mean, the likeliest first.
Reading = tuple[tuple[str, ...], ...]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{2,}")
_HANGUL = re.compile(r"[\uac00-\ud7a3]{2,}")
_ARABIC = re.compile(r"[\u0620-\u064a\u066e-\u06d3]{2,}")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]{2,}")
#: Czech and Slovak write the names of women of other nations with an ending: Tauberová.
_FEMININE = re.compile(r"(?<=[^\W\d_]{4})ov(?:á|a\u0301)\b", re.IGNORECASE)
#: A mute h, which Persian writes at the end of a word and parts from what is added to it.
_MUTE = "ه\u200cا"


@lru_cache(maxsize=4096)
def script_readings(text: str, grammar: Grammar) -> tuple[str | Reading, ...]:
    """Return the other readings of a name, none for most names."""
    if grammar is Grammar.PERSON:
        unmuted = (clean(text.replace(_MUTE, "ا")),) if _MUTE in text else ()
        masculine = (clean(_FEMININE.sub("", text)),) if _FEMININE.search(text) else ()
        return (*masculine, *unmuted, *read_han(clean(text)), *read_loaned(clean(text)))
    if grammar is not Grammar.ORGANIZATION:
        return ()
    text = clean(text)
    if _CYRILLIC.search(text):
        readings: list[str | Reading] = [*translate_cyrillic(text)]
        for name in names_in_quotes(text):
            # Word by word, and with abbreviations for phrases.
            own = [*translate_cyrillic(name)]
            readings += [own[0], own[-1]] if own else [name]
        return tuple(dict.fromkeys(readings))
    if _ARABIC.search(text):
        said = detached(text)
        return (*dict.fromkeys(translate_arabic(text)), *([said] if said != text else []))
    if _HANGUL.search(text):
        return tuple(translate_hangul(text))
    return tuple(translate_han(text)) if _HAN.search(text) else ()
