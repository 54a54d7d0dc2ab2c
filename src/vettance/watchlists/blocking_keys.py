"""Keys under which the words of names are found again, written as they are or nearly so."""

import zlib
from collections.abc import Iterator

from vettance.watchlists.less_one_letter import less_one
from vettance.watchlists.mandarin import Syllables
from vettance.watchlists.name_analysis import Name
from vettance.watchlists.name_token import NameToken, TokenKind, near_readings, reading_bones
from vettance.watchlists.usual_spellings import usual_words
from vettance.watchlists.vocabulary import MEANINGS, NICKNAMES

#: Kinds that are worth looking up; the others occur everywhere.
SEARCHED = frozenset(
    {
        TokenKind.NAME,
        TokenKind.PATRONYMIC,
        TokenKind.GENERIC,
        TokenKind.PLACE,
        TokenKind.NUMBER,
        TokenKind.KIN,
    }
)

_DELETED_MIN = 4
_BONES_MIN, _BONES_DELETED_MIN, _BONES_ALONE_MIN = 2, 4, 6
#: Longer words are found by their first letters' deletions alone; a bound on the keys of one word.
_DELETED_LETTERS_MAX = 16
_RUN_MAX = 4


def _key(kind: str, text: str) -> int:
    # 32 bits are enough: a collision only costs one more comparison.
    return zlib.crc32(f"{kind}{text}".encode())


def word_keys(word: NameToken, *, listed: bool, bones_too: bool = True) -> list[int]:
    """Return the keys of a word: its letters, its sound, its consonants, and each less one.

    Two words that are one error apart in letters or sound share a key (the symmetric-deletion scheme of
    Garbe's SymSpell, with one deletion). Consonants are shared between a word written with vowels and one
    without (keys `c` and `v`, of the listed word's side), and between long words with vowels (`b`), which may
    be further apart in sound.
    """
    keys = []
    for fold in dict.fromkeys((word.text, *word.folds)):
        keys.append(_key("f", fold))
        if word.kind is not TokenKind.NUMBER and len(fold) >= _DELETED_MIN:
            keys.extend(_key("f", text) for text in less_one(fold, _DELETED_LETTERS_MAX))
    # A name's other forms share none of its letters; of patronymics, those of the father's name are compared.
    keys.extend(_key("n", str(group)) for group in NICKNAMES.get(word.text, ()))
    keys.extend(_key("f", usual) for usual in _misspelt_of(word, listed=listed))
    if word.text in MEANINGS:
        keys.append(_key("m", MEANINGS[word.text]))
    if word.syllables is not None:
        # Two pinyin words that Wade-Giles spells alike must not find each other by that.
        pinyin, giles = ("p", "w") if listed else ("w", "p")
        keys.extend(_key(pinyin, text) for text in word.syllables.pinyin)
        if word.syllables.giles:
            keys.append(_key(giles, word.syllables.giles))
    if word.kind is TokenKind.NUMBER or not bones_too or not word.text.isalpha():
        return list(dict.fromkeys(keys))
    other_side = "c" if word.consonantal is listed else "v"
    near = near_readings(word)
    for place, bones in enumerate(word.skeletons):
        # Two consonants are in thousands of words, so only the first readings are looked up by so few.
        if len(bones) >= _BONES_MIN + (place >= near):
            keys.append(_key(other_side, bones))
        if len(bones) >= _BONES_DELETED_MIN and place < near:
            keys.extend(_key(other_side, text) for text in less_one(bones, _DELETED_LETTERS_MAX))
    for place, reading in enumerate(word.readings):
        bones = reading_bones(reading)
        # Three consonants are shared by many; other readings than the plainest must say more.
        if len(bones) > _BONES_MIN + (place > 0) and len(reading) >= _BONES_ALONE_MIN:
            keys.append(_key("b", bones))
        else:
            keys.append(_key("r", reading))
    return list(dict.fromkeys(keys))


def _misspelt_of(word: NameToken, *, listed: bool) -> list[str]:
    """Return the usual words that a word looked up may misspell, as they are listed: `iran` for "Kranian"."""
    is_name = word.kind is TokenKind.NAME and not word.consonantal
    return usual_words(word.text) if is_name and not listed else []


def text_key(text: str) -> int:
    """Return the key of a word exactly as it is spelt."""
    return _key("t", text)


def sound_key(word: NameToken) -> int:
    """Return the key of a word's sound alone."""
    return _key("f", word.folds[0])


_VOWELS = str.maketrans("eyow", "aiuv")


def joint_key(text: str) -> int:
    """Return the key of words run together."""
    return _key("j", text.translate(_VOWELS))


_ATTACHED_FORM, _WITH_FORM_MIN = "co", 8


def joint_keys(text: str, syllables: Syllables | None, *, listed: bool) -> list[int]:
    """Return the keys of listed words run together, or of a word that may stand for such."""
    keys = [joint_key(text)]
    if not listed and len(text) >= _WITH_FORM_MIN and text.endswith(_ATTACHED_FORM):
        # The form begins with it: "Harbourshippingco Ltd" is Harbour Shipping.
        keys.append(joint_key(text.removesuffix(_ATTACHED_FORM)))
    if syllables is None:
        return keys
    if listed:
        keys.extend(_key("p", form) for form in syllables.pinyin)
    else:
        keys.extend(joint_key(form) for form in syllables.pinyin)
        if syllables.giles:
            keys.append(_key("p", syllables.giles))
    return list(dict.fromkeys(keys))


def whole_key(name: Name) -> int:
    """Return the key of a name as a whole, whatever the order of its words and however short they are."""
    words = [word.text for word in name.words if word.kind is not TokenKind.FORM]
    return _key("=", " ".join(sorted(words or (word.text for word in name.words))))


def runs(name: Name) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield (places, text) of neighbours run together: two, three or four, and the whole name."""
    places = [index for index, word in enumerate(name.words) if word.kind is not TokenKind.FORM]
    texts = [name.words[index].text for index in places]
    for start, first in enumerate(texts):
        text = first
        for stop in range(start + 1, min(start + _RUN_MAX, len(texts))):
            text += texts[stop]
            if len(text) >= 5:
                yield tuple(places[start : stop + 1]), text
    if len(texts) > _RUN_MAX:
        yield tuple(places), "".join(texts)
