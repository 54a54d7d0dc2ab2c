"""Names in Han and Hangul: organisations by what their words mean, people as Korea and Hong Kong write them.

Words are not separated there: the longest one that a table has (`organization_han.txt`,
`organization_korean.txt`) is taken first; what is between two of them is a name, in Latin letters.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from vettance.reference.dictionary import read_lines
from vettance.watchlists.transliteration import romanise

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
#: Nearly all Korean and Cantonese names have three characters, some four; of two, too many names sound alike.
_HAN_MIN, _HAN_MAX, _SAME_MIN = 3, 4, 2
#: The family names of 97 in 100 Koreans (Statistics Korea, census of 2015), as the table reads them.
_KOREAN_FAMILIES = frozenset(
    "김리박최정강조윤장림오한신서권황안송류홍전고문손량배백허남심로하곽성차주우구민진지엄원천방공현함변렴녀추도석"
)


def read_han(text: str) -> Iterator[str]:
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


def other_characters(text: str, other: str) -> bool:
    """Tell whether two names in Han are written otherwise and not in other forms of the same characters.

    Many characters have one sound in Mandarin: 高石 and 高市 are two names. A simplified character and
    its traditional form have one reading in Cantonese as well.
    """
    if text == other or len(text) != len(other) or not _SAME_MIN <= len(text) <= _HAN_MAX:
        return False
    cantonese = _tables()[1]
    readings = [(cantonese.get(one), cantonese.get(two)) for one, two in zip(text, other, strict=True)]
    return any(one and two and one != two for one, two in readings)


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


@lru_cache(maxsize=2)
def _vocabulary(table: str) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return (word → meanings, length of the longest word)."""
    words: dict[str, tuple[str, ...]] = {}
    for line in read_lines(table):
        english, _, texts = line.partition(": ")
        for text in texts.split():
            words[text] = (*words.get(text, ()), english)
    return words, max(map(len, words))


def _segments(text: str, table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (part of a text, its meanings), the longest known words first; what is no word has no meaning.

    A single character is a word behind another word or at the end; elsewhere it is part of a name: 황해.
    """
    words, longest = _vocabulary(table)
    start = place = 0
    while place < len(text):
        sizes = range(min(longest, len(text) - place), 0, -1)
        length = next((size for size in sizes if text[place : place + size] in words), 0)
        if length == 1 and start < place < len(text) - 1:
            length = 0
        if length:
            if start < place:
                yield text[start:place], ()
            yield text[place : place + length], words[text[place : place + length]]
            start = place = place + length
        else:
            place += 1
    if start < len(text):
        yield text[start:], ()


_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+|[^\W_]+")


def _translate(
    text: str, table: str, spellings: Callable[[str], tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], ...]]:
    reading: list[tuple[str, ...]] = []
    known = False
    for run in _RUN.findall(text):
        if run.isascii():
            reading.append((run,))
            continue
        for part, meanings in _segments(run, table):
            known = known or bool(meanings)
            reading.append((*meanings, *spellings(part)))
    if known:
        yield tuple(reading)


def translate_han(text: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield the name of an organisation in Han with what each word may mean; names are written in pinyin."""
    yield from _translate(text, "organization_han", _pinyin)


def translate_hangul(text: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield the name of an organisation in Hangul with what each word may mean."""
    yield from _translate(text, "organization_korean", _korean)


def _pinyin(text: str) -> tuple[str, ...]:
    return (romanise(text)[0].replace(" ", ""),)


#: Between sounds that are voiced a stop is voiced too, and at the beginning of a word the South drops or
#: changes what the North keeps (https://www.korean.go.kr, romanisation of 2000; McCune-Reischauer of 1937).
_VOICED = re.compile(r"(?<=[aeiouyngml])(?:ch|[kptj])(?=[aeiouyw])")
_VOICE = {"k": "g", "p": "b", "t": "d", "ch": "j", "j": "j"}
_SOUTHERN = re.compile(r"^(?:n(?=y|i)|r(?=y|i))|^r(?=[aeou])")


def _korean(text: str) -> tuple[str, ...]:
    north = romanise(text)[0].replace(" ", "")
    voiced = _VOICED.sub(lambda match: _VOICE[match[0]], north)
    south = _SOUTHERN.sub(
        lambda match: "" if match.end() < len(voiced) and voiced[match.end()] in "yi" else "n", voiced
    )
    return tuple(dict.fromkeys((voiced, north, south)))
