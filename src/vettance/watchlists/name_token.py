"""One word of a name: what it is, how it sounds, and how alike two of them are."""

import enum
import re
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from vettance.reference.dictionary import read_pairs
from vettance.watchlists.belarusian_spellings import belarusian_twins
from vettance.watchlists.mandarin import Syllables, are_foreign, are_one, are_two
from vettance.watchlists.transliteration import spoken
from vettance.watchlists.usual_spellings import READ_FOR_OTHERS, misspelt
from vettance.watchlists.vocabulary import MEANINGS, NICKNAMES, fathers_of


class TokenKind(enum.IntEnum):
    """What a word does in a name."""

    NAME = 0
    PATRONYMIC = 1
    GENERIC = 2
    PLACE = 3
    NUMBER = 4
    INITIAL = 5
    KIN = 6
    PARTICLE = 7
    FORM = 8
    TITLE = 9


#: Found in a module at once, in an enumeration by a call.
_NAME, _INITIAL, _NUMBER = TokenKind.NAME, TokenKind.INITIAL, TokenKind.NUMBER
_PATRONYMIC = TokenKind.PATRONYMIC
#: Kinds of words that are read as another word.
_READ = frozenset({TokenKind.GENERIC, TokenKind.PLACE})


class NameToken(NamedTuple):
    """A word in lower-case Latin letters, as analysed once and compared often.

    `folds` are spellings that sound alike made equal; `skeletons` are their consonants in broad classes.
    `consonantal`: it was written without vowels, so only consonants can be compared. `classes` are the folds
    in the broad classes of sounds that some scripts do not tell apart. `readings` are what the same letters
    say in other orthographies, hushing and hissing sounds made one; empty for words of one syllable.
    `syllables` are there in names that are made of Mandarin syllables alone.
    """

    text: str
    kind: TokenKind
    consonantal: bool
    folds: tuple[str, ...]
    skeletons: tuple[str, ...]
    classes: tuple[str, ...]
    readings: tuple[str, ...] = ()
    syllables: Syllables | None = None


_SOUNDS = read_pairs("sounds")
# Where j is said as in "Jamal"; everywhere else in this table it is said as in "Jurij".
_HARD_J = dict(
    zip(
        ("ju", "ja", "jo", "je", "jee", "jeo", "jeu", "ej", "ij", "yj", "tj", "sj", "zj", "j"),
        ("Ju", "Ja", "Ju", "Ja", "Ji", "Ju", "Ju", "aJ", "iJ", "iJ", "tJ", "sJ", "zJ", "J"),
        strict=True,
    )
)
_SOFT_J = {"j": "i", "je": "a", "jee": "i", "jeo": "u", "jeu": "u"}


def _folder(extra: dict[str, str]) -> "tuple[re.Pattern[str], dict[str, str]]":
    sounds = _SOUNDS | extra
    return re.compile("|".join(sorted(sounds, key=len, reverse=True))), sounds


_HARD, _SOFT = _folder(_HARD_J), _folder(_SOFT_J)
_GLIDE = re.compile(r"[yij](?:[uo]|eo|a(?=.{1,2}$))")
_RUN = re.compile(r"(.)\1+")
#: Names such as Ishaq (Isaac), where s and h are two letters.
_TWO_SOUNDS = re.compile(r"[aei]sha[qgk]")
_LETTERS = re.compile(r"[^aeiouy]{2,6}")
_FINAL_H = re.compile(r"(?<=[aiu])h$")
_VOWELS = re.compile(r"[aiuw]+")
_CLASSES = str.maketrans("pvfgCSzJ", "bbbkjssj")  # What Arabic, Persian, Hebrew and Korean make one.
_BROAD = str.maketrans("pvwfgCSzJ", "bbbbkssss")
#: Greek writes b, d and g at the beginning of a word as mp, nt and gk.
_GREEK_STOPS = re.compile(r"^(?:m(?=p)|n(?=t)|g(?=k))(?=.{4})")
_STOPS = {"p": "b", "t": "d", "k": "g"}
#: What some orthographies mean by letters: ch, c and w of German, Polish and Czech, x of Uzbek, th and dh of
#: Turkish and Persian, the Ukrainian g and the yo that others write as e; then what looks alike.
_FOREIGN = (
    (re.compile(r"(?<![st])ch|x"), "kh"),
    (re.compile(r"c(?![hkzeiy])|th|dh"), "s"),
    (re.compile(r"(?<=[aeou])w"), "v"),
    (re.compile(r"(?<!n)g(?!h)"), "h"),
    (re.compile(r"(?<=.)[jyi]?[jy]o(?=[vwrmnd])"), "e"),
)
_SHAPES = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_GREEK_SAID = {"nt": "d", "mp": "b", "ng": "g", "gk": "g", "oy": "ou"}
_GREEK = re.compile("|".join(_GREEK_SAID))
_READ_MIN, _GREEK_MIN = 5, 8
_SYLLABLES = re.compile(r"[aeiouy]+")


def _fold(text: str, folder: "tuple[re.Pattern[str], dict[str, str]]") -> str:
    pattern, sounds = folder
    if _GREEK_STOPS.match(text):
        text = _STOPS[text[1]] + text[2:]
    # A glide before a vowel is heard at the beginning of a word (Yuri, Iurii), and lost in its middle
    # (Maria).
    if _GLIDE.match(text) and not (text[0] == "j" and folder is _HARD):
        return "i" + _fold(text[1:], folder)
    folded = _RUN.sub(r"\1", pattern.sub(lambda match: sounds[match[0]], text))
    return _FINAL_H.sub("", folded) or text


def _skeleton(folded: str) -> str:
    bones = _VOWELS.sub("", folded.translate(_CLASSES))
    bones = _RUN.sub(r"\1", bones)
    return bones[:-1] if len(bones) > 1 and bones.endswith("h") else bones


def _consonants(classes: str) -> str:
    """Return what is left without vowels; two consonants with a vowel between them stay two."""
    return _VOWELS.sub("", _RUN.sub(r"\1", classes))


def _readings(text: str, fold: str) -> tuple[str, ...]:
    if len(text) < _READ_MIN or len(_SYLLABLES.findall(text)) < 2:
        return ()
    foreign = shaped = text
    for pattern, sign in _FOREIGN:
        foreign = pattern.sub(sign, foreign)
    for seen, meant in _SHAPES:
        shaped = shaped.replace(seen, meant)
    greek = _GREEK.sub(lambda match: _GREEK_SAID[match[0]], text) if len(text) >= _GREEK_MIN else text
    texts = dict.fromkeys((foreign, shaped, greek))
    # Persian and others write e for the i of Arabic, which elsewhere stands for an a.
    texts |= dict.fromkeys(one.replace("e", "i") for one in (text, *texts))
    folds = [_fold(one, _SOFT) for one in texts if one != text]
    if "j" in text:
        folds.append(_fold(text, _HARD))
    return tuple(dict.fromkeys(_RUN.sub(r"\1", one.translate(_BROAD)) for one in (fold, *folds)))


def reading_bones(reading: str) -> str:
    """Return the consonants of a reading."""
    return _RUN.sub(r"\1", _VOWELS.sub("", reading))


@lru_cache(maxsize=262144)
def make_word(text: str, kind: TokenKind, consonantal: bool) -> NameToken:
    """Analyse a word of lower-case ASCII letters and digits."""
    if kind in (TokenKind.NUMBER, TokenKind.INITIAL) or not text.isalpha():
        return NameToken(text, kind, False, (text,), (text,), (text,))  # noqa: FBT003
    folds: tuple[str, ...]
    if consonantal:
        spellings = tuple(dict.fromkeys(_fold(one, _HARD) for one in spoken(text)))
        folds = spellings[:1]
    else:
        soft = _fold(text, _SOFT)
        folds = spellings = (soft, _fold(text, _HARD)) if "j" in text else (soft,)
        if "zh" in text:
            # Mostly one sound, but two in names such as Mazhar.
            spellings = (*folds, _fold(text.replace("zh", "zeh"), _SOFT))
        if "ch" in text:
            # In French it is what English writes sh: Rachid, Bachir.
            spellings = (*spellings, _fold(text.replace("ch", "sh"), _SOFT))
        if _LETTERS.fullmatch(text) and text != (short := text.replace("ts", "c").replace("kh", "h")):
            # Letters of an abbreviation: NTTs and NTC are the same of Russian.
            folds = spellings = (*folds, short)
        elif "c" in text and _LETTERS.fullmatch(text):
            folds = spellings = (*folds, text)
        if _TWO_SOUNDS.match(text):
            spellings = (*spellings, _fold(text.replace("sh", "seh"), _SOFT))
    skeletons = tuple(dict.fromkeys(_skeleton(fold) for fold in spellings))
    if not consonantal:
        # In Latin letters w is mostly a v.
        folds = tuple(dict.fromkeys(fold.replace("w", "v") for fold in folds))
    classes = tuple(fold.translate(_CLASSES) for fold in folds)
    readings = () if consonantal else _readings(text, folds[0])
    return NameToken(text, kind, consonantal, folds, skeletons, classes, readings)


#: The similarity that one, two or three typing errors leave, by the length of the longer word; calibrated.
_ONE_ERROR = (0.0, 0.0, 0.35, 0.62, 0.76, 0.83, 0.88, 0.92)
_TWO_ERRORS = (0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.5, 0.62, 0.72, 0.78, 0.84)
_THREE_ERRORS_LENGTH, _THREE_ERRORS = 12, 0.76

_EQUAL_SOUND, _NICKNAME, _EQUAL_CLASSES, _EQUAL_BONES, _SHORT_GLIDE = 0.96, 0.9, 0.88, 0.86, 0.82
_MISSPELT = _ONE_ERROR[-1]
_EQUAL_READING, _SAME_MEANING, _BEST_EDITED = 0.86, 0.95, _EQUAL_SOUND * _ONE_ERROR[-1]
#: A little below an equal sound: one spelling of Wade-Giles stands for several words.
EQUAL_SYLLABLES = 0.94


def _edited(distance: int, length: int) -> float:
    if distance == 0:
        return 1.0
    if distance == 1:
        return _ONE_ERROR[min(length, len(_ONE_ERROR) - 1)]
    if distance == 2:
        return _TWO_ERRORS[min(length, len(_TWO_ERRORS) - 1)]
    return _THREE_ERRORS if distance == 3 and length >= _THREE_ERRORS_LENGTH else 0.0


def compare_words(left: NameToken, right: NameToken) -> float:  # noqa: PLR0911, PLR0912
    """Return how likely two words are one word written differently, 0 to 1.

    The best of: typing errors (optimal string alignment distance), the same after folding sounds, the same
    syllables of Mandarin, the same consonants where one side has no vowels, a nickname, an initial.
    """
    text, other_text = left.text, right.text
    if text == other_text:
        return 1.0
    kind, other_kind = left.kind, right.kind
    if kind is _INITIAL or other_kind is _INITIAL:
        return _initial(left, right)
    if kind is _NUMBER or other_kind is _NUMBER:
        return _usual(left, right) if kind is _NAME or other_kind is _NAME else 0.0
    if kind is _PATRONYMIC and other_kind is _PATRONYMIC and _other_sex(left, right):
        return 0.0
    if left.consonantal is not right.consonantal:
        return _without_vowels(left, right)
    # Written out without helpers: half of a search is spent here.
    longest, shortest = len(text), len(other_text)
    if longest < shortest:
        longest, shortest = shortest, longest
    best = 0.0
    most = 3 if longest >= _THREE_ERRORS_LENGTH else 2
    if longest - shortest <= most and (found := OSA.distance(text, other_text, score_cutoff=most)) <= most:
        best = _edited(found, longest)
    if left.syllables is not None and (known := _by_syllables(left, right, best)) is not None:
        return known
    best = _by_sound(left, right, longest, best)
    if best >= _EQUAL_SOUND:
        return best
    if best < _EQUAL_READING and left.readings and right.readings and _share(left.readings, right.readings):
        best = _EQUAL_READING
    if best < _EQUAL_READING and longest > 5 and belarusian_twins(text, other_text):
        best = _EQUAL_READING
    if best < _NICKNAME and _is_nickname(left, right):
        best = _NICKNAME
    if best < _SAME_MEANING and text in MEANINGS and MEANINGS[text] == MEANINGS.get(other_text):
        best = _SAME_MEANING
    if best < _MISSPELT and (
        (kind is not other_kind and (kind in _READ or other_kind in _READ))
        or text in READ_FOR_OTHERS
        or other_text in READ_FOR_OTHERS
    ):
        best = max(best, _usual(left, right), _usual(right, left))
    return best


def _usual(left: NameToken, right: NameToken) -> float:
    """Compare a word with a usual one that was read as another: "Kranian" and "Iranian", which is `iran`."""
    word, usual = (left, right) if left.kind is _NAME else (right, left)
    if word.kind is not _NAME or word.consonantal or not misspelt(word.text, usual.text):
        return 0.0
    return _edited(1, len(word.text))


def _by_syllables(left: NameToken, right: NameToken, best: float) -> float | None:
    """Return how alike two words of Mandarin are; None where neither says more than its letters and sound."""
    one, other = left.syllables, right.syllables
    if one is None or other is None:
        return None
    if are_one(one, other):
        return max(best, EQUAL_SYLLABLES)
    if are_two(one, other, left.text, right.text):
        return 0.0
    # Between pinyin and Wade-Giles other syllables are other words, however alike they sound by other rules.
    return best if are_foreign(one, other) else None


def _by_sound(left: NameToken, right: NameToken, longest: int, best: float) -> float:
    """Return `best`, or how alike the folds of two words are if that is more."""
    for one, one_classes in zip(left.folds, left.classes, strict=False):
        for other, other_classes in zip(right.folds, right.classes, strict=False):
            if one == other:
                return max(
                    best, _SHORT_GLIDE if longest <= 4 and _glides_apart(left, right) else _EQUAL_SOUND
                )
            length, other_length = len(one), len(other)
            if best >= _BEST_EDITED or not -3 < length - other_length < 3:
                continue
            if best < _EQUAL_CLASSES and one_classes == other_classes:
                best = _EQUAL_CLASSES
            distance = OSA.distance(one, other, score_cutoff=2)
            if distance > 2:
                continue
            if length < other_length:
                length, other_length = other_length, length
            best = max(best, _EQUAL_SOUND * _edited(distance, length))
            bony = distance == 2 and length >= 6 and other_length > 4
            if bony and best < _EQUAL_BONES and _consonants(one_classes) == _consonants(other_classes):
                best = _EQUAL_BONES
    return best


def _share(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return any(one in others for one in some)


def _is_nickname(left: NameToken, right: NameToken) -> bool:
    """Tell whether two words are forms of one name; of patronymics, of one father's name."""
    if left.kind is _PATRONYMIC or right.kind is _PATRONYMIC:
        # Without its last letter, "Alekseevic" looks like the surname that it is elsewhere.
        return bool(fathers_of(left.text) & fathers_of(right.text))
    groups = NICKNAMES.get(left.text)
    return groups is not None and bool(groups & NICKNAMES.get(right.text, _NONE))


word_similarity = lru_cache(maxsize=262144)(compare_words)  # Names share most of their words.


def _glides_apart(left: NameToken, right: NameToken) -> bool:
    """Tell whether one word begins with y where the other has j: in a short word that makes two names."""
    return {left.text[0], right.text[0]} == {"j", "y"}


def _other_sex(left: NameToken, right: NameToken) -> bool:
    """Tell whether one patronymic is a son's and the other a daughter's."""
    return left.folds[0].endswith("na") != right.folds[0].endswith("na")


#: Equal consonants of two spellings, and consonants one apart, by how many there are.
_SAME_BONES = (0.0, 0.86, 0.92, 0.96, 0.97)
_NEAR_BONES = (0.0, 0.0, 0.0, 0.62, 0.74, 0.82, 0.86)
_NEAR_READINGS, _NEAR_MIN = 6, 3
_NONE: frozenset[int] = frozenset()


def _initial(left: NameToken, right: NameToken) -> float:
    short, long = (left, right) if left.kind is TokenKind.INITIAL else (right, left)
    if long.kind is TokenKind.INITIAL:
        return 0.0
    letter = short.text
    if long.text.startswith(letter) or any(fold.casefold().startswith(letter) for fold in long.folds):
        return 0.9
    return 0.0


def _without_vowels(left: NameToken, right: NameToken) -> float:
    """Compare a word written without vowels with one written with them, by its consonants and long vowels."""
    bare, full = (left, right) if left.consonantal else (right, left)
    if bare.folds[0] in full.folds:
        # Its long vowels are written, and are all that it has: علی and Ali.
        return _EQUAL_SOUND
    for other in full.skeletons:
        if other in bare.skeletons:
            same = _SAME_BONES[min(len(other), len(_SAME_BONES) - 1)]
            return same - _vowel_conflict(bare, full)
    best = 0.0
    # An error is looked for in the first readings only: one on top of a rare reading is another word.
    for bones in bare.skeletons[: near_readings(bare)]:
        for other in full.skeletons:
            length = max(len(bones), len(other))
            if length < _NEAR_MIN or abs(len(bones) - len(other)) > 1:
                continue
            if OSA.distance(bones, other, score_cutoff=1) == 1:
                best = max(best, _NEAR_BONES[min(length, len(_NEAR_BONES) - 1)])
    return best


def near_readings(word: NameToken) -> int:
    """Return how many of the skeletons, from the first, may have an error on top of them."""
    doubtful = not word.consonantal or "dz" in word.text or "ts" in word.text
    return _NEAR_READINGS if doubtful else 1


_GAPS = re.compile(r"[^aiuw]")


def _vowel_conflict(bare: NameToken, full: NameToken) -> float:
    """Return the deduction for long vowels that are written and cannot be heard in the other spelling.

    "hsyn" needs an i-sound before its n and so is not "Hasan"; "hsn" says nothing about its vowels. A vowel
    at the beginning is always written.
    """
    deduction = 0.0 if _initial_sound(bare) == _initial_sound(full) else 0.12
    written, heard = _GAPS.split(bare.folds[0]), _GAPS.split(full.folds[-1])
    if len(written) != len(heard):
        return deduction + 0.06
    for sign, sound in zip(written[1:-1], heard[1:-1], strict=True):
        if "i" in sign and sound and "i" not in sound:
            deduction += 0.14
        if ("w" in sign or "u" in sign) and sound and "u" not in sound:
            deduction += 0.1
        if sign == "a" and sound and "a" not in sound:
            deduction += 0.06
    if "i" in written[-1] and not heard[-1]:
        deduction += 0.08
    return min(deduction, 0.3)


def _initial_sound(word: NameToken) -> str:
    """Return v for a word that begins with a vowel or half-vowel, c for one that begins with a consonant."""
    return "v" if word.text[0] in "aeiouyw" or (word.text[0] == "j" and len(word.folds) > 1) else "c"
