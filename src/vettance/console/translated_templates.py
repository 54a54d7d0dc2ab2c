"""Translates templates while they are compiled, so that a page in another language costs no more.

What is between tags, and in the attributes that people read, is text; nothing in a template has to be
marked for it. A text with expressions is one message, `{1} attempts, the last {2}`, and another language may
put them in another order. Of strings inside expressions those count that are shown and read as words.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

#: Attributes that are read to people, or shown to them.
_READ: Final = frozenset({"alt", "aria-label", "data-label", "placeholder", "title"})
#: What is in these is not language.
_NO_LANGUAGE: Final = frozenset({"code", "kbd", "pre", "script", "style"})
#: Arguments of macros that go into attributes nobody reads.
_NOT_SHOWN: Final = frozenset({"autocomplete", "class", "name", "type"})
_WORD: Final = re.compile(r"[^\W\d_]{2}")
#: A string that reads as words: several of them, or one with a capital letter. Others are keys.
_READS_AS_WORDS: Final = re.compile(r"[^\W\d_][\w’'-]*[:,]? \S|[A-Z][\w-]*[a-z]\w*$")
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][\w-]*)|<!")
_IN_TAG: Final = re.compile(r"([^\s\"'<>/=]+)\s*=\s*([\"'])|>")
_PLACE: Final = re.compile(r"\{(\d+)\}")
_STATEMENTS: Final = frozenset({"call", "set"})
#: After these a string is compared with something, or names a member.
_COMPARING: Final = frozenset({"eq", "ne", "lbracket", "dot"})

#: Returns the words of a message in another language, or the same ones; of the message and its line.
Say = Callable[[str, int], str]


class _Piece(NamedTuple):
    """A piece of a template's own text, and whether it is language."""

    text: str
    is_language: bool


class _Reader:
    """Goes through the text of a template and knows whether people read what is at a place."""

    def __init__(self) -> None:
        self._tag = ""
        self._is_in_tag = False
        self._attribute = ""
        self._quote = ""

    @property
    def is_read(self) -> bool:
        """Whether what is here is read by people."""
        if self._quote:
            return self._attribute in _READ
        return not self._is_in_tag and self._tag not in _NO_LANGUAGE

    def cut(self, source: str) -> Iterator[_Piece]:
        """Cut text at tags and attributes; it goes on where the last one ended."""
        place = 0
        while place < len(source):
            start, is_language = place, self.is_read
            if self._quote:
                end = source.find(self._quote, place)
                place = len(source) if end < 0 else end
                yield _Piece(source[start:place], is_language)
                if end >= 0:
                    yield _Piece(self._quote, is_language=False)
                    self._quote = ""
                    place += 1
            elif self._is_in_tag:
                found = _IN_TAG.search(source, place)
                place = len(source) if found is None else found.end()
                if found is not None and found[2]:
                    self._attribute, self._quote = found[1].lower(), found[2]
                elif found is not None:
                    self._is_in_tag = False
                yield _Piece(source[start:place], is_language=False)
            else:
                found = _TAG.search(source, place)
                place = len(source) if found is None else found.start()
                if place > start:
                    yield _Piece(source[start:place], is_language)
                if found is not None:
                    self._tag = "" if found[1] else (found[2] or "").lower()
                    self._is_in_tag = True
                    place = found.end()
                    yield _Piece(found[0], is_language=False)


class _Message:
    """A text that is being read, with the expressions in it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._parts: list[str | list[Token]] = []
        self._line = 0

    def add(self, part: str | list[Token], line: int) -> None:
        self._line = self._line if self._parts else line
        self._parts.append(part)

    def end(self) -> Iterator[Token]:
        """Yield the tokens of the message in the language of `say`, and begin a new one."""
        parts, self._parts = self._parts, []
        expressions = [part for part in parts if not isinstance(part, str)]
        number = 0
        whole = ""
        for part in parts:
            number += not isinstance(part, str)
            whole += part if isinstance(part, str) else f"{{{number}}}"
        words = " ".join(whole.split())
        said = self._say(words, self._line) if _WORD.search(_PLACE.sub("", words)) else words
        if said == words or sorted(_PLACE.findall(said)) != sorted(_PLACE.findall(words)):
            for part in parts:
                yield from [self._text(part)] if isinstance(part, str) else part
            return
        # A translator cannot end a tag or an attribute.
        said = said.replace("<", "&lt;").replace('"', "&quot;").replace("'", "&#39;")
        before = whole[: len(whole) - len(whole.lstrip())]
        after = whole[len(whole.rstrip()) :]
        for place, text in enumerate(_PLACE.split(before + said + after)):
            yield from expressions[int(text) - 1] if place % 2 else [self._text(text)]

    def _text(self, text: str) -> Token:
        return Token(self._line, "data", text)


class TranslatedTemplates(Extension):
    """Puts the words of `environment.say` in place of those of a template."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Pass the tokens of a template on, the text of them translated."""
        say: Say = self.environment.say  # type: ignore[attr-defined]
        reader, message = _Reader(), _Message(say)
        expression: list[Token] = []
        before, last_name, statement = "", "", ""
        for token in stream:
            if token.type == "data":
                for piece in reader.cut(token.value):
                    if piece.is_language:
                        message.add(piece.text, token.lineno)
                    else:
                        yield from message.end()
                        yield Token(token.lineno, "data", piece.text)
                before = token.type
                continue
            if token.type in ("variable_begin", "block_begin"):
                statement = ""
            elif not statement:
                statement = token.value if before == "block_begin" else "variable"
            given = token
            if token.type == "name":
                last_name = token.value
            elif (
                token.type == "string"
                and (statement in _STATEMENTS or (statement == "variable" and reader.is_read))
                and before not in _COMPARING
                and stream.current.type != "colon"  # It would be a key.
                and not (before == "assign" and last_name in _NOT_SHOWN)
                and _READS_AS_WORDS.match(token.value)
            ):
                given = Token(token.lineno, "string", say(token.value, token.lineno))
            before = token.type
            if (token.type == "variable_begin" or expression) and reader.is_read:
                expression.append(given)
                if token.type == "variable_end":
                    message.add(expression, token.lineno)
                    expression = []
                continue
            yield from message.end()
            yield given
        yield from message.end()
