"""Names of organisations in Russian, Ukrainian and Belarusian, by what their words mean in English.

Words bend, so the table (`organization_cyrillic.txt`) has their beginnings, those of several words that mean
one thing joined by `+`. What it has not is kept and read by its sound; an adjective may stand for its place.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from vettance.reference.countries import PLACE_WORDS
from vettance.reference.dictionary import read_lines
from vettance.watchlists.organization_words import is_town
from vettance.watchlists.transliteration import romanise

#: Letters of Ukrainian and Belarusian as Russian would write them.
_RUSSIAN = str.maketrans("ёіїєґў", "еииегу", "’ʼ'‘`")
_SEPARATORS = re.compile(r"[\s‐-―,;:/\\()\[\]{}|+*&\"“”„«»‚‘№]+")
_HYPHENS = re.compile(r"-\s*")
#: The longest ending that a beginning of a word may have, and the shortest one that may have any.
_ENDING_MAX, _STEM_MIN = 6, 4
_BODY = r"(?:обществ|товариств|таварыств|дружеств)\w*"
#: Company forms, in the words of four languages as Russian would write them.
_FORMS = (
    (
        re.compile(
            r"(?:(?:не)?(?:публичн|открыт|закрыт|видкрит|адкрыт|приватн)\w*\s+)?акц[иы][оя]н\w+\s+"
            rf"(?:{_BODY}|компани\w*)",
        ),
        " jsc ",
    ),
    (
        re.compile(
            _BODY + r"\s+[сз]\w*\s+(?:ограничен|обмежен|абмежаван)\w*"
            r"\s+(?:ответственн|видповидальн|адказнасц|отговорн)\w*",
        ),
        " llc ",
    ),
)
#: "М.И." are initials and no words; "г." and "им." are short for town and named after.
_SHORT = re.compile(r"\b(?:г|гор|им|пос|обл)\.\s*(?=\w)")
_INITIALS = re.compile(r"(?<!\w)(?:\w\.\s*){1,2}(?=\w\w)")
#: Endings of adjectives that are made of the name of a place: Климовский, Оршанский, Dубненский.
_ADJECTIVE = re.compile(r"(?:ск|цк)(?:ий|ая|ое|ой|ого|ому|им|ом|ую|их|ие|ими|ай|ае|и|а|е|у)$")
_ADJECTIVE_MIN = 3
_PLACE_STEM = re.compile(r"(?:ен|ан|ин|ов|ев|ь)$")


#: First beginning of a phrase → (its beginnings, what it means), the longest first.
_Phrases = dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]


class _Tables(NamedTuple):
    """Beginnings of words and what they mean; phrases and what they mean; phrases and their abbreviations."""

    words: dict[str, tuple[str, ...]]
    phrases: _Phrases
    abbreviated: _Phrases


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    words: dict[str, tuple[str, ...]] = {}
    phrases: dict[tuple[str, ...], tuple[str, ...]] = {}
    abbreviated: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line in read_lines("organization_cyrillic"):
        english, _, stems = line.partition(": ")
        for stem in map(_plain, stems.split()):
            first, *more = stem.split("+")
            if english.startswith("="):
                abbreviated[(first, *more)] = (english[1:],)
            elif more:
                phrases[(first, *more)] = (*phrases.get((first, *more), ()), english)
            elif english not in words.get(stem, ()):
                words[stem] = (*words.get(stem, ()), english)
    return _Tables(words, _by_first(phrases), _by_first(abbreviated))


def _by_first(phrases: dict[tuple[str, ...], tuple[str, ...]]) -> _Phrases:
    found: _Phrases = {}
    for stems, meanings in sorted(phrases.items(), key=lambda one: -len(one[0])):
        found[stems[0]] = (*found.get(stems[0], ()), (stems, meanings))
    return found


def _plain(word: str) -> str:
    return word.casefold().translate(_RUSSIAN)


@lru_cache(maxsize=8192)
def _meaning(word: str) -> tuple[str, ...]:
    """Return what a word may mean, that of its longest known beginning first; nothing for one not known."""
    known = _tables().words
    least = max(_STEM_MIN, len(word) - _ENDING_MAX)
    beginnings = (word, *(word[:length] for length in range(len(word) - 1, least - 1, -1)))
    meanings = tuple(dict.fromkeys(meaning for text in beginnings for meaning in known.get(text, ())))
    return meanings or _compound(word)


#: Words are put together by o or e: нефтехимический, судоремонтный, горнообогатительный.
_COMPOUND_MIN, _HEAD_MIN, _TAIL_MIN = 9, 3, 5
_HEAD_REST_MAX = 3


def _compound(word: str) -> tuple[str, ...]:
    """Return what a word put together of two that are known means, in two words; nothing for any other."""
    known = _tables().words
    for place in range(len(word) - _TAIL_MIN, _HEAD_MIN - 1, -1) if len(word) >= _COMPOUND_MIN else ():
        stem = word[:place]
        if stem[-1] not in "ое" or len(stem) <= _HEAD_MIN:
            continue
        head = known.get(stem) or known.get(stem[:-1]) or _heads().get(stem[:-1], ())
        tail = word[place:]
        least = max(_STEM_MIN, len(tail) - _ENDING_MAX)
        tails = (known[tail[:length]] for length in range(len(tail), least - 1, -1) if tail[:length] in known)
        if head and (meant := next(tails, ())):
            both = ((one, other) for one in head[:2] for other in meant[:2])
            return tuple(f"{one} {other}" for one, other in both if " " not in one + other)
    return ()


@lru_cache(maxsize=1)
def _heads() -> dict[str, tuple[str, ...]]:
    """Return beginning of a known word → what it means, for heads of compounds: горн, of горнодобыва."""
    found: dict[str, tuple[str, ...]] = {}
    for stem, meanings in _tables().words.items():
        for ending in ("н", "ов", "ск", "ическ", "льн", "енн", "к"):
            head = stem.removesuffix(ending)
            if head != stem and len(head) >= _HEAD_MIN:
                found.setdefault(head, meanings)
    return found


def _places(word: str) -> tuple[str, ...]:
    """Return of which places a word may be the adjective, as they would be written."""
    ending = _ADJECTIVE.search(word)
    if ending is None or ending.start() < _ADJECTIVE_MIN:
        return ()
    stem = word[: ending.start()]
    stems = dict.fromkeys((stem + ending[0][:2], stem, _PLACE_STEM.sub("", stem)))
    return tuple(one for one in stems if len(one) >= _ADJECTIVE_MIN)


#: Endings of words that Russian has from Latin and Greek, as English writes them.
_COGNATES = (
    ("изацион", ("ization",)),
    ("изаци", ("ization",)),
    ("ацион", ("ation", "ational")),
    ("ацийн", ("ation", "ational")),
    ("ацыйн", ("ation", "ational")),
    ("цион", ("tion", "tional")),
    ("ционер", ("tioner",)),
    ("ци", ("tion", "cy")),
    ("сион", ("sion",)),
    ("логическ", ("logical", "logy")),
    ("логичн", ("logical", "logy")),
    ("логи", ("logy",)),
    ("графическ", ("graphic", "graphical")),
    ("графи", ("graphy",)),
    ("метри", ("metry",)),
    ("номическ", ("nomic", "nomical")),
    ("ическ", ("ical", "ic", "y")),
    ("ичн", ("ical", "ic")),
    ("ик", ("ics", "ic")),
    ("альн", ("al",)),
    ("ивн", ("ive",)),
    ("арн", ("ar", "ary")),
    ("орн", ("or", "ory")),
    ("ентн", ("ent",)),
    ("тетн", ("ty",)),
    ("тет", ("ty",)),
    ("тур", ("ture",)),
    ("н", ("",)),
    ("и", ("y",)),
)
_INFLECTION = re.compile(
    r"(?:ый|ий|ая|яя|ое|ее|ые|ие|ого|его|ой|ей|ых|их|ым|им|ую|юю|ом|ам|ах|ов|ы|и|а|я|о|е|у|ю|ь|й)$"
)
_COGNATE_MIN, _COGNATE_STEM_MIN = 6, 3


@lru_cache(maxsize=8192)
def _cognates(word: str) -> tuple[str, ...]:
    """Return how English writes a word that both languages have from Latin or Greek."""
    if len(word) < _COGNATE_MIN:
        return ()
    found: list[str] = []
    for stem in dict.fromkeys((_INFLECTION.sub("", word), word)):
        for ending, english in _COGNATES:
            head = stem.removesuffix(ending)
            if head != stem and len(head) >= _COGNATE_STEM_MIN:
                found += [romanise(head)[0] + one for one in english]
                break
    return tuple(dict.fromkeys(found))


def _words(text: str) -> list[str]:
    """Return the words of a name; of those joined by hyphens, what the table has as one word is one."""
    found: list[str] = []
    for raw in _SEPARATORS.split(_HYPHENS.sub("-", text)):
        parts = [part for part in raw.strip(".").split("-") if part]
        while parts:
            joined = next((size for size in range(len(parts), 1, -1) if _meaning("".join(parts[:size]))), 1)
            found.append("".join(parts[:joined]))
            parts = parts[joined:]
    return found


def _phrase(words: Sequence[str], place: int, phrases: _Phrases) -> tuple[int, tuple[str, ...]]:
    """Return (how many words, meanings) of the phrase that begins at a place; (0, ()) for none."""
    word = words[place]
    for length in range(len(word), max(1, len(word) - _ENDING_MAX) - 1, -1):
        for stems, meanings in phrases.get(word[:length], ()):
            following = words[place : place + len(stems)]
            if len(following) == len(stems) and all(
                one.startswith(stem) and len(one) - len(stem) <= _ENDING_MAX
                for one, stem in zip(following, stems, strict=True)
            ):
                return len(stems), meanings
    return 0, ()


#: Behind "named after" names are in the genitive: имени Хруничева.
_NAMED, _NAMED_WORDS = frozenset({"имени", "им"}), 4
_GENITIVE = re.compile(r"(?<=\w{3})(?:ого|его|а|я)$")


#: What is between the innermost quotation marks, where it is short, is a name, whatever else it means.
_QUOTED = re.compile(r"[«“„\"‘‚]\s*([^«»“”„\"‘’‚]+?)\s*[»”“\"’]")
#: The mark that ends a quotation in German and Bulgarian begins one in English.
_QUOTED_IN_ENGLISH = re.compile(r"[«“\"‘]\s*([^«»“”\"‘’]+?)\s*[»”\"’]")
_QUOTED_WORDS_MAX = 2


def _quotations(text: str) -> re.Pattern[str]:
    return _QUOTED_IN_ENGLISH if "”" in text and "„" not in text else _QUOTED


def _quoted(text: str) -> frozenset[str]:
    parts = (_words(_plain(part)) for part in _quotations(text).findall(text))
    return frozenset(word for words in parts if len(words) <= _QUOTED_WORDS_MAX for word in words)


#: A name in quotation marks says who is meant by itself if it has so many words, or so many letters.
_OWN_WORDS_MIN, _OWN_LETTERS_MIN = 2, 10
_TERRITORIES = frozenset(
    {"republic", "federation", "region", "oblast", "krai", "territory", "district", "city"}
)
_FORM_MEANINGS = frozenset({"jsc", "llc"})


def names_in_quotes(text: str) -> list[str]:
    """Return the names in the innermost quotation marks of a name that says more: ВПК «НПО машиностроения».

    What is before them says what kind of firm it is, and lists leave that out. A company form is no more.
    """
    quotations = _quotations(text)
    rest = _plain(quotations.sub(" ", text))
    for form, _code in _FORMS:
        rest = form.sub(" ", rest)
    if all(_FORM_MEANINGS.intersection(_meaning(word)) for word in _words(rest)):
        return []
    return [part for part in quotations.findall(text) if _says_who(_words(_plain(part)))]


def _says_who(words: Sequence[str]) -> bool:
    if all(any(map(_is_territory, _meaning(word))) for word in words):
        return False
    return len(words) >= _OWN_WORDS_MIN or len("".join(words)) >= _OWN_LETTERS_MIN


def _is_territory(meaning: str) -> bool:
    """Tell whether a word is a place, or what places are called: «Республика Крым» is no firm."""
    return meaning in _TERRITORIES or meaning in PLACE_WORDS or is_town(meaning)


def translate_cyrillic(text: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield a name with what each word may mean: word by word, with phrases, and with their abbreviations."""
    names = _quoted(text)
    plain = text = _plain(text)
    for form, code in _FORMS:
        text = form.sub(code, text)
    text = _SHORT.sub(lambda match: " имени " if match[0].startswith("им") else " ", text)
    text = _INITIALS.sub(lambda match: f"{match[0].replace('.', '').replace(' ', '')}_ ", text)
    words = _words(text)
    meanings = [() if word.endswith("_") else _meaning(word) for word in words]
    tables = _tables()
    phrased = [_phrase(words, place, tables.phrases) for place in range(len(words))]
    if text == plain and not any(meanings) and not any(length for length, _ in phrased):
        return
    single = []
    for place, (word, found) in enumerate(zip(words, meanings, strict=True)):
        written = word.removesuffix("_")
        also = () if found else (*_places(word), *_cognates(word))
        if not _NAMED.isdisjoint(words[max(0, place - _NAMED_WORDS) : place]):
            also = (*also, _GENITIVE.sub("", written))
        meant = tuple(one for one in found if " " not in one)
        likeliest = (written, *meant) if written in names else (*meant, written)
        single.append(tuple(dict.fromkeys((*likeliest, *also))))
    several = [tuple(one for one in found if " " in one) for found in meanings]
    yield tuple(single)
    whole = [(found[0],) if found else one for found, one in zip(several, single, strict=True)]
    yield tuple(_replaced(whole, [(size, found[:1]) for size, found in phrased]))
    short = [_phrase(words, place, tables.abbreviated) for place in range(len(words))]
    yield tuple(_replaced(single, short))


def _replaced(
    words: Sequence[tuple[str, ...]], phrases: Sequence[tuple[int, tuple[str, ...]]]
) -> Iterator[tuple[str, ...]]:
    """Yield words, or a phrase in the place of its words."""
    after = 0
    for place, (size, meanings) in enumerate(phrases):
        if place < after:
            continue
        yield meanings if size else words[place]
        after = place + max(size, 1)
