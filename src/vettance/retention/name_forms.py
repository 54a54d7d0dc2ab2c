"""A customer's id and e-mail addresses found in texts, in whatever form, and replaced.

Texts are compared as they are read: escapes of URLs and of JSON undone, each letter decomposed for
compatibility and in full case folding (Unicode 15.0, sections 3.11 and 3.13). So `STRASSE`, `straße`,
`stra%C3%9Fe`, `stra\\u00dfe`, the capital İ and letters written with combining marks need no form each. What
changes more than letters has a form of its own: the mailbox behind a plus-address, and IDNA.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vettance.decisions.email import email_facts

#: Shorter names (an id such as `7` or `C-12`) are replaced as whole texts only: inside of others they mean
#: anything. Numbers need more digits than an amount or a year has.
INSIDE_CHARS_MIN: Final = 5
INSIDE_DIGITS_MIN: Final = 6

# A name that continues before or after is another one: `c-10012` is not `c-1001`, and the address of
# `no.anna@…` is not that of `anna@…`.
_BEFORE: Final = r"(?<![^\W_])"
_BEFORE_ADDRESS: Final = r"(?<![^\W_])(?<![.+-])"
_BEHIND: Final = r"(?![^\W_])"

# Each begins with its own sign, which the engine looks for at once: ten times as fast as from a group.
_ESCAPES: Final = re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*|\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*")
#: The dot over the small i that case folding leaves of a capital İ, and that no keyboard types.
_DOT: Final = "\u0307"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_JSON_ESCAPES: Final = re.compile(r"\\(?:[^u]|u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*)")
_JSON_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Names:
    """Names of one customer, each with the pseudonym that takes its place."""

    def __init__(self, pseudonyms: Mapping[str, str]) -> None:
        forms: dict[str, str] = {}
        for name, other in pseudonyms.items():
            for form in forms_of(name):
                forms.setdefault(fold(form), other)
        self._forms = forms
        inside = [form for form in forms if _is_found_inside(form)]
        self._bare_inside = [_without_marks(form) for form in inside]
        short = [_quoted(form) for form in forms if not _is_found_inside(form)]
        self._bare_short = re.compile("|".join(short)) if short else None
        # The longest first: an address before the id that it begins with.
        parts = (_pattern(form) for form in sorted(inside, key=len, reverse=True))
        self._inside = re.compile("|".join(parts)) if inside else None

    def is_name(self, text: str) -> bool:
        """Tell whether a text is one of the names, in any form."""
        return fold(text).strip() in self._forms

    def may_be_in(self, columns: Iterable[Any]) -> bool:
        """Tell, of columns as they are stored, whether any is worth reading; nearly always not.

        All texts are searched at once and for all names, with escapes undone wherever they may be some. What
        is found may turn out to be none; what reading finds in a column is always found.
        """
        # In quotes, as texts are in JSON: a short name is looked for between them.
        text = '"'.join(["", *map(_text_of, columns), ""])
        readings = (text.lower(),) if _is_plain(text) else _bare_readings(text)
        return any(map(self._may_say, readings))

    def _may_say(self, reading: str) -> bool:
        # One by one: an expression of all takes five times as long, for some twenty names.
        for name in self._bare_inside:
            if name in reading:
                return True
        return self._bare_short is not None and self._bare_short.search(reading) is not None

    def replaced(self, text: str) -> str:
        """Return a text with pseudonyms in the place of names."""
        folded, spans = (text.lower(), None) if _is_plain(text) else _read(text)
        whole = self._forms.get(folded.strip())
        if whole is not None:
            return whole
        if self._inside is None:
            return text
        pieces, done = [], 0
        for found in self._inside.finditer(folded):
            start, end = found.span()
            if spans is not None:
                start, end = spans[start][0], spans[end - 1][1]
            if start < done:
                continue
            pieces += [text[done:start], self._forms[found[0]]]
            done = end
        return "".join([*pieces, text[done:]]) if done else text


def fold(text: str) -> str:
    """Return a text as names are compared: letters of every case, width and composition alike."""
    return text.lower() if _is_plain(text) else _read(text)[0]


def _is_plain(text: str) -> bool:
    """Tell whether each letter of a text is read as itself in lower case; nearly all texts are so."""
    return text.isascii() and "%" not in text and "\\" not in text


def _text_of(column: Any) -> str:
    if isinstance(column, str):
        return column
    return column.decode(errors="surrogateescape") if isinstance(column, bytes) else ""


def _bare_readings(text: str) -> Iterator[str]:
    """Yield what a text may say, and what it does if it is JSON, folded as `_read` does but without marks.

    A letter's fold does not depend on its neighbours, and marks that change places among each other are gone.
    """
    yield _bare(_ESCAPES.sub(_unescaped_text, text))
    if "\\" in text:
        yield _bare(_ESCAPES.sub(_unescaped_text, _JSON_ESCAPES.sub(_json_text, text)))


def _bare(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Only letters of ASCII become small here: the others are folded, which in some scripts is to capitals.
    content = _BEYOND_ASCII.sub(_bare_letters, text).encode(errors="surrogatepass")
    return content.lower().decode(errors="surrogatepass")


def _bare_letters(found: re.Match[str]) -> str:
    return _without_marks(_folded(found[0]))


def _without_marks(text: str) -> str:
    return "".join([letter for letter in text if not unicodedata.combining(letter)])


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())


def _unescaped_text(found: re.Match[str]) -> str:
    return "".join([letter for letter, _, _ in _unescaped(found[0], 0)])


def _json_text(found: re.Match[str]) -> str:
    """Read an escape of JSON (RFC 8259, section 7)."""
    escape = found[0]
    if escape[1] != "u":
        return _JSON_LETTERS.get(escape[1], escape[1])
    return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", errors="surrogatepass")


def _read(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Fold a text, and return for each letter of the outcome the span that it comes from."""
    letters: list[str] = []
    spans: list[tuple[int, int]] = []
    for letter, start, end in _letters(text):
        for part in _folded(letter):
            if unicodedata.combining(part) and letters:
                # A mark belongs to the letter before it, whatever becomes of that.
                spans[-1] = spans[-1][0], end
                if part == _DOT and letters[-1] == "i":
                    continue
            letters.append(part)
            spans.append((start, end))
    return "".join(letters), spans


def _letters(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the letters of a text with their spans, those of an escape with the span of it all."""
    done = 0
    for found in _ESCAPES.finditer(text):
        yield from ((text[place], place, place + 1) for place in range(done, found.start()))
        yield from _unescaped(found[0], found.start())
        done = found.end()
    yield from ((text[place], place, place + 1) for place in range(done, len(text)))


def _unescaped(escape: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the letters that an escape stands for; one that stands for none is taken as it is."""
    is_url = escape.startswith("%")
    units = bytes.fromhex(escape.replace("%" if is_url else "\\u", ""))
    coding, width, each = ("utf-8", 3, 1) if is_url else ("utf-16-be", 6, 2)
    try:
        letters = units.decode(coding)
    except UnicodeDecodeError:
        yield from ((letter, at + place, at + place + 1) for place, letter in enumerate(escape))
        return
    for letter in letters:
        end = at + len(letter.encode(coding)) // each * width
        yield letter, at, end
        at = end


def forms_of(name: str) -> set[str]:
    """Return a name in every form that reading a text does not find."""
    names = {name.strip()}
    if "@" in name:
        for address in (name.strip(), name.strip().lower()):
            facts = email_facts(address)
            names |= {facts.mailbox} if facts.mailbox is not None else set()
        names |= {form for one in tuple(names) for form in _idna(one)}
    return names


def _idna(address: str) -> Iterable[str]:
    """Return an address with its domain as mail servers and browsers write it."""
    local, _, domain = address.rpartition("@")
    try:
        yield f"{local}@{domain.encode('idna').decode()}"
    except UnicodeError:
        return


def _is_found_inside(form: str) -> bool:
    return len(form) >= (INSIDE_DIGITS_MIN if form.isdigit() else INSIDE_CHARS_MIN)


def _pattern(form: str) -> str:
    before = _BEFORE_ADDRESS if "@" in form else _BEFORE
    # A name that itself ends in a sign needs nothing behind it to be whole.
    behind = _BEHIND if form[-1:].isalnum() else ""
    return f"{before if form[:1].isalnum() else ''}{re.escape(form)}{behind}"


def _quoted(form: str) -> str:
    """Return what finds a short name, which counts as a whole text only."""
    return rf'"\s*{re.escape(_without_marks(form))}\s*"'
