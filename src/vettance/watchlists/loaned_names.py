"""Names of other languages in Hangul and Katakana: 푸틴 and プーチン are Putin, 라브로프 is Lavrov.

Both write a foreign name by its sound, in syllables: a vowel divides consonants that have none, l and
r are one sound, and Katakana has no ti, di or si of its own. A reading leaves those vowels out and says each
of these sounds in one of its ways (National Institute of Korean Language, rules for loan words of 1986;
Cabinet of Japan, notice 2 of 1991 on the writing of loan words).
"""

import re
from collections.abc import Iterator, Sequence

from anyascii import anyascii

_WORDS = re.compile(r"[^\W\d_]+(?:ー+[^\W\d_]*)*")
_HANGUL = re.compile(r"[\uac00-\ud7a3]+")
_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]+")
#: Consonants and vowels as Korean writes foreign names with them; ㅡ only divides consonants.
_INITIALS = "g kk n d tt r m b pp s ss - j jj ch k t p h".replace("-", "").split(" ")
_VOWELS = "a e ya ye o e yo ye o wa we we yo u wo we wi yu - wi i".replace("-", "'").split(" ")
_FINALS = "- k k k n n n t l k m l l l p l m p p t t ng t t k t p t".replace("-", "").split(" ")
_HANGUL_FIRST = 0xAC00
#: Family names of one syllable, of nearly all Koreans (Statistics Korea, census of 2015), in both spellings.
_FAMILIES = frozenset(
    "김이리박최정강조윤장임림오한신서권황안송유류홍전고문손양량배백허남심노로하곽성차주우구민진지엄원천방공현함변염렴"
    "여려추도석선설마길연위표명기반라나왕금옥육인맹제모탁국어은편용예경봉사부황보태복목형두감음빈동온호범좌팽승간상시갈"
)
#: Longer names of people than this are not Korean.
_KOREAN_MAX = 3


def read_loaned(text: str) -> Iterator[str]:
    """Yield the readings of a name of a person in Hangul or Katakana as one of another language."""
    words = _WORDS.findall(text)
    if words and all(map(_HANGUL.fullmatch, words)):
        if sum(map(len, words)) <= _KOREAN_MAX and words[0][0] in _FAMILIES:
            return
        # Between vowels Korean writes an l double.
        said = [_hangul(word) for word in words]
        yield from dict.fromkeys(" ".join(_with_l(word, one, 0) for word in said) for one in (False, True))
    elif words and all(map(_KATAKANA.fullmatch, words)):
        said = [_katakana(word) for word in words]
        yield from dict.fromkeys((*_spelt([_hard(word) for word in said]), *_spelt(said)))


def _hangul(word: str) -> str:
    """Return the sound of a word; `ll` is an l for certain, `r` either."""
    said = ""
    for letter in word:
        initial, rest = divmod(ord(letter) - _HANGUL_FIRST, 588)
        vowel, final = divmod(rest, 28)
        said += _INITIALS[initial] + _VOWELS[vowel] + _FINALS[final]
    said = said.replace("lr", "L").replace("l'r", "L")
    return said.replace("j'", "z").replace("ch'", "ts").replace("'", "")


#: Small letters change the syllable before them: ジョ is jo, ティ ti, ヴィ vi.
_SMALL_VOWELS = dict(zip("ァィゥェォ", "aiueo", strict=True))
_SMALL_GLIDES = dict(zip("ャュョ", ("ya", "yu", "yo"), strict=True))
_DOUBLED, _LONG = "ッ", "ー"
#: The vowel of a consonant that has none; one that is long or doubles what follows is said.
_BETWEEN = re.compile(
    r"(?<=[bcdfghjkmpstvz])u(?![aeiou:n'])|(?<=[a-z:]r)u(?![aeiou:n'])|(?<=[a-z:][td])o(?![aeiou:n'])"
)
_VLA = re.compile(r"^u(?=r[aeiou])")


def _katakana(word: str) -> str:
    """Return the sound of a word, without the vowels that only divide consonants."""
    said = ""
    for letter in word:
        if letter in _SMALL_VOWELS:
            said = said[:-1] + _SMALL_VOWELS[letter]
        elif letter in _SMALL_GLIDES:
            glide = _SMALL_GLIDES[letter]
            said = said[:-1] + (glide[1:] if said[-3:-1] in ("sh", "ch") or said[-2:-1] == "j" else glide)
        elif letter == _LONG:
            said += ":"
        elif letter == _DOUBLED:
            said += "'"
        elif letter == "ヴ":
            said += "vu"
        else:
            said += anyascii(letter).casefold()
    return re.sub("[:']", "", _BETWEEN.sub("", _VLA.sub("v", said)))


_HARDENED = re.compile(r"chi|ji|shi|tsu")
_HARD = {"chi": "ti", "ji": "di", "shi": "si", "tsu": "tu"}


def _hard(said: str) -> str:
    """Say ti, di, si and tu, which Katakana writes as chi, ji, shi and tsu."""
    return _HARDENED.sub(lambda match: _HARD[match[0]], said)


_ALL = 99
_INNER = re.compile(r"(?<=.)r")


def _with_l(said: str, initial: bool, inner: int) -> str:
    """Say l for a first r, or for so many r behind the first letter."""
    said = f"l{said[1:]}" if initial and said.startswith("r") else said
    return (_INNER.sub("l", said, count=inner) if inner else said).replace("L", "l")


def _spelt(words: Sequence[str]) -> Iterator[str]:
    """Yield a name with each r as it is and as an l, first and inner ones apart."""
    for initial in (False, True):
        for inner in (0, 1, _ALL):
            yield " ".join(_with_l(word, initial, inner) for word in words)
