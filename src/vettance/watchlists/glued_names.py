"""Names written together: parts a word that no list has into words that lists have, in any order and case.

`rosalindachterberg` and `ACHTERBERGROSALIND` are two listed words each.
"""

import re
from collections.abc import Callable, Collection, Sequence

from vettance.watchlists.blocking_keys import text_key
from vettance.watchlists.name_analysis import Name
from vettance.watchlists.name_token import NameToken

#: Shorter words are misspelt rather than two; longer ones would cost more than they tell.
GLUED_MIN, GLUED_MAX = 8, 40
#: A part of three letters is a word only next to a longer one, and shorter ones fit everywhere.
_PART_MIN, _PARTS_MAX = 3, 4

_APOSTROPHES = re.compile("['’‘`´\"]")
_WORDS = re.compile(r"[a-z]+")

#: Returns those of the keys that some listed word has.
Known = Callable[[Sequence[int]], Collection[int]]


def plain_words(text: str) -> list[str]:
    """Return the words of a text in ASCII as they are spelt, in lower case, before any of them is read."""
    return _WORDS.findall(_APOSTROPHES.sub("", text).casefold())


def parted(text: str, known: Known) -> tuple[str, ...]:
    """Return the fewest listed words that spell `text`, those of even length first; nothing if none do."""
    length = len(text)
    if not GLUED_MIN <= length <= GLUED_MAX or not text.isalpha():
        return ()
    spans = {
        (start, stop): text_key(text[start:stop])
        for start in range(length)
        for stop in range(start + _PART_MIN, length + 1)
        if stop - start < length and (start == 0 or start >= _PART_MIN)
    }
    listed = known(list(spans.values()))
    if not listed:
        return ()
    ways: list[tuple[int, int, tuple[str, ...]] | None] = [None] * (length + 1)
    ways[0] = (0, 0, ())
    for start in range(length):
        if (way := ways[start]) is None or len(way[2]) == _PARTS_MAX:
            continue
        for stop in range(start + _PART_MIN, length + 1):
            if spans.get((start, stop)) in listed:
                part = text[start:stop]
                # Few words, and none of them much shorter than the others: squares add up to least.
                taken = (way[0] + 1, way[1] + len(part) ** 2, (*way[2], part))
                if (other := ways[stop]) is None or taken[:2] < other[:2]:
                    ways[stop] = taken
    whole = ways[length]
    return whole[2] if whole is not None else ()


def with_parted_words(name: Name, parts: Callable[[NameToken], tuple[NameToken, ...]]) -> Name | None:
    """Return a name with each word that has parts in several words, None where no word has.

    A part stands for nothing but itself; what the other words may stand for stays with them.
    """
    apart = [parts(word) for word in name.words]
    if not any(apart):
        return None
    words: list[NameToken] = []
    others: list[tuple[tuple[NameToken, str, str], ...]] = []
    for place, (word, found) in enumerate(zip(name.words, apart, strict=True)):
        words += found or (word,)
        others += [()] * len(found) or [name.others[place] if name.others else ()]
    return name._replace(words=tuple(words), others=tuple(others) if name.others else ())
