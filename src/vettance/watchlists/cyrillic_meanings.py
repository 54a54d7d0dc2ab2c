"""Names of organisations in Russian, Ukrainian and Belarusian, by what their words mean in English.

Words bend, so the table (`organization_cyrillic.txt`) has their beginnings. What it has not is kept and read
by its sound.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from vettance.reference.dictionary import read_lines

#: Letters of Ukrainian and Belarusian as Russian would write them.
_RUSSIAN = str.maketrans("ёіїєґў", "еииегу", "’ʼ'‘`")
_SEPARATORS = re.compile(r"[\s\-‐-―.,;:/\\()\[\]{}|+*&\"“”„«»‚‘]+")
#: The longest ending that a beginning of a word may have, and the shortest one that may have any.
_ENDING_MAX, _STEM_MIN = 6, 4
_BODY = r"(?:обществ|товариств|таварыств|дружеств)\w*"
#: Company forms, in the words of four languages as Russian would write them.
_FORMS = (
    (
        re.compile(
            r"(?:(?:не)?(?:публичн|открыт|закрыт|видкрит|адкрыт|приватн)\w*\s+)?акц[иы][оя]н\w+\s+" + _BODY,
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


@lru_cache(maxsize=1)
def _meanings() -> dict[str, tuple[str, ...]]:
    meanings: dict[str, tuple[str, ...]] = {}
    for line in read_lines("organization_cyrillic"):
        english, _, stems = line.partition(": ")
        for stem in stems.split():
            plain = _plain(stem)
            meanings[plain] = (*meanings.get(plain, ()), english)
    return meanings


def _plain(word: str) -> str:
    return word.casefold().translate(_RUSSIAN)


@lru_cache(maxsize=8192)
def _meaning(word: str) -> tuple[str, ...]:
    """Return what a word may mean, nothing for one that is not known."""
    plain = _plain(word)
    meanings = _meanings()
    if plain in meanings:
        return meanings[plain]
    for length in range(len(plain) - 1, max(_STEM_MIN, len(plain) - _ENDING_MAX) - 1, -1):
        if (found := meanings.get(plain[:length])) is not None:
            return found
    return ()


def translate_cyrillic(text: str) -> Iterator[str]:
    """Yield a name with the words that are known in English: by their first meaning, then by their last."""
    plain = text = text.casefold().translate(_RUSSIAN)
    for form, code in _FORMS:
        text = form.sub(code, text)
    words = [word for word in _SEPARATORS.split(text) if word]
    meant = [_meaning(word) for word in words]
    if text == plain and not any(meant):
        return
    for place in (0, -1):
        yield " ".join(found[place] if found else word for word, found in zip(words, meant, strict=True))
