"""Names of organisations in Arabic and Persian, by what their words mean in English.

Words that the tables have not are looked up without what is written on to them, then by their stem; else they
are kept and read by their sound. Several words that mean one thing are in the table joined by `+`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rapidfuzz.distance import OSA

from vettance.reference.dictionary import read_lines
from vettance.watchlists.less_one_letter import nearly

#: What is written on to a word of Arabic: and, with, for, the.
_WRITTEN_ON = ("وال", "بال", "لل", "ال", "و", "ب", "ل")
_STEM_MIN = 3
#: Letters that hands and keyboards write in several ways, made one.
_ONE_LETTER = str.maketrans("أإآٱىیېےئکگھہۀةۃؤ", "اااايييييككههههه" + "و")
_MARKS = re.compile("[\u064b-\u065f\u0670\u0640]")
#: Endings of adjectives, plurals and compounds: of a word that the table has not, its stem is looked up.
_ENDINGS = ("سازي", "هاي", "يه", "ها", "ات", "ه", "ي")
_EDGES = "()[],.،؛:-–“”\"'«»‘’„"
#: Short blessings behind a revered name.
_BLESSINGS = frozenset({"ص", "ع", "عج", "س", "ره"})

#: Word → what it means in English; some words mean several things.
Meanings = dict[str, tuple[str, ...]]


def _plain(word: str) -> str:
    return _MARKS.sub("", word).translate(_ONE_LETTER).replace("\u200c", "")


#: First word of a phrase → (its words, what it means), the longest first; all without the article.
_Phrases = dict[str, tuple[tuple[tuple[str, ...], str], ...]]


@lru_cache(maxsize=1)
def _tables() -> tuple[Meanings, _Phrases]:
    words: Meanings = {}
    phrases: _Phrases = {}
    for name in ("organization_arabic", "organization_arabic_names"):
        for line in read_lines(name):
            english, _, texts = line.partition(": ")
            for text in map(_plain, texts.split()):
                if "+" in text:
                    parts = tuple(part.removeprefix("ال") for part in text.split("+"))
                    known = (*phrases.get(parts[0], ()), (parts, english))
                    phrases[parts[0]] = tuple(sorted(known, key=lambda one: -len(one[0])))
                elif english not in words.get(text, ()):
                    words[text] = (*words.get(text, ()), english)
    return words, phrases


def _meanings(word: str) -> tuple[str, ...]:
    """Return what a word of Arabic or Persian may mean, nothing for one that is not known."""
    meanings = _tables()[0]
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


#: Copied texts lose letters and spaces: a word from so many letters on may be one misspelt, or two.
_MISSPELT_MIN, _JOINED_MIN, _PIECE_MIN = 6, 8, 3


@lru_cache(maxsize=1)
def _by_less_one() -> dict[str, tuple[str, ...]]:
    """Return (known word, or that less a letter → the known words)."""
    found: dict[str, dict[str, None]] = {}
    for known in _tables()[0]:
        for key in nearly(known) if len(known) >= _MISSPELT_MIN - 1 else ():
            found.setdefault(key, {})[known] = None
    return {key: tuple(words) for key, words in found.items()}


@lru_cache(maxsize=8192)
def _misspelt(word: str) -> tuple[str, ...]:
    """Return what a word may mean that is one letter from a known one, nothing for any other."""
    text = _plain(word).removeprefix("ال")
    if len(text) < _MISSPELT_MIN:
        return ()
    likely = dict.fromkeys(known for key in sorted(nearly(text)) for known in _by_less_one().get(key, ()))
    near = [known for known in likely if OSA.distance(text, known, score_cutoff=1) == 1]
    return _tables()[0][near[0]] if len(near) == 1 else ()


def _whole(written: Sequence[str]) -> list[str]:
    """Return the words of a text: known ones that are torn put together, those run together parted."""
    words: list[str] = []
    for word in written:
        if words and not _meanings(word) and not _meanings(words[-1]) and _meanings(words[-1] + word):
            words[-1] += word
        else:
            words.append(word)
    return [part for word in words for part in _parted(word)]


def _parted(word: str) -> tuple[str, ...]:
    if len(word) < _JOINED_MIN or _meanings(word):
        return (word,)
    places = range(_PIECE_MIN, len(word) - _PIECE_MIN + 1)
    return next(
        ((word[:at], word[at:]) for at in places if _meanings(word[:at]) and _meanings(word[at:])), (word,)
    )


_AND_THE = re.compile(r"(?<!\S)(?:و|ب|لل|ف)(?=ال[\u0620-\u064a]{3})|(?<!\S)لل(?=[\u0620-\u064a]{3})")
#: Before another word the ending of "Asba" is said: Asbat al-Ansar.
_SAID_ENDING = re.compile(r"(?<=[\u0620-\u064a]{2})ة(?=\s+[\u0620-\u064a])")


def detached(text: str) -> str:
    """Write a name as it is said: without what is written on to an article, and with the t of "Asbat"."""
    return _SAID_ENDING.sub("ت", _AND_THE.sub("", text))


def translate_arabic(text: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield a name with what each word may mean: word by word, then with phrases; a word may be kept."""
    written = [word.strip(_EDGES) for word in text.replace("\u200c", " ").split()]
    written = [word for word in written if word and word not in _BLESSINGS]
    written = _whole(written)
    meanings = [_meanings(word) or _misspelt(word) for word in written]
    bare = [_plain(word).removeprefix("ال") for word in written]
    phrases = [_phrase(bare, place) for place in range(len(bare))]
    if not any(meanings) and not any(size for size, _ in phrases):
        return
    single = [
        (*(one for one in found if " " not in one), word)
        for word, found in zip(written, meanings, strict=True)
    ]
    yield tuple(single)
    several = [tuple(one for one in found if " " in one) for found in meanings]
    whole: list[tuple[str, ...]] = []
    after = 0
    for place, (size, english) in enumerate(phrases):
        if place >= after:
            whole.append((english,) if size else several[place][:1] or single[place])
            after = place + max(size, 1)
    yield tuple(whole)


def _phrase(bare: Sequence[str], place: int) -> tuple[int, str]:
    """Return (how many words, meaning) of the longest phrase that begins at a place; (0, "") for none."""
    for phrase, english in _tables()[1].get(bare[place], ()):
        if tuple(bare[place : place + len(phrase)]) == phrase:
            return len(phrase), english
    return 0, ""
