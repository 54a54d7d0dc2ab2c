"""The first wall: reads a rule's text token by token and refuses what the parser should never see.

Python's parser is safe on short, shallow text made of a few kinds of token. This scanner guarantees exactly
that, in one pass and before anything is parsed, and gives messages that do not depend on the Python version.
"""

import re
import unicodedata
from typing import Final, NamedTuple

from vettance.rules.fault import RuleFault

TEXT_CHARS_MAX: Final = 4_000  # Far above any rule a person can read; bounds every later pass.
NESTING_MAX: Final = 40  # Python itself stops at 200 brackets; generated code nests deeper than its source.
STRING_CHARS_MAX: Final = 1_024  # The bound of a text in an event; a longer literal could never match.
INTEGER_DIGITS_MAX: Final = 18  # Fits in 64 bits. Converting huge integers takes quadratic time.

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n]+|\#[^\n]*)
    | (?P<triple>(?:[A-Za-z]{0,2})(?:\"{3}|'{3}))
    | (?P<string>(?P<prefix>[A-Za-z]{0,2})(?:"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'))
    | (?P<open_string>[A-Za-z]{0,2}["'])
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
    | (?P<refused>\*\*|//|<<|>>|:=|->|<>|&&|\|\||===|[-+*/%]=|[@&|^~;{}?$`:\\!](?!=))
    | (?P<operator>==|!=|<=|>=|[-+*/%<>=()\[\],.])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:[\\\"'nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|(?P<bad>.))", re.ASCII)

_OPERATOR_HINTS: Final = {
    "**": "write a * a",
    "//": "write floor(a / b)",
    "&&": "write and",
    "||": "write or",
    "&": "write and",
    "|": "write or",
    "!": "write not",
    "~": "write not",
    "===": "write ==",
    "<>": "write !=",
    ":=": "write == to compare; a rule cannot assign",
    "{": "write a list: [1, 2, 3]",
    "?": "write a if condition else b",
    ";": "a rule is one expression; join two with and",
}
_KEYWORDS: Final = frozenset({"and", "or", "not", "in", "if", "else", "True", "False"})
_REFUSED_KEYWORDS: Final = {
    "None": "write missing(x) or present(x)",
    "is": "write == to compare, or missing(x)",
    "elif": "write a if condition else b",
}
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# The remaining reserved words of Python; a closed list, so that a later Python cannot change what we accept.
_RESERVED: Final = frozenset(
    {"as", "assert", "async", "await", "break", "class", "continue", "def", "del", "except", "finally", "for"}
    | {"from", "global", "import", "lambda", "nonlocal", "pass", "raise", "return", "try", "while", "with"}
    | {"yield"}
)
_JOINERS: Final = "\u200c\u200d"  # Needed to write some scripts and emoji; they do not reorder text.


class Token(NamedTuple):
    """One token: its kind (a group of the pattern), its text and where it starts (0-based)."""

    kind: str
    text: str
    start: int


def place(text: str, start: int) -> tuple[int, int]:
    """Return the line and column (from 1) of a position in a text."""
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def fault_at(text: str, start: int, width: int, message: str, hint: str | None = None) -> RuleFault:
    """Make a fault that points at `width` characters of a text from position `start` (0-based)."""
    line, column = place(text, start)
    return RuleFault(message, text, line, column, width, hint)


def scan(text: str) -> list[Token]:
    """Return the tokens of a rule text without white space and comments. Raises `RuleFault`."""
    if len(text) > TEXT_CHARS_MAX:
        raise RuleFault(
            f"the text is longer than {TEXT_CHARS_MAX} characters",
            text[:TEXT_CHARS_MAX],
            1,
            1,
            hint="split it into several rules",
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _foreign(text, at)
        kind = next(name for name in _KINDS if match[name] is not None)
        if kind == "space":
            _check_characters(text, at, match.end())
        else:
            tokens.append(Token(kind, match[0], at))
            _CHECKS[kind](text, match, tokens)
        at = match.end()
    _check_brackets(text, tokens)
    _check_prefixes(text, tokens)
    return tokens


def _foreign(text: str, at: int) -> RuleFault:
    char = text[at]
    if char.isalpha():
        return fault_at(
            text, at, 1, "names are written with plain Latin letters only", 'put text in quotes: "…"'
        )
    shown = f"the character {char}" if char.isprintable() else f"the control character U+{ord(char):04X}"
    return fault_at(text, at, 1, f"{shown} has no place in a rule")


def _check_characters(text: str, start: int, end: int) -> None:
    """Refuse characters that hide or reorder text, so that a reviewer sees what the service reads."""
    if text.isascii() and text.isprintable():
        return
    for at in range(start, end):
        char = text[at]
        if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t" + _JOINERS:
            raise fault_at(text, at, 1, f"the control character U+{ord(char):04X} has no place in a rule")


def _check_string(text: str, match: re.Match[str], tokens: list[Token]) -> None:
    start = match.start()
    prefix = match["prefix"]
    if prefix not in ("", "r", "R"):
        raise fault_at(text, start, len(prefix), "only plain texts are allowed", 'write "…" or r"…"')
    if len(tokens) > 1 and tokens[-2].kind == "string":
        raise fault_at(text, start, len(match[0]), "two texts stand side by side", "is a comma missing?")
    body = match["double"] if match["double"] is not None else match["single"]
    if len(body) > STRING_CHARS_MAX:
        raise fault_at(text, start, len(match[0]), f"a text is at most {STRING_CHARS_MAX} characters long")
    _check_characters(text, start, match.end())
    if prefix:
        return
    for escape in _ESCAPE.finditer(body):
        if escape["bad"] is not None:
            raise fault_at(
                text,
                start + 1 + escape.start(),
                2,
                f"there is no escape \\{escape['bad']}",
                r'for a pattern write r"…", which takes every backslash as it stands',
            )


def _check_triple(text: str, match: re.Match[str], _: list[Token]) -> None:
    raise fault_at(text, match.start(), len(match[0]), "a text has one quote at each end", 'write "…"')


def _check_open_string(text: str, match: re.Match[str], _: list[Token]) -> None:
    raise fault_at(text, match.start(), len(match[0]), "this text is not closed", "add the closing quote")


def _check_word(text: str, match: re.Match[str], tokens: list[Token]) -> None:
    word, start = match[0], match.start()
    if len(tokens) > 1 and tokens[-2].kind == "number" and tokens[-2].start + len(tokens[-2].text) == start:
        number = tokens[-2].text
        hint = None
        if word in _UNIT_S and [token.text for token in tokens[-4:-2]] == ["within", "="]:
            hint = f'write "{number}{word}"'
        elif word in _UNIT_S and number.isdecimal():
            hint = f"only a window has a unit; in seconds this is {int(number) * _UNIT_S[word]}"
        raise fault_at(text, tokens[-2].start, len(number) + len(word), "this is not a number", hint)
    if word in _REFUSED_KEYWORDS:
        raise fault_at(
            text, start, len(word), f"{word} is not part of the rule language", _REFUSED_KEYWORDS[word]
        )
    if word in _RESERVED:
        raise fault_at(text, start, len(word), f"{word} is not part of the rule language")
    if word.startswith("__"):
        raise fault_at(text, start, len(word), "a name does not start with two underscores")
    if word in _KEYWORDS and len(tokens) > 1 and tokens[-2].text == ".":
        raise fault_at(text, start, len(word), f"{word} cannot be part of a name")


def _check_number(text: str, match: re.Match[str], tokens: list[Token]) -> None:
    start, digits = match.start(), match[0]
    if re.search(rf"[0-9_]{{{INTEGER_DIGITS_MAX + 1},}}", digits):
        raise fault_at(text, start, len(digits), f"a number has at most {INTEGER_DIGITS_MAX} digits")
    if digits.endswith("_") or "__" in digits or "_." in digits or "._" in digits or "_e" in digits.lower():
        raise fault_at(text, start, len(digits), "this is not a number", "underscores stand between digits")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        raise fault_at(text, start, len(digits), "a number does not start with 0", 'is it a text? write "…"')
    if len(tokens) > 1 and tokens[-2].kind == "number" and tokens[-2].start + len(tokens[-2].text) == start:
        raise fault_at(text, tokens[-2].start, len(tokens[-2].text) + len(digits), "this is not a number")


def _check_refused(text: str, match: re.Match[str], _: list[Token]) -> None:
    sign = match[0]
    raise fault_at(
        text, match.start(), len(sign), f"{sign} is not part of the rule language", _OPERATOR_HINTS.get(sign)
    )


def _check_nothing(_text: str, _match: re.Match[str], _tokens: list[Token]) -> None:
    """Operators are checked by the parser."""


_CHECKS: Final = {
    "triple": _check_triple,
    "string": _check_string,
    "open_string": _check_open_string,
    "word": _check_word,
    "number": _check_number,
    "refused": _check_refused,
    "operator": _check_nothing,
}
_KINDS: Final = ("space", *_CHECKS)
_PAIRS: Final = {")": "(", "]": "["}


def _check_brackets(text: str, tokens: list[Token]) -> None:
    open_tokens: list[Token] = []
    for token in tokens:
        if token.kind != "operator":
            continue
        if token.text in "([":
            open_tokens.append(token)
            if len(open_tokens) > NESTING_MAX:
                raise fault_at(text, token.start, 1, f"brackets are nested deeper than {NESTING_MAX} levels")
        elif token.text in _PAIRS and (not open_tokens or open_tokens.pop().text != _PAIRS[token.text]):
            raise fault_at(text, token.start, 1, f"this {token.text} closes nothing")
    if open_tokens:
        raise fault_at(text, open_tokens[-1].start, 1, f"this {open_tokens[-1].text} is not closed")


def _check_prefixes(text: str, tokens: list[Token]) -> None:
    """Bound chains such as `not not not x` and `---x`, which nest without brackets."""
    run = 0
    for token in tokens:
        run = run + 1 if token.text in ("not", "-", "+") and token.kind != "string" else 0
        if run > NESTING_MAX:
            raise fault_at(text, token.start, len(token.text), "too many signs in a row")
