"""English words of names of organisations, and words of Russian in Latin letters by what they mean."""

import re
from functools import lru_cache

from vettance.reference.dictionary import read_lines, read_words
from vettance.watchlists.transliteration import romanise
from vettance.watchlists.vocabulary import GENERIC_WORDS, MEANINGS, NUMBER_WORDS

_TABLES = (
    "organization_cyrillic",
    "organization_arabic",
    "organization_arabic_names",
    "organization_han",
    "organization_korean",
)

#: Towns and regions are no usual words: the works of Bryansk are not those of Samara.
_PLACES = read_words("organization_places")


def is_town(text: str) -> bool:
    """Tell whether a word is a town or region by which translators name works and offices."""
    return text in _PLACES


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Return the words by which names are translated, each read as the one that means the same."""
    texts = [line.partition(": ")[0].removeprefix("=") for table in _TABLES for line in read_lines(table)]
    texts += read_lines("organization_related")
    words = {word for text in texts for word in text.split()} | GENERIC_WORDS
    return frozenset(MEANINGS.get(word, word) for word in words) - _PLACES


#: Endings that English words have and names hardly ever.
_ENGLISH = re.compile(
    r"[a-z]{3,}(?:tions?|ments?|ings?|ology|ological|ical|istics?|ances?|ences?|ity|ships?|tures?|graphy|ware"
    r"|ional|ative|isms?|ists|able|ness|ization|isation)"
)


@lru_cache(maxsize=16384)
def is_english_word(text: str) -> bool:
    """Tell whether a word is one by which names are translated, and so may stand for another of them."""
    return MEANINGS.get(text, text) in english_words() or _ENGLISH.fullmatch(text) is not None


@lru_cache(maxsize=1)
def related_words() -> dict[str, tuple[str, ...]]:
    """Return word → all words by which translators name the same."""
    groups: dict[str, dict[str, None]] = {}
    for line in read_lines("organization_related"):
        words = dict.fromkeys(MEANINGS.get(word, word) for word in line.split())
        for word in (*line.split(), *words):
            groups.setdefault(word, {}).update(words)
    return {word: tuple(one for one in related if one != word) for word, related in groups.items()}


#: Endings of words of one stem, in English and in languages that have it from Latin.
_KIN = re.compile(
    r"(?:|e?s|[aeiou]|[aeo]s|e[nr]|ers?|ors?|ings?|ed|al|als|ial|ical|ics?|ically|i[ck]?[aeo]?s?|ique"
    r"|isch(?:e[nrs]?)?|isk[aeit]?|ments?|at?ions?|ations?|ation[ae]l|ional|ive|ives|at?ors?|at?ory|ary|ists?|ism|y|ies|ity|an|ian)"
)
_KIN_MIN = 6


@lru_cache(maxsize=16384)
def are_related(text: str, other: str) -> bool:
    """Tell whether translators write one usual word for another: works, plant; optics, optical."""
    one, two = MEANINGS.get(text, text), MEANINGS.get(other, other)
    if two in related_words().get(one, ()) or one in related_words().get(two, ()):
        return True
    pairs = enumerate(zip(text, other, strict=False))
    shared = next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))
    return (
        shared >= _KIN_MIN
        and (is_english_word(text) or is_english_word(other))
        and any(
            _KIN.fullmatch(text[length:]) is not None and _KIN.fullmatch(other[length:]) is not None
            for length in (shared, shared - 1)
            if length >= _KIN_MIN - 1
        )
    )


#: One sound of Russian is written in several ways in Latin letters.
_SOUNDS = (
    *(("shch", "sch"), ("kh", "h"), ("ya", "ia"), ("yu", "iu"), ("ye", "e"), ("ts", "c"), ("tz", "c")),
    *(("yo", "io"), ("zh", "j"), ("w", "v"), ("x", "ks"), ("y", "i"), ("j", "i"), ("\u0027", "")),
)
_RUN = re.compile(r"(.)\1+")
_STEM_MIN, _ENDING_MAX = 4, 5
_ADJECTIVE = re.compile(r"(?<=[a-z]{3})(?:en|in|an|ov|ev)?s?k(?:ii|i|aia|oie|oe|oi|ogo|om|ie|ih)$")
_LAST_VOWEL = re.compile(r"[aeiou]+$")


def _spelt(text: str) -> str:
    """Bring the spellings of Russian in Latin letters to one."""
    for written, sound in _SOUNDS:
        text = text.replace(written, sound)
    return _RUN.sub(r"\1", text)


@lru_cache(maxsize=1)
def _romanised() -> dict[str, frozenset[str]]:
    """Return (beginning of a word of Russian in Latin letters → what it means in English)."""
    found: dict[str, set[str]] = {}
    for line in read_lines("organization_cyrillic"):
        english, _, stems = line.partition(": ")
        if english.isalpha():
            for stem in stems.split():
                spelt = _spelt(romanise(stem)[0])
                if "+" not in stem and len(spelt) >= _STEM_MIN - 1:
                    # Names are compared with first and fifth as numbers.
                    meant = NUMBER_WORDS.get(english, MEANINGS.get(english, english))
                    found.setdefault(spelt, set()).add(meant)
    return {stem: frozenset(meanings) for stem, meanings in found.items()}


@lru_cache(maxsize=16384)
def _meanings(text: str) -> frozenset[str]:
    """Return what a word in Latin letters means if it is one of Russian, and the places it may be of."""
    if len(text) < _STEM_MIN or not text.isalpha():
        return frozenset()
    spelt, known = _spelt(text), _romanised()
    least = max(_STEM_MIN - 1, len(spelt) - _ENDING_MAX)
    stems = (spelt[:length] for length in range(len(spelt), least - 1, -1))
    meanings = next((known[stem] for stem in stems if stem in known), frozenset())
    place = _ADJECTIVE.sub("", spelt)
    return meanings | {f"={place}"} if place != spelt and len(place) >= _STEM_MIN else meanings


def mean_the_same(text: str, other: str) -> bool:
    """Tell whether a word of Russian in Latin letters means the other, or is the adjective of that place."""
    meanings = _meanings(text)
    if not meanings:
        return False
    place = "=" + _LAST_VOWEL.sub("", _spelt(other))
    return MEANINGS.get(other, other) in meanings or (len(place) > _STEM_MIN and place in meanings)
