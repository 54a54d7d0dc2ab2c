"""Scripts: turns a word of any script into lower-case Latin letters, in the way lists of names do.

Cyrillic, Greek, Arabic, Hebrew and Hangul have tables of their own, made for comparing names: they follow
BGN/PCGN and the usage of the publishers rather than a reversible standard. Every other script goes through
`anyascii` (https://github.com/anyascii/anyascii, ISC), Han by the reading of each character in Mandarin.
"""

import enum
import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii

from vettance.reference.dictionary import read_pairs


class WritingSystem(enum.IntEnum):
    """What a word is written in, as far as comparison cares."""

    LATIN = 0
    #: Vowels are written (Cyrillic, Greek, Armenian, Georgian …).
    ALPHABET = 1
    #: Vowels are left out or implied (Arabic, Hebrew, the scripts of India and South-East Asia …).
    CONSONANTAL = 2
    #: A syllable a character, words not separated (Han, Hangul, kana).
    SYLLABIC = 3


_TABLE: dict[str, str] = {}
for _alphabet in ("cyrillic", "greek", "arabic", "hebrew"):
    _TABLE |= read_pairs(f"letters_{_alphabet}")
_LATIN = read_pairs("letters_latin")

_INITIALS = ["k", "k", "n", "t", "t", "r", "m", "p", "p", "s", "s", "-", "j", "j", "ch", "k", "t", "p", "h"]
_VOWELS = [
    "a",
    "ae",
    "ya",
    "yae",
    "o",
    "e",
    "yo",
    "ye",
    "o",
    "wa",
    "wae",
    "oe",
    "yo",
    "u",
    "wo",
    "we",
    "wi",
    "yu",
    "u",
    "ui",
    "i",
]
_FINALS = [
    "-",
    "k",
    "k",
    "k",
    "n",
    "n",
    "n",
    "t",
    "l",
    "k",
    "m",
    "l",
    "l",
    "l",
    "p",
    "l",
    "m",
    "p",
    "p",
    "t",
    "t",
    "ng",
    "t",
    "t",
    "k",
    "t",
    "p",
    "t",
]
_HANGUL_FIRST, _HANGUL_LAST = 0xAC00, 0xD7A3


def _hangul(letter: str) -> str:
    """Spell one syllable as Korean names are listed: nearer to McCune-Reischauer than to the standard."""
    number = ord(letter) - _HANGUL_FIRST
    initial, rest = divmod(number, 588)
    vowel, final = divmod(rest, 28)
    return (_INITIALS[initial] + _VOWELS[vowel] + _FINALS[final]).replace("-", "")


def script_of(letter: str) -> WritingSystem:
    """Return the script of a letter."""
    code = ord(letter)
    if code < 0x250 or 0x1E00 <= code < 0x1F00:
        return WritingSystem.LATIN
    if code < 0x590 or 0x10A0 <= code < 0x1100 or 0x1F00 <= code < 0x2000 or 0x1C80 <= code < 0x1CC0:
        return WritingSystem.ALPHABET
    if (
        0x1100 <= code < 0x1200
        or 0x2E80 <= code < 0xA000
        or 0xAC00 <= code < 0xD7FF
        or 0xF900 <= code < 0xFB00
    ):
        return WritingSystem.SYLLABIC
    if code >= 0x20000:
        return WritingSystem.SYLLABIC
    return WritingSystem.CONSONANTAL


_LATIN_LETTER, _CYRILLIC_LETTER = re.compile("[a-z]"), re.compile("[\u0400-\u04ff]")
_CYRILLIC_LOOKS, _LATIN_LOOKS = "аеосрхуіјѕкмнтв", "aeocpxyijskmhtb"
_TO_LATIN = str.maketrans(_CYRILLIC_LOOKS, _LATIN_LOOKS)
_TO_CYRILLIC = str.maketrans(_LATIN_LOOKS, _CYRILLIC_LOOKS)


def _of_one_alphabet(word: str) -> str:
    """Read a word of two alphabets in the one that has all its letters; of both, in that of most of them."""
    latin, cyrillic = word.translate(_TO_LATIN), word.translate(_TO_CYRILLIC)
    if _CYRILLIC_LETTER.search(latin):
        return cyrillic
    most_latin = 2 * len(_LATIN_LETTER.findall(word)) >= sum(map(str.isalpha, word))
    return latin if most_latin or _LATIN_LETTER.search(cyrillic) else cyrillic


@lru_cache(maxsize=65536)
def romanise(word: str) -> tuple[str, WritingSystem]:  # noqa: PLR0912
    """Return a word in lower-case ASCII letters and digits, and the script it was written in.

    Marks are dropped; syllables of syllabic scripts are separated by a space.
    """
    word = word.casefold()
    if word.isascii():
        return "".join(letter for letter in word if letter.isalnum()), WritingSystem.LATIN
    if _LATIN_LETTER.search(word) and _CYRILLIC_LETTER.search(word):
        word = _of_one_alphabet(word)
    if any(_is_whole_word(letter) for letter in word):
        spelt = "".join(letter for letter in anyascii(word).casefold() if letter.isalnum())
        return spelt, max(script_of(letter) for letter in word)
    decomposed = unicodedata.normalize("NFD", word)
    script = WritingSystem.LATIN
    out: list[str] = []
    if any(_HANGUL_FIRST <= ord(letter) <= _HANGUL_LAST for letter in word):
        decomposed = word
    else:
        # Some letters with marks are letters of their own; NFC brings them back where the table knows them.
        decomposed = "".join(_compose(part) for part in _clusters(decomposed))
    for letter in decomposed:
        if unicodedata.combining(letter) or not (letter.isalnum() or letter in _TABLE):
            continue
        script = max(script, script_of(letter))
        if letter in _TABLE:
            # Two sounds must not read as the sign of one: z and h are not the zh of "Zhukov".
            if letter in "هحהח" and out and out[-1][-1:] in ("z", "s", "d", "t", "k", "g", "p"):
                out.append("e")
            out.append(_TABLE[letter])
        elif letter in _LATIN:
            out.append(_LATIN[letter])
        elif _HANGUL_FIRST <= ord(letter) <= _HANGUL_LAST:
            out.append(f" {_hangul(letter)} ")
        elif letter.isascii():
            out.append(letter)
        elif script_of(letter) is WritingSystem.SYLLABIC:
            out.append(f" {anyascii(letter)} ")
        else:
            out.append(anyascii(letter))
    plain = "".join(out).casefold()
    plain = "".join(letter for letter in plain if (letter.isalnum() and letter.isascii()) or letter == " ")
    return " ".join(plain.split()), script


def _is_whole_word(letter: str) -> bool:
    """Tell whether a letter belongs to a script whose vowel signs are separate (Indic, Thai …) or to kana."""
    return "\u0700" <= letter < "\u10a0" or "\u1200" <= letter < "\u1c80" or "\u3040" <= letter <= "\u30ff"


def _clusters(text: str) -> list[str]:
    """Split decomposed text into letters, each with its marks."""
    clusters: list[str] = []
    for letter in text:
        if clusters and unicodedata.combining(letter):
            clusters[-1] += letter
        else:
            clusters.append(letter)
    return clusters


def _compose(cluster: str) -> str:
    whole = unicodedata.normalize("NFC", cluster)
    return whole if whole in _TABLE else cluster[0]


#: Letters of scripts without vowels as languages say them: Jamal is Gamal in Cairo, Walid Valid in Sarajevo.
_WRITTEN_VOWEL = re.compile(r"[eou]")
_SAID = (("j", "g"), ("j", "z"), ("w", "v"), ("kh", "ch"))


def spoken(text: str) -> list[str]:
    """Return a word without vowels with its consonants as several languages say them."""
    # Letters that Arabic says one way and Persian another: Rida and Reza, Osman and Uthman.
    texts = [text, *(text.replace("dz", one).replace("ts", two) for one in "dzt" for two in "ts")]
    if _WRITTEN_VOWEL.search(text):
        # A script such as Devanagari, which writes most of its vowels and is said in one way.
        return texts
    together = text
    for letter, other in _SAID:
        if letter in text:
            texts.append(text.replace(letter, other))
            together = together.replace(letter, other)
    if text.count("w") > 1:
        # One of them may be a vowel: موسوی is Mousavi.
        first, last = text.index("w"), text.rindex("w")
        texts += [f"{text[:place]}v{text[place + 1 :]}" for place in (last, first)]
    return [*texts, together]
