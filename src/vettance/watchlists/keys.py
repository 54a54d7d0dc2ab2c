"""Keys under which the words of names are found again, written as they are or nearly so."""

import zlib
from collections.abc import Iterator

from vettance.watchlists.names import Name
from vettance.watchlists.word import Kind, Word

#: Kinds that are worth looking up; the others occur everywhere.
SEARCHED = frozenset({Kind.NAME, Kind.PATRONYMIC, Kind.GENERIC, Kind.PLACE, Kind.NUMBER, Kind.KIN})

_DELETED_MIN = 4
_BONES_MIN, _BONES_DELETED_MIN, _BONES_ALONE_MIN = 2, 4, 6
#: Longer words are found by their first letters' deletions alone; a bound on the keys of one word.
_DELETED_LETTERS_MAX = 16
_RUN_MAX = 4


def _key(kind: str, text: str) -> int:
    # 32 bits are enough: a collision only costs one more comparison.
    return zlib.crc32(f"{kind}{text}".encode())


def word_keys(word: Word, *, listed: bool, bones_too: bool = True) -> list[int]:
    """Return the keys of a word: its letters, its sound, its consonants, and each less one.

    Two words that are one error apart in letters or sound share a key (the symmetric-deletion scheme of
    Garbe's SymSpell, with one deletion). Consonants are shared between a word written with vowels and one
    without (keys `c` and `v`, of the listed word's side), and between long words with vowels (`b`), which may
    be further apart in sound.
    """
    keys = []
    for fold in dict.fromkeys((word.text, *word.folds)):
        keys.append(_key("f", fold))
        if word.kind is not Kind.NUMBER and len(fold) >= _DELETED_MIN:
            keys.extend(_key("f", text) for text in _less_one(fold))
    if word.kind is Kind.NUMBER or not bones_too or not word.text.isalpha():
        return list(dict.fromkeys(keys))
    other_side = "c" if word.consonantal is listed else "v"
    for bones in word.skeletons:
        if len(bones) >= _BONES_MIN:
            keys.append(_key(other_side, bones))
        if len(bones) >= _BONES_DELETED_MIN:
            keys.extend(_key(other_side, text) for text in _less_one(bones))
        if not word.consonantal and len(bones) > _BONES_MIN and len(word.folds[0]) >= _BONES_ALONE_MIN:
            keys.append(_key("b", bones))
    return list(dict.fromkeys(keys))


def _less_one(text: str) -> Iterator[str]:
    for index in range(min(len(text), _DELETED_LETTERS_MAX)):
        yield text[:index] + text[index + 1 :]


def sound_key(word: Word) -> int:
    """Return the key of a word's sound alone."""
    return _key("f", word.folds[0])


_VOWELS = str.maketrans("eyow", "aiuv")


def joint_key(text: str) -> int:
    """Return the key of words run together."""
    return _key("j", text.translate(_VOWELS))


def runs(name: Name) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield (places, text) of neighbours run together: two, three or four, and the whole name."""
    places = [index for index, word in enumerate(name.words) if word.kind is not Kind.FORM]
    texts = [name.words[index].text for index in places]
    for start, first in enumerate(texts):
        text = first
        for stop in range(start + 1, min(start + _RUN_MAX, len(texts))):
            text += texts[stop]
            if len(text) >= 5:
                yield tuple(places[start : stop + 1]), text
    if len(texts) > _RUN_MAX:
        yield tuple(places), "".join(texts)
