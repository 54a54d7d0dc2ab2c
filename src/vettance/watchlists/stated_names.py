"""The names that a text gives: "Sea Lark (ex Grey Heron)" two, P U T I N one of letters that are apart."""

import re

#: Words between two names of one and the same, in the usage of registers, banks and ships' papers.
_OTHERWISE = re.compile(
    r"[\s,;]*(?:\bt/a\b|\b[dfakn][/.]?[bk][/.]?a\b\.?|\btrading (?:as|under)\b|\bdoing business as\b"
    r"|\b(?:also|formerly|previously|now) known as\b|\bknown as\b|\balias\b"
    r"|[(\[]\s*(?:formerly|previously|ex|ex-name|former name|fka|aka|now)\b[\s:.-]*)[\s:]*",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[/(\[]|known|a\b|trading|business|alias", re.IGNORECASE)
#: A word whose letters are apart, so that no filter sees it: P U T I N, P-U-T-I-N. Three may be initials.
_SPACED = re.compile(r"(?<![\w.])[^\W\d_](?:([ \-_*])[^\W\d_](?:\1[^\W\d_])+)(?:\1[^\W\d_])(?![\w.])")


def otherwise(text: str) -> tuple[str, ...]:
    """Return a text and the names that it gives where it gives several: "Sea Lark (ex Grey Heron)"."""
    if (spaced := _SPACED.search(text)) is not None:
        return (text, *_gathered(text, spaced))
    if not _MARKS.search(text):
        return (text,)
    parts = [part.strip(" ()[],;") for part in _OTHERWISE.split(text)]
    parts = [part for part in parts if sum(letter.isalpha() for letter in part) >= _NAMED_MIN]
    return (text, *parts[:_OTHERWISE_MAX]) if len(parts) > 1 else (text,)


_NAMED_MIN, _OTHERWISE_MAX = 3, 4


def _gathered(text: str, spaced: re.Match[str]) -> tuple[str, ...]:
    """Return a text with letters that are apart as one word, and with the first of them as an initial."""
    whole = _SPACED.sub(lambda match: re.sub(r"[\W_]", "", match[0]), text)
    letters = re.sub(r"[\W_]", "", spaced[0])
    first = f"{text[: spaced.start()]}{letters[0]}. {letters[1:]}{text[spaced.end() :]}"
    return whole, first
