"""YAML as plain values: a small, strict reading of one document that remembers the line of every value.

Only the event stream of the YAML parser is used, never its constructors. Anchors, aliases, tags, merge keys
and several documents are refused: they allow a few lines to mean gigabytes, and no rule set needs them. Plain
words are read as YAML 1.2 does, so `off`, `no` and `on` are texts.
"""

import re
from typing import Any, Final, NamedTuple

import yaml

DOCUMENT_BYTES_MAX: Final = 512 * 1024  # A thousand rules of ordinary size with their tests.
DEPTH_MAX: Final = 20  # An event may be 10 deep (the limit of its objects) inside a test inside a rule.
NODES_MAX: Final = 100_000

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT = re.compile(r"(?:[-+]?[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+][0-9]{1,3})?", re.ASCII)
_WORDS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class DocumentFault(Exception):
    """What is wrong with a document, at which line (from 1)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Node(NamedTuple):
    """One value of a document: a mapping of Nodes, a list of Nodes, or a scalar, and where it is.

    `line` and `column` count from 1; `span` is where a text is written in the document, in characters.
    """

    value: Any
    line: int
    column: int = 1
    span: tuple[int, int] | None = None


def read_document(text: str) -> Node:
    """Read one YAML document. Raises `DocumentFault`."""
    if len(text.encode("utf-8", "surrogatepass")) > DOCUMENT_BYTES_MAX:
        raise DocumentFault(f"the document is larger than {DOCUMENT_BYTES_MAX // 1024} KiB", 1)
    try:
        return _Parser(text).read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise DocumentFault(f"this is not YAML: {error.problem or 'it cannot be read'}", line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position if isinstance(error.position, int) else 0) + 1
        raise DocumentFault("the document holds a control character", line) from None
    except (yaml.YAMLError, UnicodeError, ValueError):
        raise DocumentFault("the document cannot be read as text", 1) from None


class _Parser:
    """Builds values from the parser's events as they come, so that a bound ends the reading at once."""

    def __init__(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        self._nodes = 0

    def read(self) -> Node:
        event = self._next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise DocumentFault("the document is empty", 1)
        root = self._node(event, 1)
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise DocumentFault("there is a second document", after.start_mark.line + 1)
        return root

    def _next(self) -> Any:
        return next(self._events)

    def _node(self, event: Any, depth: int) -> Node:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        span = event.start_mark.index, event.end_mark.index
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise DocumentFault(f"the document holds more than {NODES_MAX} values", line)
        if depth > DEPTH_MAX:
            raise DocumentFault(f"the document is nested deeper than {DEPTH_MAX} levels", line)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise DocumentFault("anchors and aliases are not allowed", line)
        if event.tag is not None:
            raise DocumentFault("tags are not allowed", line)
        if isinstance(event, yaml.ScalarEvent):
            return Node(_scalar(event, line), line, column, span)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._sequence(depth), line, column)
        return Node(self._mapping(depth), line, column)

    def _sequence(self, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Node]:
        members: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor is not None:
                raise DocumentFault("a name must be a plain text", line)
            if event.value in members:
                raise DocumentFault(f"{event.value[:60]} stands twice", line)
            members[event.value] = self._node(self._next(), depth + 1)
        return members


def _scalar(event: Any, line: int) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise DocumentFault("this number is too large", line)
        return value
    return text


def position_in(document: str, place: Node, at: int) -> tuple[int, int]:
    """Return line and column (from 1) of character `at` of a text of a document, however YAML writes it.

    YAML folds, indents and quotes, but keeps all characters other than white space in their order: they are
    counted off. Where that does not come out (an escape such as `\\x41`), it is the beginning of the text.
    """
    value = place.value
    if place.span is None or not isinstance(value, str):
        return place.line, place.column
    start, end = place.span
    style = document[start : start + 1]
    if style in ("|", ">"):
        start = document.find("\n", start, end) + 1
    elif style in ("'", '"'):
        start, end = start + 1, end - 1
    # White space is found by the character after it, from which it is counted back.
    wanted = at
    while wanted < len(value) and value[wanted].isspace():
        wanted += 1
    left = sum(not char.isspace() for char in value[: min(wanted + 1, len(value))])
    index, escaped = start, False
    for index in range(start, end):
        char, follows = document[index], escaped
        escaped = style == '"' and char == "\\" and not follows
        doubled = style == "'" == char == document[index - 1] and index > start
        if escaped or doubled or char.isspace() or (follows and char in "nrt"):
            continue
        left -= 1
        if left == 0:
            break
    index += wanted >= len(value)
    line = document.count("\n", 0, index) + 1
    column = index - document.rfind("\n", 0, index) - (wanted - at if wanted < len(value) else 0)
    return line, max(1, column)


def plain(place: Node) -> Any:
    """Return the value of a place without lines: dicts, lists and scalars."""
    if isinstance(place.value, dict):
        return {name: plain(member) for name, member in place.value.items()}
    if isinstance(place.value, list):
        return [plain(item) for item in place.value]
    return place.value
