"""Mandarin: names made wholly of its syllables, and pinyin as Wade-Giles writes it.

Wade-Giles tells b from p, d from t and j from q by an apostrophe that most who use it leave out: one of its
spellings stands for several of pinyin, and each of pinyin for one of Wade-Giles. So a word of a name that can
be pinyin is compared, as Wade-Giles writes it, with words of names that can be Wade-Giles, and no
others: "Chang Ping" may be "Zhang Bing", who is not "Zhang Ping" for that.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from vettance.reference.dictionary import read_lines

#: A name has two syllables at least and four at most: two for the family, two given.
_SYLLABLES_MIN, _SYLLABLES_MAX = 2, 4
#: A word has three at most; within one, only consonants can begin a syllable.
_WORD_MAX = 3
_VOWELS = tuple("aeiou")
#: Spellings that are as usual as those of the table.
_USUAL = {"i": "yi", "ssu": "szu", "o": "e", "tzu": "tze"}


class Syllables(NamedTuple):
    """A word of a name that is made of syllables alone.

    `pinyin`: how Wade-Giles writes the word, if the whole name can be pinyin. `giles`: the word, if the whole
    name can be Wade-Giles.
    """

    pinyin: tuple[str, ...]
    giles: str


def _read() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in read_lines("mandarin"):
        initial, giles, *finals = line.replace("-", "").split(" ")
        for final in finals:
            own, _, other = final.partition("=")
            table[initial + own] = giles + (other or own)
    return table


#: A syllable of pinyin → the same in Wade-Giles, both without marks.
GILES = _read()


_LONGEST = max(map(len, GILES))


def _word_of(syllables: Iterable[str]) -> "re.Pattern[str]":
    """Match a word of syllables."""
    known = sorted(syllables, key=len, reverse=True)
    further = "|".join(one for one in known if one[0] not in _VOWELS)
    return re.compile(rf"({'|'.join(known)})({further})?({further})?")


_GILES = _word_of({*GILES.values(), *(_USUAL[one] for one in GILES.values() if one in _USUAL)})


def _splits(text: str, most: int = _WORD_MAX) -> Iterator[list[str]]:
    """Yield every way to part a word of pinyin, the one with the longest syllables in front first."""
    for end in range(min(len(text), _LONGEST), 0, -1) if most else ():
        head, rest = text[:end], text[end:]
        if head not in GILES or rest[:1] in _VOWELS:
            continue
        if not rest:
            yield [head]
        for tail in _splits(rest, most - 1) if rest else ():
            yield [head, *tail]


@lru_cache(maxsize=65536)
def _parts(text: str) -> tuple[tuple[str, ...], int]:
    """Return how Wade-Giles writes a word of pinyin, and its number of syllables: nothing, 0 if none.

    A word such as Banyue can be parted in two ways, Ban Yue and Ba Nyue, which Wade-Giles writes differently;
    the first is the likelier one. Of its two forms, the plain one comes first and the usual one last.
    """
    splits = list(_splits(text))
    if not splits:
        return (), 0
    plain = ["".join(GILES[part] for part in parts) for parts in splits]
    usual = ["".join(_USUAL.get(GILES[part], GILES[part]) for part in parts) for parts in splits]
    others = [one for one in (*plain[1:], *usual[1:]) if one != usual[0]]
    return tuple(dict.fromkeys((plain[0], *others, usual[0]))), len(splits[0])


@lru_cache(maxsize=65536)
def _count_giles(text: str) -> int:
    """Return of how many syllables of Wade-Giles a word is; 0 if it is none."""
    match = _GILES.fullmatch(text)
    return 0 if match is None else sum(part is not None for part in match.groups())


def is_syllables(text: str) -> bool:
    """Tell whether a word is made of syllables of pinyin or Wade-Giles."""
    return bool(_parts(text)[1] or _count_giles(text))


def syllables_of(texts: Sequence[str]) -> list[Syllables] | None:
    """Return the words of a name as syllables; None unless the whole name is pinyin or Wade-Giles."""
    if not all(map(is_syllables, texts)):
        return None
    pinyin = [_parts(text) for text in texts]
    giles = [_count_giles(text) for text in texts]
    is_pinyin, is_giles = _is_name([count for _forms, count in pinyin]), _is_name(giles)
    if not is_pinyin and not is_giles:
        return None
    return [
        Syllables(forms if is_pinyin else (), text if is_giles else "")
        for text, (forms, _count) in zip(texts, pinyin, strict=True)
    ]


def _is_name(counts: Sequence[int]) -> bool:
    return all(counts) and _SYLLABLES_MIN <= sum(counts) <= _SYLLABLES_MAX


def joined(parts: Sequence[Syllables | None]) -> Syllables | None:
    """Return words run together; None if one of them is none of syllables."""
    forms: list[tuple[str, ...]] = []
    giles: list[str] = []
    for part in parts:
        if part is None:
            return None
        forms.append(part.pinyin)
        giles.append(part.giles)
    plain = "".join(form[0] for form in forms) if all(forms) else ""
    usual = "".join(form[-1] for form in forms) if plain else ""
    return Syllables(
        tuple(dict.fromkeys(text for text in (plain, usual) if text)), "".join(giles) if all(giles) else ""
    )


def are_one(one: Syllables, other: Syllables) -> bool:
    """Tell whether one word is the Wade-Giles of the other."""
    return (one.giles != "" and one.giles in other.pinyin) or (
        other.giles != "" and other.giles in one.pinyin
    )


def are_foreign(one: Syllables, other: Syllables) -> bool:
    """Tell whether one word can only be pinyin and the other only Wade-Giles."""
    if one.giles:
        one, other = other, one
    return not one.giles and not other.pinyin


#: Two syllables so many letters apart are two, one letter apart they may be one that is misspelt.
_OTHER_SYLLABLE = 2


def are_two(one: Syllables | None, other: Syllables | None, text: str, other_text: str) -> bool:
    """Tell whether two words of pinyin differ by more of a syllable than a typing error: Yongyu, Yongguo."""
    return bool(one and other and one.pinyin and other.pinyin) and _are_apart(text, other_text)


@lru_cache(maxsize=65536)
def _are_apart(text: str, other_text: str) -> bool:
    apart = [
        max(OSA.distance(left, right) for left, right in zip(parts, others, strict=True))
        for parts in _splits(text)
        for others in _splits(other_text)
        if len(parts) == len(others)
    ]
    return bool(apart) and min(apart) >= _OTHER_SYLLABLE
