"""Explanations: says how two names were matched in the words that were sent and published.

Words are compared in inner spellings ("Abd al-Aziz" is one word, `abdziz`); people read what was written.
"""

import re
from collections.abc import Sequence

from vettance.watchlists.entity import ListedName, NameQuality, clean
from vettance.watchlists.name_alignment import Alignment
from vettance.watchlists.name_analysis import Name
from vettance.watchlists.name_token import NameToken, TokenKind
from vettance.watchlists.transliteration import romanise

_QUALITIES = {
    NameQuality.PRIMARY: "primary name",
    NameQuality.STRONG: "alias",
    NameQuality.WEAK: "weak alias",
}
_GAPS = re.compile(r"[\s,;/()\[\]{}|]+")
_HYPHENS = re.compile(r"[\s\-‐-―.,;:/()\[\]{}|]+")
_ARTICLE = re.compile("^ال(?=...)")
_EDGES = "'’ʼ‘`\"“”„«».,:;"


def describe_names(asked: Name, listed: Name, listed_name: ListedName, alignment: Alignment | None) -> str:
    """Say in a sentence how two names were matched; without an alignment, which names they were."""
    head = f"“{asked.text}” against the {_QUALITIES[listed_name.quality]} “{listed_name.text}”"
    if alignment is None:
        return f"{head}: little agrees."
    if alignment.score >= 0.999:
        return f"{head}: every word is the same."
    left, right = as_written(asked.text, asked.words), as_written(listed.text, listed.words)
    said: list[str] = []
    for pair in alignment.pairs:
        if all(asked.words[place].kind is TokenKind.FORM for place in pair.query):
            continue
        if [asked.words[i].text for i in pair.query] != [listed.words[j].text for j in pair.listed]:
            one, other = _together(left, pair.query), _together(right, pair.listed)
            said.append(f"{one} ~ {other} ({pair.similarity:.2f})")
    for text, words, places in (
        ("not listed: ", left, alignment.query_left),
        ("only listed: ", right, alignment.listed_left),
    ):
        if places:
            said.append(text + ", ".join(dict.fromkeys(words[place] for place in places)))
    return f"{head}: {'; '.join(said) or 'the words agree'}."


def _together(words: Sequence[str], places: Sequence[int]) -> str:
    return " ".join(dict.fromkeys(words[place] for place in places))


def as_written(text: str, words: Sequence[NameToken]) -> list[str]:
    """Return each word of a name as its text writes it.

    Words that are spelt as in the text are anchors; what is between two anchors is shared out among the
    words between them, or is given whole to each of them where the numbers differ.
    """
    pieces = _pieces(text)
    if not pieces:
        return [word.text for word in words]
    plain = [romanise(piece)[0].replace(" ", "") for piece in pieces]
    anchors: list[tuple[int, int]] = []
    after = 0
    for place, word in enumerate(words):
        if word.text in plain[after:]:
            at = plain.index(word.text, after)
            anchors.append((place, at))
            after = at + 1
    written = [""] * len(words)
    before = (-1, -1)
    for place, at in (*anchors, (len(words), len(pieces))):
        between, part = range(before[0] + 1, place), pieces[before[1] + 1 : at]
        for number, gap in enumerate(between):
            written[gap] = part[number] if len(part) == len(between) else " ".join(part)
        if place < len(words):
            written[place] = pieces[at]
        before = place, at
    # A word of which nothing is left in the text was read into it, as one of two that are written as one.
    return [one or clean(text) for one in written]


def _pieces(text: str) -> list[str]:
    separated = _HYPHENS if "-" in text or "." in text else _GAPS
    pieces = [piece.strip(_EDGES) for piece in separated.split(clean(text))]
    # The Arabic article is a word of its own in comparisons.
    return [part for piece in pieces if piece for part in _ARTICLE.sub("ال ", piece).split()]
