"""Texts that words share which are one typing error apart: each word itself, or less one of its letters.

The symmetric-deletion scheme of Garbe's SymSpell, with one deletion.
"""

from collections.abc import Iterator
from typing import Final

#: No word that is looked for is so long, and the cost grows with the square of the letters.
_LETTERS_MAX: Final = 40


def less_one(text: str, letters: int) -> Iterator[str]:
    """Yield a text less one of its first so many letters."""
    for place in range(min(len(text), letters)):
        yield text[:place] + text[place + 1 :]


def nearly(text: str) -> set[str]:
    """Return a text, and what it is less one of its letters."""
    return {text, *less_one(text, _LETTERS_MAX)}
