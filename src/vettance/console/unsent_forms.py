"""Unsent forms: what somebody typed and the service could not take, shown and sent again by a button."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from vettance.console.page import HOME, Visit
from vettance.console.refusal_words import member_words
from vettance.console.refused_forms import BASES, KEPT_FIELD, PAGE_FIELD, SECRET_FIELDS

#: Statuses that are about the service, not about what was sent.
_ABOUT_SERVICE: Final = frozenset({429, 500, 502, 503, 504})
#: Fields that are sent again, and that nobody typed.
_NOT_SHOWN: Final = frozenset({"csrf", "tenant", "next", PAGE_FIELD, KEPT_FIELD, *BASES})


class UnsentForm(msgspec.Struct, frozen=True):
    """A form that may not have been done: where it goes, its page, all its fields, and what was typed."""

    path: str
    page: str
    pairs: Sequence[tuple[str, str]]
    typed: Sequence[tuple[str, str]]


def unsent_form(visit: Visit, status: int, page: str) -> UnsentForm | None:
    """Return the form of a visit that ended with a status, and its page; None where nothing would be lost.

    Passwords and codes are written into no page: they have to be typed again.
    """
    names = {name for name, _ in visit.form.pairs}
    if status not in _ABOUT_SERVICE or names & SECRET_FIELDS:
        return None
    typed: dict[str, list[str]] = {}
    for name, value in visit.form.pairs:
        if value and name not in _NOT_SHOWN:
            typed.setdefault(name, []).append(value)
    if not typed:
        return None
    pairs = list(visit.form.pairs)
    if PAGE_FIELD not in names and page != HOME:
        pairs.append((PAGE_FIELD, page))
    shown = [(member_words(name), ", ".join(values)) for name, values in typed.items()]
    return UnsentForm(urlsplit(visit.url).path, page, pairs, shown)
