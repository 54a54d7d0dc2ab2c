"""Keeps callers' text from turning round what is shown after it, and from holding what nobody can see.

A right-to-left override in a customer's name would have the page read other numbers and words than it says.
Unicode Technical Report 36, section 2, tells of such texts; Unicode Standard Annex 9 has the isolates.
"""

import re
from typing import Final

from markupsafe import Markup

#: Around a value while a page is made. No text of a caller holds them: they are not in UTF-8.
_BEGINS: Final = "\udc00"
_ENDS: Final = "\udc01"
_ISOLATE: Final = "\u2068"
_ISOLATE_ENDS: Final = "\u2069"
#: Letters that are written from right to left (Hebrew, Arabic and their kin; the planes behind them).
_FROM_RIGHT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
#: What has no shape of its own: controls, marks of direction, soft hyphens, joiners and tags. The joiners of
#: Persian, of Indian scripts and of emoji are seen by what they do there, and stay as they are.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|(?<![\u0590-\U000dffff])[\u200c\u200d]"
)
_ASKED: Final = re.compile(f"{_UNSEEN.pattern}|[{_BEGINS}{_ENDS}]")
#: The parts of a page: a tag, or a field whose text is sent back as it is, or text.
_PARTS: Final = re.compile(r"""(<textarea\b[^>]*>.*?</textarea>|<(?:"[^"]*"|[^>"])*>)""", re.DOTALL)
_READ_ATTRIBUTES: Final = re.compile(r'(?<= )(?:title|aria-label|alt|data-label|data-confirm)="[^"]*"')
#: Elements whose text takes no marks of direction: a window's title, and what hovering says.
_PLAIN_OPENS: Final = re.compile(r"<(?:title|option)\b")


def isolated(value: str) -> str:
    """Return a value with our marks around it, where it is written from the right."""
    if value.isascii() or _FROM_RIGHT.search(value) is None:
        return value
    if isinstance(value, Markup):
        return value  # Its elements are isolated by the style sheet.
    return f"{_BEGINS}{value}{_ENDS}"


def is_asked(piece: str) -> bool:
    """Say whether a piece of a page needs `with_unseen_shown`."""
    return _ASKED.search(piece) is not None


def with_unseen_shown(page: str) -> str:
    """Return a page whose texts show what has no shape, `[U+202E]`, and whose values stay by themselves.

    What forms send, and what is copied, stays as it is: an identifier is the same with all that it holds.
    """
    parts = _PARTS.split(page)
    for at, part in enumerate(parts):
        if part and is_asked(part):
            parts[at] = (
                _tag(part) if at % 2 else _text(part, plain=bool(at and _PLAIN_OPENS.match(parts[at - 1])))
            )
    return "".join(parts)


def _tag(tag: str) -> str:
    if tag.startswith("<textarea"):
        return _without_marks(tag)
    return _without_marks(_READ_ATTRIBUTES.sub(lambda found: named_unseen(found[0]), tag))


def _text(text: str, *, plain: bool) -> str:
    named = named_unseen(text)
    if plain:
        return _without_marks(named)
    return named.replace(_BEGINS, _ISOLATE).replace(_ENDS, _ISOLATE_ENDS)


def named_unseen(text: str) -> str:
    """Return a text that shows what has no shape, `[U+202E]`."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def _without_marks(text: str) -> str:
    return text.replace(_BEGINS, "").replace(_ENDS, "")
