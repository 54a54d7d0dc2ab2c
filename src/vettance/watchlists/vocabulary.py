"""Words that mean something in names: titles, particles, company forms, numbers, nicknames."""

from vettance.watchlists.dictionary import read_lines, read_pairs, read_words

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


def _read_forms() -> dict[tuple[str, ...], str]:
    forms: dict[tuple[str, ...], str] = {}
    for line in read_lines("company_forms"):
        code, _, phrase = line.partition(": ")
        forms[tuple(phrase.split())] = code
    return forms


#: Words of a company form → its code; forms of one code are equivalent.
FORMS = _read_forms()
FORM_WORDS_MAX = max(map(len, FORMS))
#: Words with which some form begins, so that most words are not looked up at all.
FORM_STARTS = frozenset(phrase[0] for phrase in FORMS)

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


def _read_nicknames() -> dict[str, frozenset[int]]:
    groups: dict[str, set[int]] = {}
    for number, line in enumerate(read_lines("nicknames")):
        for name in line.split():
            groups.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in groups.items()}


#: A name → the numbers of the groups of names it belongs to.
NICKNAMES = _read_nicknames()
