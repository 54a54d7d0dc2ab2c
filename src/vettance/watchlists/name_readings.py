"""Readings of a name: what its words may stand for in other languages, and which of that another name has.

A word of an organisation may be listed by its sound (`Azot`) or by any of its meanings (`Nitrogen`). A
reading has all of them for each word; compared with a name, each word stands for what is nearest there.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from vettance.watchlists.name_analysis import Grammar, Name, parse_name
from vettance.watchlists.name_token import NameToken, TokenKind, word_similarity
from vettance.watchlists.organization_words import related_words
from vettance.watchlists.script_readings import Reading, script_readings
from vettance.watchlists.vocabulary import MEANINGS

#: A word stands for something else only where that is this much nearer than the likeliest of its meanings.
_NEARER = 0.02
#: From here on a word of another name is what is meant.
_MEANT = 0.7
_CARRYING = frozenset({TokenKind.NAME, TokenKind.GENERIC, TokenKind.PLACE, TokenKind.PATRONYMIC})


def name_readings(text: str, grammar: Grammar) -> tuple[Name, ...]:
    """Return the other readings of a name as names, none for most names."""
    return () if text.isascii() else _name_readings(text, grammar)


@lru_cache(maxsize=4096)
def _name_readings(text: str, grammar: Grammar) -> tuple[Name, ...]:
    return tuple(
        parse_name(one, grammar) if isinstance(one, str) else _parse_reading(one)
        for one in script_readings(text, grammar)
    )


def _parse_reading(reading: Reading) -> Name:
    """Read a name by the first meaning of each word, and remember the others."""
    name = parse_name(" ".join(meanings[0] for meanings in reading), Grammar.ORGANIZATION)
    known: dict[str, tuple[tuple[NameToken, str, str], ...]] = {}
    for first, *more in reading:
        word = _one_word(first) if more else None
        if word is not None:
            meant = ((other, text, first) for text in more if (other := _one_word(text)) is not None)
            known[word.text] = tuple(meant)
    # A company form is nothing else: read by its sound, OOO would be a name, and one that sounds like UE.
    others = tuple(() if word.kind is TokenKind.FORM else known.get(word.text, ()) for word in name.words)
    return name._replace(others=others)


@lru_cache(maxsize=8192)
def _one_word(text: str) -> NameToken | None:
    """Return the word of a text that has but one which may name anybody."""
    words = [word for word in parse_name(text, Grammar.ORGANIZATION).words if word.kind in _CARRYING]
    return words[0] if len(words) == 1 else None


def towards(name: Name, other: Name) -> Name:
    """Return a name with each word read as what the other name has, or else as what sounds nearest to it."""
    if not name.others:
        return name
    words, text = list(name.words), name.text
    likened: set[int] = set()
    there = {MEANINGS.get(word.text, word.text): word for word in other.words}
    for place, others in enumerate(name.others):
        own = MEANINGS.get(words[place].text, words[place].text)
        if not others or own in there:
            continue
        first, said = others[0][2], ""
        meant = next((one for one in others if MEANINGS.get(one[0].text, one[0].text) in there), None)
        if meant is not None:
            words[place], said = meant[:2]
        else:
            best = _nearest(words[place], other.words)
            for word, spelling, _first in others:
                # Only what may be a name is looked for by its sound: of English words, theirs are the same.
                english = spelling.isascii() and spelling in related_words()
                alike = 0.0 if english else _nearest(word, other.words)
                if alike >= _MEANT and alike > best + _NEARER:
                    best, words[place], said = alike, word, spelling
            every = (words[place], *(word for word, _spelling, _first in others))
            if best < _MEANT and (related := _related(every, there)) is not None:
                words[place] = related
                said = related.text
                likened.add(place)
        if said:
            text = text.replace(first, said, 1)
    return name._replace(words=tuple(words), text=text, likened=frozenset(likened))


def _related(meant: Sequence[NameToken], there: Mapping[str, NameToken]) -> NameToken | None:
    """Return the word of another name by which translators name the same as one of these, None for none."""
    for word in meant:
        for other in related_words().get(word.text, ()):
            if other in there:
                return there[other]
    return None


def _nearest(word: NameToken, others: Sequence[NameToken]) -> float:
    return max((word_similarity(word, other) for other in others), default=0.0)
