"""Words that mean something in names: titles, particles, company forms, numbers, nicknames."""

import re
from functools import lru_cache
from itertools import pairwise

from vettance.reference.dictionary import read_lines, read_pairs, read_words


def _read_meanings(name: str) -> dict[str, str]:
    """Return word → the first word of its line, in a dictionary of lines such as `bank: banque banco`."""
    lines = (line.split(": ", 1) for line in read_lines(name))
    return {word: meant for meant, words in lines for word in (meant, *words.split())}


#: They say how a person is addressed, not who it is.
TITLES = read_words("titles")
#: Particles of personal names: their absence says nothing.
PARTICLES = read_words("particles")
#: Particles that change who is meant more than the others do.
KIN_WORDS = frozenset({"abu", "abou", "abi", "aboo", "um", "umm", "oum", "om"})
#: Words of organisations that carry no meaning for who is meant.
STOP_WORDS = read_words("stop_words")
#: Words that many organisations have in their names; an extra one weighs less than a name of its own.
GENERIC_WORDS = read_words("generic_words")
#: Prefixes of ships' names.
SHIP_PREFIXES = read_words("ship_prefixes")
#: Spellings of words in names of organisations → the full word.
ABBREVIATIONS = read_pairs("abbreviations")
#: Words of organisations → the English word that means the same, which is among them.
MEANINGS = _read_meanings("organization_words")


_PAIR_MIN, _TELLING_MIN = 4, 5


#: Single letters in a row, and those after the first of them: "Sp. z o.o."
_LETTERS = re.compile(r"\b[a-z](?: [a-z]\b)+")
_LAST_LETTERS = re.compile(r"(?<=\b[a-z] )[a-z](?: [a-z]\b)+")

#: One sound of Russian and Ukrainian as romanisations write it (BGN/PCGN, ISO 9, GOST, passports):
#: obshchestvo, obschestvo, obshestvo; ogranichennoi, ogranichennoj; aktsionernoe, akcionernoye.
_PRESSES = (
    *(
        ("shch", "sh"),
        ("sch", "sh"),
        ("kh", "h"),
        ("ts", "c"),
        ("tz", "c"),
        ("y", "i"),
        ("j", "i"),
        ("ie", "e"),
    ),
    *(("io", "o"), ("ia", "a"), ("iu", "u")),
)
_DOUBLED = re.compile(r"(.)\1+")
#: Shorter words are not brought to one spelling: what is left of them is in other words too.
_PRESSED_MIN = 7


@lru_cache(maxsize=16384)
def _pressed(word: str) -> str:
    for written, sound in _PRESSES:
        word = word.replace(written, sound)
    return _DOUBLED.sub(r"\1", word)


def _form_phrases() -> list[tuple[str, str]]:
    """Return (phrase, code) of the company forms."""
    lines = (line.partition(": ") for line in read_lines("company_forms"))
    return [(phrase, code) for code, _, phrase in lines]


#: Sound of a long word of company forms of several words → that word, in the first spelling of the table.
_SPELT = {
    _pressed(word): word
    for phrase, _code in reversed(_form_phrases())
    for word in phrase.split()
    if len(word) >= _PRESSED_MIN and " " in phrase
}


def spelt_in_forms(word: str) -> str:
    """Return the word of company forms of which a word is another romanisation, or the word as it is."""
    return _SPELT.get(_pressed(word), word) if len(word) >= _PRESSED_MIN else word


def _read_forms() -> dict[tuple[str, ...], str]:
    forms: dict[tuple[str, ...], str] = {}
    for phrase, code in _form_phrases():
        forms[tuple(phrase.split())] = code
        forms.setdefault(tuple(map(spelt_in_forms, phrase.split())), code)
        # Letters with dots are read as one word: "Sp. z o.o.", "S.A. de C.V."
        for letters in (_LETTERS, _LAST_LETTERS):
            dotted = letters.sub(lambda match: match[0].replace(" ", ""), phrase)
            forms.setdefault(tuple(dotted.split()), code)
    return forms


#: Words of a company form → its code; forms of one code are equivalent.
FORMS = _read_forms()
FORM_WORDS_MAX = max(map(len, FORMS))
#: Words with which some form begins, so that most words are not looked up at all.
FORM_STARTS = frozenset(phrase[0] for phrase in FORMS)
#: Neighbours in a company form run together → the two: "jointstock", "pteltd".
FORM_PAIRS = {
    one + other: (one, other)
    for phrase in FORMS
    for one, other in pairwise(phrase)
    if len(one + other) >= _PAIR_MIN and (one + other,) not in FORMS
}


def _read_scattered() -> dict[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(FORMS, key=len, reverse=True):
        longest = max(map(len, phrase))
        # Single letters that are apart may be anything.
        if len(phrase) > 1 and (longest >= _TELLING_MIN or (len(phrase) > 2 and longest > 1)):
            found.setdefault(max(phrase, key=len), []).append(phrase)
    return {word: tuple(phrases) for word, phrases in found.items()}


#: The longest word of a company form of several words → such forms, the longest first: they are still
#: recognized when their words are apart.
SCATTERED_FORMS = _read_scattered()

_NUMBERS = (
    "ii",
    "iii",
    "iv",
    "",
    "vi",
    "vii",
    "viii",
    "ix",
    "",
    "xi",
    "xii",
    "xiii",
    "xiv",
    "xv",
    "xvi",
    "xvii",
)
#: Roman numbers, without the single letters, which may be initials.
ROMAN = {text: str(number) for number, text in enumerate(_NUMBERS, 2) if text}


#: Numbers as words.
NUMBER_WORDS = read_pairs("numbers")


def _read_nicknames() -> dict[str, frozenset[int]]:
    groups: dict[str, set[int]] = {}
    for number, line in enumerate(read_lines("nicknames")):
        for name in line.split():
            groups.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in groups.items()}


#: A name → the numbers of the groups of names it belongs to.
NICKNAMES = _read_nicknames()

#: How patronymics of Russian, Ukrainian and Belarusian end, as other languages write them too (-owitsch,
#: -owicz, -ovics, -ovici, -ovicius), and what of the father's name itself bends.
_PATRONYMIC_ENDING = re.compile(
    r"(?:[iyeo]*[vw](?:[iy]t?s?ch|icz?|ic[si]|icius|itsj?|[iy]tj|na)|[ae]una|[iy]*ch(?:na)?)$"
)
_BENT = re.compile(r"[aeiouyj]+$")
_STEM_MIN = 3


def _stem(name: str) -> str:
    stem = _BENT.sub("", name)
    return stem if len(stem) >= _STEM_MIN else ""


def _fathers() -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for name, groups in NICKNAMES.items():
        if stem := _stem(name):
            found[stem] = found.get(stem, frozenset()) | groups
    return found


_FATHERS = _fathers()


@lru_cache(maxsize=16384)
def fathers_of(patronymic: str) -> frozenset[int]:
    """Return the groups of names that a patronymic may be made of: Oleksiyovych and Alekseevich share one."""
    ending = _PATRONYMIC_ENDING.search(patronymic)
    if ending is None:
        return frozenset()
    return _FATHERS.get(_stem(patronymic[: ending.start()].replace("w", "v")), frozenset())
