"""Other readings of a name in its own script: Han in Korean and Cantonese, organisations by what they mean.

One text stands for several names in Latin letters: 金正恩 is listed as Kim Jong Un and not by its Mandarin,
林鄭月娥 as Lam Cheng Yuet-ngor, and لشكر الإسلام as Lashkar-e-Islam or as Army of Islam.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from vettance.reference.dictionary import read_lines
from vettance.watchlists.cyrillic_meanings import translate_cyrillic
from vettance.watchlists.entity import clean
from vettance.watchlists.name_analysis import Grammar

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_ARABIC = re.compile(r"[\u0620-\u064a\u066e-\u06d3]{2,}")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]{2,}")
_MARKS = re.compile("[\u064b-\u065f\u0670\u0640]")
#: Nearly all Korean and Cantonese names have three characters, some four; of two, too many names sound alike.
_HAN_MIN, _HAN_MAX = 3, 4
#: The family names of 97 in 100 Koreans (Statistics Korea, census of 2015), as the table reads them.
_KOREAN_FAMILIES = frozenset(
    "김리박최정강조윤장림오한신서권황안송류홍전고문손량배백허남심로하곽성차주우구민진지엄원천방공현함변렴녀추도석"
)


def script_readings(text: str, grammar: Grammar) -> tuple[str, ...]:
    """Return the other readings of a name, none for most names."""
    return () if text.isascii() else _script_readings(text, grammar)


#: A mute h, which Persian writes at the end of a word and parts from what is added to it.
_MUTE = "ه\u200cا"


@lru_cache(maxsize=4096)
def _script_readings(text: str, grammar: Grammar) -> tuple[str, ...]:
    if grammar is Grammar.PERSON:
        unmuted = (clean(text.replace(_MUTE, "ا")),) if _MUTE in text else ()
        return (*unmuted, *_read_han(clean(text)))
    text = clean(text)
    if grammar is Grammar.ORGANIZATION and _CYRILLIC.search(text):
        return tuple(one for one in dict.fromkeys(translate_cyrillic(text)) if one != text)
    if grammar is Grammar.ORGANIZATION and _ARABIC.search(text):
        # A word such as East or Helpers is as often kept as it is translated.
        readings = (
            _translate(text, _names() | _words()),
            _translate(text, _words()),
            _translate(text, _words(), meaning=-1),
            _detached(text),
        )
        return tuple(one for one in dict.fromkeys(readings) if one != text)
    return ()


def _read_han(text: str) -> Iterator[str]:
    letters = text.replace("·", "")
    if not _HAN_MIN <= len(letters) <= _HAN_MAX or not all(map(_HAN.match, letters)):
        return
    korean, cantonese = _tables()
    family = korean.get(letters[0], ""), korean.get(letters[-1], "")
    if not _KOREAN_FAMILIES.isdisjoint(family) and all(letter in korean for letter in letters):
        yield "".join(korean[letter] for letter in letters)
    syllables = [cantonese.get(letter) for letter in letters]
    if all(syllables):
        yield " ".join(_spell(syllable or "") for syllable in syllables)


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    """Return (character → its Korean reading in Hangul) and (character → its Jyutping)."""
    tables: list[dict[str, str]] = []
    for name in ("han_korean", "han_cantonese"):
        pairs = (line.split(" ", 1) for line in read_lines(name))
        tables.append({letter: reading for reading, letters in pairs for letter in letters})
    return tables[0], tables[1]


#: Jyutping → how Hong Kong writes it (the Government's romanisation, as on its identity cards): initials,
#: finals, and whole syllables that are written in their own way.
_INITIALS = {
    "gw": "kw",
    "b": "p",
    "d": "t",
    "g": "k",
    "z": "ch",
    "c": "ch",
    "j": "y",
}
_FINALS = {
    "aa": "a",
    "aai": "ai",
    "aau": "au",
    "aam": "am",
    "aan": "an",
    "aang": "ang",
    "aap": "ap",
    "aat": "at",
    "aak": "ak",
    "ou": "o",
    "oe": "eu",
    "oeng": "eung",
    "oek": "euk",
    "eoi": "ui",
    "eon": "un",
    "eot": "ut",
    "yu": "u",
    "yun": "uen",
    "yut": "uet",
    "eng": "ing",
}
_SYLLABLES = {
    "zi": "chi",
    "si": "sze",
    "ji": "yi",
    "jyu": "yu",
    "zang": "tsang",
    "cang": "tsang",
    "zoi": "choi",
    "coi": "choi",
    "ceoi": "tsui",
    "zeoi": "chui",
    "lei": "lee",
    "sek": "shek",
    "sing": "shing",
    "ngo": "ngor",
    "zeng": "cheng",
    "deng": "teng",
    "zai": "chai",
    "sam": "sum",
    "m": "ng",
    "san": "sun",
}
_INITIAL = re.compile(r"gw|kw|ng(?=.)|[bpmfdtnlgkhwzcsj]")


def _spell(syllable: str) -> str:
    """Return a syllable of Jyutping as Hong Kong writes it."""
    if (known := _SYLLABLES.get(syllable)) is not None:
        return known
    match = _INITIAL.match(syllable)
    initial = match[0] if match else ""
    final = syllable[len(initial) :]
    return _INITIALS.get(initial, initial) + _FINALS.get(final, final)


#: What is written on to a word of Arabic: and, with, for, the.
_WRITTEN_ON = ("وال", "بال", "لل", "ال", "و", "ب", "ل")
_STEM_MIN = 3
#: Letters that hands and keyboards write in several ways, made one.
_ONE_LETTER = str.maketrans("أإآٱىیېےئکگھہۀةۃ", "اااايييييككههههه")


def _plain(word: str) -> str:
    return _MARKS.sub("", word).translate(_ONE_LETTER).replace("\u200c", "")


#: Endings of adjectives, plurals and compounds: of a word that the table has not, its stem is looked up.
_ENDINGS = ("سازي", "هاي", "يه", "ها", "ات", "ه", "ي")


#: Word → what it means in English; some words mean two things.
Meanings = dict[str, tuple[str, ...]]


def _read(name: str) -> Meanings:
    meanings: Meanings = {}
    for line in read_lines(name):
        english, _, words = line.partition(": ")
        for word in map(_plain, words.split()):
            meanings[word] = (*meanings.get(word, ()), english)
    return meanings


@lru_cache(maxsize=1)
def _words() -> Meanings:
    """Return the words that are translated wherever they occur."""
    return _read("organization_arabic")


@lru_cache(maxsize=1)
def _names() -> Meanings:
    """Return the words that are as often kept as names."""
    return _read("organization_arabic_names")


def _meaning(word: str, meanings: Meanings) -> tuple[str, ...]:
    """Return what a word of Arabic or Persian means, nothing for one that is not known."""
    plain = _plain(word)
    whole = [plain]
    for start in _WRITTEN_ON:
        rest = plain.removeprefix(start)
        if rest != plain and len(rest) >= _STEM_MIN:
            whole.append(rest)
    stems = [
        text.removesuffix(ending)
        for text in whole
        for ending in _ENDINGS
        if text.endswith(ending) and len(text) - len(ending) >= _STEM_MIN
    ]
    return next((meanings[text] for text in (*whole, *stems) if text in meanings), ())


_AND_THE = re.compile(r"(?<!\S)(?:و|ب|لل|ف)(?=ال[\u0620-\u064a]{3})|(?<!\S)لل(?=[\u0620-\u064a]{3})")
#: Before another word the ending of "Asba" is said: Asbat al-Ansar.
_SAID_ENDING = re.compile(r"(?<=[\u0620-\u064a]{2})ة(?=\s+[\u0620-\u064a])")


def _detached(text: str) -> str:
    """Write a name as it is said: without what is written on to an article, and with the t of "Asbat"."""
    return _SAID_ENDING.sub("ت", _AND_THE.sub("", text))


#: Short blessings behind a revered name.
_BLESSINGS = frozenset({"ص", "ع", "عج", "س", "ره"})


def _translate(text: str, meanings: Meanings, meaning: int = 0) -> str:
    """Write the words of an organisation in English as far as they are known; the rest stays."""
    said = []
    for written in text.replace("\u200c", " ").split():
        word = written.strip("()[],.،؛:-–“”\"'«»")
        if word in _BLESSINGS:
            continue
        meant = _meaning(word, meanings)
        said.append(meant[meaning] if meant else word)
    return " ".join(said)
