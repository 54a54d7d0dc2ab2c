"""Belarusian and Russian spellings of one name: Halavanau, Golovanov; Radzkou, Radkov; Shautsou, Shevtsov.

Belarusian writes what it says: an unstressed o or e is an a (akanne, yakanne), a soft d or t is dz or ts,
the v before a consonant or at the end is a short u, g is said as h. Papers of one person have either
spelling: by the Belarusian instruction on the romanisation of names (2000, 2007), or as Russian passports do.
"""

import re
from functools import lru_cache

#: What a word has that was written by Belarusian: dz, a short u, and unstressed vowels at the ends.
_SIGNS = re.compile(
    r"dz(?!h)|[aeiy]u(?:$|[bcdfgklmnprstvz])|^ulad|^ya[^aeiouy]|(?:[ao]va|nka|dka)$"
    r"|[^aeiouy]i[ae](?=.*(?:ich|[ao][uv]|nka|nko|uk)$)"
)
_RUSSIAN = (
    (re.compile(r"^u(?=[bcdfghklmnprstvz])"), "v"),
    (re.compile(r"dz(?!h)"), "d"),
    (re.compile(r"ts(?=[iy]|e)|c(?=i)"), "t"),
    (re.compile(r"(?<=[aeiouy])[uw](?=$|[bcdfgklmnprstvwz])"), "v"),
    (re.compile(r"w"), "v"),
    (re.compile(r"shch|sch"), "sh"),
    (re.compile(r"kh|g"), "h"),
    # Vowels without stress are one, and so are soft and hard letters before them.
    (re.compile(r"[iyj]?[aeo]+"), "a"),
    (re.compile(r"[iyj]+(?=u)"), ""),
    (re.compile(r"[iyj]+"), "i"),
    (re.compile(r"(.)\1+"), r"\1"),
    (re.compile(r"[ai]+$"), ""),
)
_LETTERS_MIN = 6
#: First letters that may stand for one another.
_FIRST = str.maketrans("eoyijgkuw", "aaaaahhvv")


@lru_cache(maxsize=65536)
def _said(text: str) -> str:
    for pattern, sound in _RUSSIAN:
        text = pattern.sub(sound, text)
    return text


@lru_cache(maxsize=65536)
def _is_belarusian(text: str) -> bool:
    return _SIGNS.search(text) is not None


def belarusian_twins(text: str, other: str) -> bool:
    """Tell whether two words in lower-case Latin letters are one name in Belarusian and in Russian."""
    if len(text) < _LETTERS_MIN or len(other) < _LETTERS_MIN or not -3 < len(text) - len(other) < 3:
        return False
    if text[0] != other[0] and text[0].translate(_FIRST) != other[0].translate(_FIRST):
        return False
    return (_is_belarusian(text) or _is_belarusian(other)) and _said(text) == _said(other)
