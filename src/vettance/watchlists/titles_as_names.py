"""Titles that are names: Mary Jane Bishop, Ana Pastor Garcia, John King."""

from vettance.watchlists.name_token import NameToken, TokenKind, make_word

#: Titles that are surnames or given names as well.
_NAMES_TOO = frozenset(
    {"bishop", "king", "lord", "major", "marshal", "pastor", "prince", "rabbi", "sergeant"}
)
#: Titles that are written behind a name and are no surnames.
_BEHIND = frozenset({"jr", "junior", "sr", "senior", "esq", "phd", "md", "hm", "hh", "hrh"})
_NAMES = (TokenKind.NAME, TokenKind.PATRONYMIC)


def with_titles_as_names(words: list[NameToken], whole: str) -> list[NameToken]:
    """Read titles of a person as the names that they are by their place in the whole name."""
    if any(word.text in _NAMES_TOO for word in words):
        words = _with_names(words, whole)
    return _with_surname(words)


def _with_names(words: list[NameToken], whole: str) -> list[NameToken]:
    """Read a title that is a name too as a name, but in three places.

    It is a title before two names (Bishop John Smith), behind the comma after a surname (SMITH, Bishop John),
    and before another title (Major General).
    """
    surname, _, given = whole.casefold().partition(",")
    others = sum(word.kind in _NAMES for word in words)
    read: list[NameToken] = []
    is_ahead = True
    for place, word in enumerate(words):
        if word.kind is TokenKind.TITLE and word.text in _NAMES_TOO:
            begins = (is_ahead and word.text != surname.strip()) or [word.text] == given.split()[:1]
            follows = words[place + 1].kind if place + 1 < len(words) else None
            if not (begins and others > 1) and follows is not TokenKind.TITLE:
                read.append(make_word(word.text, TokenKind.NAME, word.consonantal))
                is_ahead = False
                continue
        is_ahead = is_ahead and word.kind is TokenKind.TITLE
        read.append(word)
    return read


def _with_surname(words: list[NameToken]) -> list[NameToken]:
    """Read a title at the end of a name of two words as the surname that it is: John King, Mary Major."""
    given = sum(word.kind in _NAMES for word in words)
    if given != 1 or words[-1].kind is not TokenKind.TITLE or words[-1].text in _BEHIND:
        return words
    return [*words[:-1], make_word(words[-1].text, TokenKind.NAME, words[-1].consonantal)]
